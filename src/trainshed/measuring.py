"""What looks at replicas while they run, put together: collector, hang watch, and who answers from them.

A part of the composition root with a name of its own. It joins ports and names no adapter: server.py does.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from trainshed.control.collector import Collector
from trainshed.control.hangs import HangWatcher
from trainshed.core.job import Job
from trainshed.core.metrics import RunReading
from trainshed.core.names import ReplicaName
from trainshed.core.ports import Backend, Clock, MetricStore, Stacks, Stats, Store
from trainshed.service.metrics import LatestReadings, MetricService
from trainshed.service.stacks import StackService

log = logging.getLogger("trainshed")


class Visible(Backend, Stats, Stacks, Protocol):
    """A backend that has these abilities, each where its capabilities say so."""


@dataclass(slots=True)
class Measuring:
    store: MetricStore
    collector: Collector
    service: MetricService
    hangs: HangWatcher
    where: StackService
    tasks: tuple[asyncio.Task[None], ...] = ()

    def begin(self) -> None:
        self.tasks = tuple(map(asyncio.create_task, (self.collector.run(), self.hangs.run())))
        for task in self.tasks:
            task.add_done_callback(_lament)

    async def close(self) -> None:
        for task in self.tasks:
            task.cancel()
        if self.tasks:
            await asyncio.wait(self.tasks)
        await self.store.close()


def _lament(looking: asyncio.Task[None]) -> None:
    """Jobs go on without metrics or hang watch; whoever keeps the server should know."""
    if not looking.cancelled() and (error := looking.exception()) is not None:
        log.error("replicas are not looked at any more", exc_info=error)


def measure(
    metrics: MetricStore,
    store: Store,
    backend: Visible,
    clock: Clock,
    printed: Callable[[ReplicaName], int],
    ring: Callable[[Job], None],
    hint_job: Callable[[str], None],
) -> Measuring:
    board = LatestReadings(clock)
    stacks = backend if backend.capabilities.stacks else None
    hangs = HangWatcher(
        store=store, clock=clock, stacks=stacks, printed=printed, ring=ring, hint_job=hint_job
    )

    def show(readings: Sequence[RunReading]) -> None:
        board.show(readings)
        hangs.see(readings)

    collector = Collector(
        backend=backend,
        stats=backend if backend.capabilities.measures else None,
        metrics=metrics,
        clock=clock,
        show=show,
    )
    service = MetricService(store, metrics, board, clock, collector.settle)
    return Measuring(metrics, collector, service, hangs, StackService(store, stacks))
