"""SecretStore: keeps the values of jobs' secrets, apart from the jobs. `JobService` and `JobLoop` use it."""

from typing import Protocol

from trainshed.core.jobs.secret import JobSecrets


class SecretStore(Protocol):
    """1. what `keep` has returned from is durable.

    2. `read` gives what was kept, and nothing for a job that is not known. It raises Unavailable where the
       values are there and cannot be read.
    3. `remove` may be repeated; afterwards nothing of the job is there.
    """

    async def keep(self, job: str, secrets: JobSecrets) -> None: ...

    async def read(self, job: str) -> JobSecrets: ...

    def has(self, job: str) -> bool:
        """Cheap: the job loop asks at each turn of a job with secrets."""
        ...

    async def remove(self, job: str) -> None: ...

    async def jobs(self) -> frozenset[str]:
        """The jobs of which there is anything."""
        ...
