"""The janitor: once, at the start, looks for what a killed server left of jobs that had been deleted.

A delete is durable before the job's files go, so a server may die in between. It only hints the loop, which
removes what belongs to no job. It never touches what nobody asked to delete: after a start with the wrong
database the output of all jobs is still there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from trainshed.core.ports import LogStore, Store


@dataclass(slots=True)
class Janitor:
    store: Store
    logs: LogStore
    hint_job: Callable[[str], None]

    async def look(self, _key: str = "") -> datetime | None:
        """Flown by a work queue of its own, which gives it its back-off."""
        for job in await self.store.deleted(await self.logs.jobs()):
            self.hint_job(job)
        return None
