"""Writes into a job's history that part of its output was dropped. The log store calls it; best effort."""

from dataclasses import dataclass, field

from trainshed.background_tasks import BackgroundTasks
from trainshed.core.errors import Conflict
from trainshed.core.event import Event, Reason, Severity
from trainshed.core.ports import Clock, Store

MOST_TRIES = 20


@dataclass(slots=True)
class LogDropRecorder:
    store: Store
    clock: Clock
    _tasks: BackgroundTasks = field(default_factory=BackgroundTasks)

    def record(self, job_id: str, why: str, dropped: int) -> None:
        """Call it in the event loop's thread. It returns before the event is written."""
        self._tasks.run(self._write(job_id, f"{why}: {dropped} bytes of its output were dropped so far."))

    async def close(self) -> None:
        await self._tasks.close()

    async def _write(self, job_id: str, message: str) -> None:
        for _ in range(MOST_TRIES):
            job = await self.store.load(job_id)
            if job is None:
                return
            event = Event(
                at=self.clock.now(),
                reason=Reason.LOG_DROPPED,
                message=message,
                severity=Severity.WARNING,
                attempt=job.status.attempt,
            )
            try:
                await self.store.write(job, job.status, (event,))
                return
            except Conflict:
                continue
