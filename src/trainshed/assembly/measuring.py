"""What looks at replicas while they run: collector, hang watch, and the services that answer from them."""

import asyncio
import functools
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import google_crc32c

from trainshed.assembly.shared import SharedParts
from trainshed.assembly.storage import Storage
from trainshed.backends.fleet import Fleet
from trainshed.control.collector import Collector
from trainshed.control.hangs import HangWatcher
from trainshed.control.measurements import Measurements
from trainshed.core.metrics import RunReading
from trainshed.core.ports import MetricStore
from trainshed.logs.size import printed
from trainshed.metrics.line_pattern import printed_metrics
from trainshed.service.metrics import LatestReadings, MetricService
from trainshed.service.stacks import StackService

log = logging.getLogger("trainshed")
_crc32c = cast(Callable[[bytes], int], getattr(google_crc32c, "value"))  # noqa: B009 - untyped


@dataclass(slots=True, kw_only=True)
class Measuring:
    store: MetricStore
    collector: Collector
    service: MetricService
    hangs: HangWatcher
    stacks: StackService
    measurements: Measurements  # of trials
    tasks: tuple[asyncio.Task[None], ...] = ()

    def begin(self) -> None:
        self.tasks = tuple(map(asyncio.create_task, (self.collector.run(), self.hangs.run())))
        for task in self.tasks:
            task.add_done_callback(_log_failure)

    async def close(self) -> None:
        for task in self.tasks:
            task.cancel()
        if self.tasks:
            await asyncio.wait(self.tasks)
        await self.store.close()


def _log_failure(task: asyncio.Task[None]) -> None:
    """Jobs go on without metrics or hang watch; whoever runs the server should know."""
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("replicas are not looked at any more", exc_info=error)


def make_measuring(shared: SharedParts, storage: Storage, fleet: Fleet) -> Measuring:
    store, metrics, clock = storage.store, storage.metrics, shared.clock
    board = LatestReadings(clock)
    hangs = HangWatcher(
        store=store,
        clock=clock,
        stacks=fleet.stacks,
        printed=functools.partial(printed, shared.settings.home / "logs"),
        ring=shared.notifier.ring,
        hint_job=shared.queues.jobs.hint,
    )

    def show(readings: Sequence[RunReading]) -> None:
        board.show(readings)
        storage.job_hints.tell_measured({reading.key.name.job for reading in readings})
        hangs.see(readings)

    collector = Collector(
        backend=fleet,
        stats=fleet.stats,
        metrics=metrics,
        clock=clock,
        show=show,
    )
    return Measuring(
        store=metrics,
        collector=collector,
        service=MetricService(store, metrics, board, clock, collector.settle),
        hangs=hangs,
        stacks=StackService(store, fleet.stacks),
        measurements=Measurements(
            reported=metrics,
            logs=storage.logs,
            views=fleet.views,
            buckets=storage.buckets,
            clock=clock,
            crc32c=_crc32c,
            printed_metrics=printed_metrics,
        ),
    )
