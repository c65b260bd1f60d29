"""The collector: samples every two seconds what replicas use and report, and records it.

The job loop calls `watch` when it launches a run, the assembly when it finds a run again. The collector
samples a run once more after its end, so the last report of a short program is kept. While nothing runs it
sleeps. If sampling fails, one point is lost; the collector never delays or fails a job.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from trainshed.core.errors import TrainshedError
from trainshed.core.metrics import Report, RunReading, Sample, Usage, rates, report_samples
from trainshed.core.names import RunKey
from trainshed.core.ports import Backend, Clock, MetricStore, ReportSource
from trainshed.core.stats_port import Stats

log = logging.getLogger(__name__)

EVERY = 2.0  # seconds


@dataclass(slots=True)
class _WatchedRun:
    source: ReportSource
    begun: float | None  # the event loop's time at its start; None if the start was not seen
    before: Usage | None = None
    first: Report | None = None
    last: Report | None = None


@dataclass(slots=True, kw_only=True)
class Collector:
    backend: Backend
    stats: Stats | None  # None: the backend does not measure
    metrics: MetricStore
    clock: Clock
    show: Callable[[Sequence[RunReading]], None]  # called at each look, with every run that is alive
    every: float = EVERY
    _watched: dict[RunKey, _WatchedRun] = field(default_factory=dict[RunKey, _WatchedRun])
    _some: asyncio.Event = field(default_factory=asyncio.Event)
    _looking: asyncio.Lock = field(default_factory=asyncio.Lock)

    def watch(self, key: RunKey, stdout: str, *, begun: bool) -> None:
        """Sample this run from now on. `begun`: it was started just now, so it has used nothing yet."""
        if key in self._watched:
            return
        at = asyncio.get_running_loop().time() if begun else None
        self._watched[key] = _WatchedRun(ReportSource(key.name, stdout), at)
        self._some.set()

    async def forget(self, job: str) -> None:
        """Remove everything recorded of a deleted job."""
        for key in [key for key in self._watched if key.name.job == job]:
            del self._watched[key]
        await self.metrics.remove(job)

    async def settle(self, job: str) -> None:
        """Sample now if the last look at an ended job is still due."""
        if any(key.name.job == job for key in self._watched):
            await self.look()

    async def run(self) -> None:
        """Sample periodically while any run is watched."""
        while True:
            if not self._watched:
                self._some.clear()
                await self._some.wait()
            await asyncio.sleep(self.every)
            try:
                await self.look()
            except TrainshedError as error:
                log.warning("the usage of replicas could not be sampled: %s", error.message)

    async def look(self) -> None:
        """Sample all watched runs once. A run that has ended is sampled for the last time."""
        async with self._looking:
            await self._look()

    async def _look(self) -> None:
        watched = dict(self._watched)
        alive = await self._alive(watched)
        usages: Mapping[RunKey, Usage] = {}
        if self.stats is not None and alive:
            usages = await self.stats.sample()
        reports = await self.metrics.reports([item.source for item in watched.values()])
        now = self.clock.now()  # one for all: graphs of replicas share their moments
        samples: dict[str, list[Sample]] = {}
        readings: list[RunReading] = []
        for key, watched_run in watched.items():
            reading, some = self._take(key, watched_run, usages.get(key), reports.get(key.name), now)
            samples.setdefault(key.name.job, []).extend(some)
            if key in alive:
                readings.append(reading)
            else:
                self._watched.pop(key, None)
        await self.metrics.record({job: some for job, some in samples.items() if some})
        self.show(readings)

    async def _alive(self, watched: Mapping[RunKey, _WatchedRun]) -> frozenset[RunKey]:
        alive: set[RunKey] = set()
        for job in {key.name.job for key in watched}:
            alive.update(seen.key for seen in await self.backend.observe(job) if seen.alive)
        return frozenset(alive & watched.keys())

    def _take(
        self, key: RunKey, run: _WatchedRun, usage: Usage | None, report: Report | None, now: datetime
    ) -> tuple[RunReading, list[Sample]]:
        task = key.name.task
        values: Mapping[str, float] = {}
        if usage is not None:
            if run.before is None and run.begun is not None:
                run.before = _nothing(usage.taken - (asyncio.get_running_loop().time() - run.begun))
            values = rates(run.before, usage)
        samples = [Sample(task, name, now, value) for name, value in values.items()]
        run.before = usage or run.before
        if report is not None and report != run.last:
            samples += report_samples(task, replace(report, at=now))
            if run.first is None or (report.step or 0) < (run.first.step or 0):
                run.first = report  # the program has started over
            run.last = report
        return RunReading(key=key, usage=usage, values=values, report=report, first=run.first), samples


def _nothing(taken: float) -> Usage:
    """The usage of a run at its start."""
    return Usage(taken=taken, cpu_seconds=0.0, read_bytes=0, written_bytes=0, received_bytes=0, sent_bytes=0)
