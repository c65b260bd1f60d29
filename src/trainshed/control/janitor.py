"""The janitor: finds, once at the start, the files that a killed server left of deleted jobs.

A delete is durable before the job's files are removed, so a server may die in between. The janitor only hints
the job loop, which removes the files. It never touches a job that nobody deleted: after a start with the
wrong database the output of all jobs is still there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from trainshed.core.jobs.secret_port import SecretStore
from trainshed.core.log_port import LogStore
from trainshed.core.ports import Store


@dataclass(slots=True)
class Janitor:
    store: Store
    logs: LogStore
    hint_job: Callable[[str], None]
    secrets: SecretStore | None = None

    async def look(self, _key: str = "") -> datetime | None:
        """A work queue calls this, and backs off after failures."""
        there = await self.logs.jobs() | (await self.secrets.jobs() if self.secrets else frozenset[str]())
        for job in await self.store.deleted(there):
            self.hint_job(job)
        return None
