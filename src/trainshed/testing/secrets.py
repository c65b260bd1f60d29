"""A secret store in memory that keeps the promises of its port, but for surviving the process."""

from trainshed.core.jobs.secret import JobSecrets


class MemorySecrets:
    def __init__(self) -> None:
        self.kept: dict[str, JobSecrets] = {}

    async def keep(self, job: str, secrets: JobSecrets) -> None:
        self.kept[job] = secrets

    async def read(self, job: str) -> JobSecrets:
        return self.kept.get(job, {})

    def has(self, job: str) -> bool:
        return job in self.kept

    async def remove(self, job: str) -> None:
        self.kept.pop(job, None)

    async def jobs(self) -> frozenset[str]:
        return frozenset(self.kept)
