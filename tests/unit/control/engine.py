"""A whole engine in memory: the real queue, loop, scheduler and service over the fakes, in stepped time.

`Engine` is one server. The machine and the store outlive it: another Engine over them is a restarted one.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta

from tests.unit.control.stepped import SteppedClock
from trainshed.control.jobs import JobLoop
from trainshed.control.queue import WorkQueue
from trainshed.control.scheduler import Scheduler
from trainshed.core.logs import Chunk, Line, LogQuery, OutputQuery
from trainshed.core.names import ReplicaName
from trainshed.core.ports import Sink, Store
from trainshed.core.queue.fleet import Fit
from trainshed.core.queue.share import ShareTree
from trainshed.core.queue.snapshot import is_waiting
from trainshed.service.job_notifier import JobNotifier
from trainshed.service.jobs import JobService
from trainshed.testing.backend import FakeBackend, FakeMachine
from trainshed.testing.store import MemoryStore

TICK = 10.0


@dataclass(slots=True)
class NoLogs:
    """Keeps no line, but remembers what was asked of it."""

    finished: list[str] = field(default_factory=list[str])
    removed: list[str] = field(default_factory=list[str])

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    def sink(self, name: ReplicaName) -> Sink:
        return Sink(stdout="", stderr="")

    async def read(self, job: str, query: LogQuery) -> tuple[Line, ...]:
        return ()

    async def follow(self, job: str, query: LogQuery) -> AsyncIterator[tuple[Line, ...]]:
        for batch in ():
            yield batch

    async def output(self, job: str, query: OutputQuery, *, follow: bool) -> AsyncIterator[tuple[Chunk, ...]]:
        for batch in ():
            yield batch

    async def finish(self, job: str) -> None:
        self.finished.append(job)

    async def remove(self, job: str) -> None:
        self.removed.append(job)

    async def jobs(self) -> frozenset[str]:
        return frozenset(self.finished) - frozenset(self.removed)

    def has_room(self) -> bool:
        return True


class Engine:
    def __init__(
        self,
        machine: FakeMachine,
        store: Store | None = None,
        *,
        fit: Fit = Fit.SHRINK,
        backend: FakeBackend | None = None,
        patience: timedelta = timedelta(),
        tree: ShareTree | None = None,
    ) -> None:
        """With `patience`, what may be over at once is written down after that time, as in the server."""
        clock = SteppedClock()
        self.store: Store = store or MemoryStore()
        self.backend = backend or FakeBackend(machine)
        self.logs, self.notifier = NoLogs(), JobNotifier()
        self.job_queue, self.schedule_queue = WorkQueue(clock), WorkQueue(clock)
        self.loop = JobLoop(
            store=self.store,
            backend=self.backend,
            logs=self.logs,
            clock=clock,
            ring=self.notifier.ring,
            hint_scheduler=lambda job: self.scheduler.look_at(job),  # noqa: PLW0108 - made below
            settle=patience,
            freeing=lambda job: self.scheduler.freeing(job),  # noqa: PLW0108 - made below
        )
        self.scheduler = Scheduler(
            store=self.store,
            backend=self.backend,
            clock=clock,
            fit=fit,
            ring=self.notifier.ring,
            hint=self._hint_scheduler,
            hint_job=self.job_queue.hint,
            noted=patience,
            shares=lambda: tree,
        )
        self.job_queue.serve(self.loop.turn)
        self.schedule_queue.serve(self.scheduler.cycle)
        self.backend.on_change(self.job_queue.hint)
        self.jobs = JobService(
            store=self.store,
            clock=clock,
            notifier=self.notifier,
            hint_job=self.job_queue.hint,
            hint_scheduler=self._hint_scheduler,
            waiting_reason=self.scheduler.reason,
        )
        self._ticker: asyncio.Task[None] | None = None

    def _hint_scheduler(self) -> None:
        self.schedule_queue.hint("cycle")

    async def open(self) -> None:
        """As the server does it: look at everything there is, then at every tick."""
        await self.backend.start()
        for job in self.scheduler.backlog.admitted.keys() | await self.backend.jobs():
            self.job_queue.hint(job)
        for job in await self.store.active():
            if is_waiting(job) and job.spec.scheduling.max_wait is not None:
                self.job_queue.at(job.id, job.created_at + job.spec.scheduling.max_wait)
        self._hint_scheduler()
        self._ticker = asyncio.create_task(self._tick())

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            for job in list(self.scheduler.backlog.admitted):
                self.job_queue.hint(job)
            self._hint_scheduler()

    async def close(self) -> None:
        if self._ticker:
            self._ticker.cancel()
        await self.schedule_queue.close()
        await self.job_queue.close()
        await self.backend.close()
