"""The collector: every two seconds, while anything runs, looks at what replicas use and report, and keeps it.

It learns of a run when it is launched or found again, and looks a last time when it has ended, so the last
word of a short program is kept too. While nothing runs it sleeps and costs nothing. A look that fails is
left out: what is lost is one point, and nothing here can hold up or fail a job.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from trainshed.core.errors import TrainshedError
from trainshed.core.launch import Launch
from trainshed.core.metrics import REPORT, Report, RunReading, Sample, Usage, rates, report_samples
from trainshed.core.names import RunKey
from trainshed.core.ports import Backend, Clock, MetricStore, ReportSource, Stats

log = logging.getLogger(__name__)

EVERY = 2.0  # seconds


@dataclass(slots=True)
class _WatchedRun:
    source: ReportSource
    begun: float | None  # the loop's time at its start, where that was seen
    before: Usage | None = None
    first: Report | None = None
    last: Report | None = None


@dataclass(slots=True, kw_only=True)
class Collector:
    backend: Backend
    stats: Stats | None  # where the backend's capabilities name measures
    metrics: MetricStore
    clock: Clock
    show: Callable[[Sequence[RunReading]], None]  # told of every run that is alive, at each look
    every: float = EVERY
    _watched: dict[RunKey, _WatchedRun] = field(default_factory=dict[RunKey, _WatchedRun])
    _some: asyncio.Event = field(default_factory=asyncio.Event)
    _looking: asyncio.Lock = field(default_factory=asyncio.Lock)

    def equip(self, launch: Launch) -> Launch:
        """The launch with the variable by which its program may report. Without a place for it, as it was."""
        try:
            file = self.metrics.sink(launch.key.name)
        except TrainshedError as error:
            log.warning("%s", error.message)
            return launch
        return replace(launch, env={**launch.env, REPORT: file}, report=file) if file else launch

    def watch(self, key: RunKey, stdout: str, *, begun: bool) -> None:
        """Look at this run from now on. `begun` just now: all it has used so far is nothing."""
        if key in self._watched:
            return
        at = asyncio.get_running_loop().time() if begun else None
        self._watched[key] = _WatchedRun(ReportSource(key.name, stdout), at)
        self._some.set()

    async def forget(self, job: str) -> None:
        """The job is deleted: what was kept of it goes."""
        for key in [key for key in self._watched if key.name.job == job]:
            del self._watched[key]
        await self.metrics.remove(job)

    async def settle(self, job: str) -> None:
        """Look now where the last look at a job that is over is still to come."""
        if any(key.name.job == job for key in self._watched):
            await self.look()

    async def run(self) -> None:
        """Look, again and again, while there is something to look at."""
        while True:
            if not self._watched:
                self._some.clear()
                await self._some.wait()
            await asyncio.sleep(self.every)
            try:
                await self.look()
            except TrainshedError as error:
                log.warning("a look at what replicas use failed: %s", error.message)

    async def look(self) -> None:
        """One look at everything watched. What has ended is looked at for the last time."""
        async with self._looking:
            await self._look()

    async def _look(self) -> None:
        watched = dict(self._watched)
        alive = await self._alive(watched)
        usages: Mapping[RunKey, Usage] = {}
        if self.stats is not None and alive:
            usages = await self.stats.sample()
        reports = await self.metrics.reports([item.source for item in watched.values()])
        samples: dict[str, list[Sample]] = {}
        readings: list[RunReading] = []
        for key, watched_run in watched.items():
            reading, some = self._take(key, watched_run, usages.get(key), reports.get(key.name))
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
        self, key: RunKey, run: _WatchedRun, usage: Usage | None, report: Report | None
    ) -> tuple[RunReading, list[Sample]]:
        now, task = self.clock.now(), key.name.task
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
                run.first = report  # it has begun anew
            run.last = report
        return RunReading(key=key, usage=usage, values=values, report=report, first=run.first), samples


def _nothing(taken: float) -> Usage:
    """What a run had used when it began."""
    return Usage(taken=taken, cpu_seconds=0.0, read_bytes=0, written_bytes=0, received_bytes=0, sent_bytes=0)
