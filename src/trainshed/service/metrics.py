"""Use cases of metrics: what runs now, what a job used, and its progress.

The collector calls `LatestReadings.show` at each reading and writes the metric store; `api/metrics.py` calls
the rest. What runs now comes from memory, what a job used from the metric store, which this module only
reads.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from trainshed.core.jobs.job import Job, JobState
from trainshed.core.metrics import (
    MetricQuery,
    Point,
    Progress,
    RunReading,
    Series,
    last_progress,
    progress,
)
from trainshed.core.names import RunKey
from trainshed.core.ports import Clock, MetricStore, Store

RECENT = 30  # points of each series kept in memory: a minute
MOST_POINTS = 2000  # of one series in one answer: a longer window has longer steps


@dataclass(slots=True)
class LatestReadings:
    """The collector's latest reading of each run, and the last minute of each series."""

    clock: Clock
    _by_job: dict[str, list[RunReading]] = field(default_factory=dict[str, list[RunReading]])
    _recent: dict[tuple[RunKey, str], deque[Point]] = field(
        default_factory=dict[tuple[RunKey, str], deque[Point]]
    )

    def show(self, readings: Sequence[RunReading]) -> None:
        now = self.clock.now()
        recent: dict[tuple[RunKey, str], deque[Point]] = {}
        for reading in readings:
            for name, value in reading.values.items():
                points = self._recent.get((reading.key, name)) or deque(maxlen=RECENT)
                points.append(Point(now, value))
                recent[reading.key, name] = points
        self._recent = recent
        self._by_job = {}
        for reading in sorted(readings, key=lambda reading: reading.key):
            self._by_job.setdefault(reading.key.name.job, []).append(reading)

    def of(self, job: str) -> Sequence[RunReading]:
        return self._by_job.get(job, ())

    def recent(self, job: str) -> list[Series]:
        return [
            Series(reading.key.name.task, name, tuple(self._recent[reading.key, name]))
            for reading in self.of(job)
            for name in sorted(reading.values)
        ]

    def progress(self, job: str) -> Progress | None:
        """The progress of the first replica that reports steps, else of the first that reports anything."""
        reporting = [(r, r.report) for r in self.of(job) if r.report is not None]
        reporting.sort(key=lambda pair: pair[1].step is None)
        for reading, report in reporting:
            return progress(reading.key.name.task, report, reading.first, self.clock.now())
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningJob:
    """A running job with its last minute of metrics."""

    job: Job
    series: tuple[Series, ...]
    progress: Progress | None


@dataclass(slots=True)
class MetricService:
    store: Store
    metrics: MetricStore
    board: LatestReadings
    clock: Clock
    settle: Callable[[str], Awaitable[None]]  # returns once all samples of an ended job are recorded

    async def window(
        self, job: Job, length: timedelta, step: timedelta
    ) -> tuple[tuple[Series, ...], Progress | None]:
        """The series of a job for the last `length`, up to now or to its end, and its progress."""
        if job.is_final:
            await self.settle(job.id)
        until = min(self.clock.now(), _end(job)) + timedelta(seconds=1)
        step = max(step, length / MOST_POINTS)
        if step <= timedelta(seconds=2):
            step = timedelta()  # samples are stored no finer than that
        series = await self.metrics.query(job.id, MetricQuery(since=until - length, until=until, step=step))
        return series, self.board.progress(job.id) or last_progress(series)

    async def running(self, project: str, location: str) -> list[RunningJob]:
        jobs = [
            job
            for job in await self.store.active()
            if job.project == project and location in ("-", job.location)
            if job.status.state in (JobState.RUNNING, JobState.CANCELLING)
        ]
        jobs.sort(key=lambda job: (job.created_at, job.id), reverse=True)
        return [self._running(job) for job in jobs]

    def _running(self, job: Job) -> RunningJob:
        return RunningJob(
            job=job, series=tuple(self.board.recent(job.id)), progress=self.board.progress(job.id)
        )

    async def everything(self) -> tuple[list[tuple[Job, RunReading]], Mapping[JobState, int]]:
        """Every living run with its job, and how many jobs each state has."""
        readings = [(job, reading) for job in await self.store.active() for reading in self.board.of(job.id)]
        readings.sort(key=lambda pair: pair[0].id)
        return readings, await self.store.counts()


def _end(job: Job) -> datetime:
    """A few seconds after it ended, because the last reading of its replicas comes later."""
    ended = job.status.ended_at
    return (
        ended + timedelta(seconds=5)
        if ended is not None
        else datetime.max.replace(tzinfo=job.created_at.tzinfo)
    )
