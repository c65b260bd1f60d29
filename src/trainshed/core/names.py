"""Names of replicas and runs. A backend finds a replica again by its name after any crash."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class ReplicaName:
    """One replica in one attempt of one job. A restart keeps the name and raises the run number."""

    job: str
    attempt: int
    pool: int
    index: int

    @property
    def task(self) -> str:
        """The name people see on a log line, as Vertex AI writes it."""
        return task_name(self.pool, self.index)

    def __str__(self) -> str:
        return f"{self.job}.{self.attempt}.{self.pool}.{self.index}"

    @classmethod
    def parse(cls, text: str) -> "ReplicaName":
        job, attempt, pool, index = text.rsplit(".", 3)
        return cls(job, int(attempt), int(pool), int(index))


@dataclass(frozen=True, slots=True, order=True)
class RunKey:
    """One start of one replica: what a backend launches at most once."""

    name: ReplicaName
    run: int

    def __str__(self) -> str:
        return f"{self.name}.{self.run}"


def task_name(pool: int, index: int) -> str:
    return f"workerpool{pool}-{index}"
