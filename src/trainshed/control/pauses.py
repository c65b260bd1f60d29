"""Pauses: ends the pause of a job that has stored a checkpoint after all. The scheduler calls it.

Whether a preempted job lost its run is decided when it is asked to stop. Many programs store a checkpoint
only then, and a large one is complete some time later. So each job that pauses is looked at again.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from trainshed.control.preemption import Checkpointed, stored_at
from trainshed.core.errors import Conflict, TrainshedError
from trainshed.core.jobs.job import Job, Requeue
from trainshed.core.ports import Store

AGAIN = timedelta(minutes=1)
MOST_ASKED = 20  # in a cycle


@dataclass(slots=True)
class Pauses:
    store: Store
    checkpointed: Checkpointed
    _asked: dict[str, datetime] = field(default_factory=dict[str, datetime])  # when last, of those that pause

    async def look(self, pausing: Iterable[Job], now: datetime) -> datetime | None:
        """End the pauses of those that have a checkpoint of the run; returns when the next look is due."""
        jobs = list(pausing)
        self._asked = {job.id: self._asked[job.id] for job in jobs if job.id in self._asked}
        due = [job for job in jobs if job.id not in self._asked or now - self._asked[job.id] >= AGAIN]
        asked = due[:MOST_ASKED]
        has_stored = await asyncio.gather(*map(self._has_stored, asked))
        for job, has_checkpoint in zip(asked, has_stored, strict=True):
            self._asked[job.id] = now
            if has_checkpoint:
                await self._end(job, now)
        if len(asked) < len(due) or any(has_stored):
            return now
        return min((at + AGAIN for at in self._asked.values()), default=None)

    async def _has_stored(self, job: Job) -> bool:
        """Whether there is a checkpoint of the run that was stopped."""
        began = job.status.requeue.began if job.status.requeue is not None else None
        try:
            stored = await stored_at(job, self.checkpointed)
        except TrainshedError:
            return False
        return stored is not None and began is not None and stored > began

    async def _end(self, job: Job, now: datetime) -> None:
        requeue = job.status.requeue
        assert requeue is not None
        requeue = Requeue(at=requeue.at, message=requeue.message)
        with suppress(Conflict):  # it has changed, and the next look sees how
            status = replace(job.status, requeue=requeue, updated_at=now)
            await self.store.write(job, status, (), flush=False)
