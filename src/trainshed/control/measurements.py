"""Measurements: reads what the programs of trials report, in four ways, and joins it.

It implements core.tuning.measurement_port.MeasurementReader. Studies call it. What programs report through
files comes from the metric store, what they print from the log store, event files from views and buckets.
What was read of output and event files is remembered by job; the next server reads both again. It changes
nothing of a job, and what a program writes never makes it fail.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from trainshed.control.event_files import EventFiles
from trainshed.control.printed_values import PrintedValues
from trainshed.core.bucket_port import Buckets
from trainshed.core.errors import TrainshedError
from trainshed.core.jobs.job import Job, planned_replicas, primary
from trainshed.core.log_port import LogStore
from trainshed.core.names import ReplicaName
from trainshed.core.ports import Clock
from trainshed.core.tuning.event_file import Crc32c
from trainshed.core.tuning.measurement import (
    MOST_NAMES,
    ChannelLook,
    MetricChannel,
    MetricPoint,
    TrialReport,
    merge,
)
from trainshed.core.tuning.measurement_port import MakePrintedMetrics, ReportedHistory
from trainshed.core.view import Views

MOST_REPLICAS = 16  # that are looked at, where the primary reports nothing
MOST_ATTEMPTS = 8  # the latest ones
MOST_QUESTIONS = 512  # that are remembered

_Question: TypeAlias = tuple[str, tuple[str, ...], str]  # a job, metrics, a pattern
_Fingerprint: TypeAlias = tuple[str, int, tuple[tuple[str, int, MetricPoint], ...]]
_FILED = (MetricChannel.HYPERTUNE, MetricChannel.REPORT)


@dataclass(slots=True)
class _Trial:
    """What is remembered of a job, for one question."""

    metrics: tuple[str, ...]
    printed: PrintedValues
    events: EventFiles
    report: TrialReport | None = None  # the last one, and what it was made of
    seen: tuple[_Fingerprint, ...] = ()
    is_complete: bool = False  # the job is over and all of it is read
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(slots=True)
class _Sighting:
    """What one channel has, as far as it was looked at."""

    curves: dict[str, list[MetricPoint]] = field(default_factory=dict[str, list[MetricPoint]])
    names: dict[str, None] = field(default_factory=dict[str, None])
    problem: str = ""

    @property
    def fingerprint(self) -> _Fingerprint:
        """Another one where there is something new."""
        ends = tuple((name, len(points), points[-1]) for name, points in self.curves.items())
        return self.problem, len(self.names), ends

    def take(self, curves: Mapping[str, list[MetricPoint]], wanted: Collection[str]) -> None:
        self.names = {**self.names, **dict.fromkeys(curves)}
        self.curves |= {name: points for name, points in curves.items() if name in wanted}


@dataclass(slots=True, kw_only=True)
class Measurements:
    reported: ReportedHistory
    logs: LogStore
    views: Views
    buckets: Buckets
    clock: Clock
    crc32c: Crc32c
    printed_metrics: MakePrintedMetrics
    _trials: dict[_Question, _Trial] = field(default_factory=dict[_Question, _Trial])

    async def read(self, job: Job, metrics: Sequence[str], pattern: str = "") -> TrialReport:
        trial = self._trial((job.id, tuple(dict.fromkeys(metrics)), pattern))
        started_at = job.status.started_at
        if started_at is None:
            return TrialReport()
        async with trial.lock:
            if trial.report is not None and trial.is_complete:
                return trial.report
            await trial.events.look(job)
            sightings = await self._look(job, trial)
            is_partial = trial.events.is_partial or any(
                sightings[channel].problem for channel in (*_FILED, MetricChannel.STDOUT)
            )
            trial.is_complete = job.is_final and not is_partial
            seen = tuple(sighting.fingerprint for sighting in sightings.values())
            if trial.report is not None and seen == trial.seen:
                return trial.report
            until = (job.status.ended_at or self.clock.now()).timestamp()
            curves = {channel: sighting.curves for channel, sighting in sightings.items()}
            measurements = merge(curves, trial.metrics, started_at.timestamp(), until)
            trial.report = TrialReport(measurements, tuple(_look(*item) for item in sightings.items()))
            trial.seen = seen
            return trial.report

    def forget(self, job_id: str) -> None:
        for question in [question for question in self._trials if question[0] == job_id]:
            del self._trials[question]

    def _trial(self, question: _Question) -> _Trial:
        _, metrics, pattern = question
        # Taken out and put in again: the first is always the one not asked for for longest.
        if (trial := self._trials.pop(question, None)) is None:
            trial = _Trial(
                metrics,
                PrintedValues(self.logs, self.printed_metrics(pattern, metrics)),
                EventFiles(self.views, self.buckets, self.crc32c, metrics),
            )
        self._trials[question] = trial
        while len(self._trials) > MOST_QUESTIONS:
            del self._trials[next(iter(self._trials))]
        return trial

    async def _look(self, job: Job, trial: _Trial) -> dict[MetricChannel, _Sighting]:
        """What each channel has: of the primary, and of others the metrics that are nowhere yet."""
        events = trial.events
        sightings = {channel: _Sighting() for channel in MetricChannel}
        sightings[MetricChannel.TENSORBOARD] = _Sighting(dict(events.curves), events.names, events.problem)
        wanted = set(trial.metrics)
        for names in _replicas(job):
            for channel, curves in (await self._filed(names, sightings)).items():
                sightings[channel].take(curves, wanted)
            printed = sightings[MetricChannel.STDOUT]
            printed.take(await trial.printed.look(job, names[0].task), wanted)
            printed.names, printed.problem = trial.printed.names, trial.printed.problem
            wanted = {
                name for name in trial.metrics if not any(name in seen.curves for seen in sightings.values())
            }
            if not wanted:
                break
        return sightings

    async def _filed(
        self, names: Sequence[ReplicaName], sightings: Mapping[MetricChannel, _Sighting]
    ) -> dict[MetricChannel, dict[str, list[MetricPoint]]]:
        """The curves of one replica in each channel of files."""
        curves: dict[MetricChannel, dict[str, list[MetricPoint]]] = {channel: {} for channel in _FILED}
        try:
            entries = await self.reported.reported(names)
        except TrainshedError as error:
            for channel in _FILED:
                sightings[channel].problem = error.message.rstrip(".")
            return curves
        for entry in entries:
            for name, value in entry.values.items():
                points = curves[entry.channel].setdefault(name, [])
                points.append(MetricPoint(entry.step, entry.at, value))
        return curves


def _replicas(job: Job) -> list[list[ReplicaName]]:
    """The replicas that may report, the primary first; each with its latest attempts."""
    first = primary(job.spec)
    planned = [(replica.pool, replica.index) for replica in planned_replicas(job.spec)][:MOST_REPLICAS]
    places = [first, *(place for place in planned if place != first)]
    latest = job.status.attempt
    attempts = range(max(0, latest - MOST_ATTEMPTS + 1), latest + 1)
    return [[ReplicaName(job.id, attempt, *place) for attempt in attempts] for place in places]


def _look(channel: MetricChannel, sighting: _Sighting) -> ChannelLook:
    return ChannelLook(channel, tuple(sighting.names)[:MOST_NAMES], sighting.problem)
