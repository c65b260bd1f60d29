"""What replicas use and report: counters of a backend, stored samples, series, and progress. Pure arithmetic.

A backend returns counters (Usage); the collector computes rates and stores Samples; queries return Series.
Programs send Reports about themselves. No clock, no files.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import assert_never

from trainshed.core.names import RunKey

REPORT = "TRAINSHED_REPORT"  # names the file a replica may report into (trainshed.report)
HYPERTUNE = "CLOUD_ML_HP_METRIC_FILE"  # names the file that cloudml-hypertune writes
VALUE = "value."  # prefix of the series for values that a program reports besides steps


class Measure(StrEnum):
    """What a backend may be able to measure."""

    CPU = "cpu"
    MEMORY = "memory"
    DISK = "disk"
    NETWORK = "network"
    GPU = "gpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuUse:
    device: str
    share: float  # of its time, 0 to 1
    memory: int  # bytes in use
    memory_size: int = 0  # bytes it has; 0: not known


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """A run's whole process tree at one moment. None: not measured. Counters begin with the run."""

    taken: float  # seconds of the backend's monotonic clock: for differences only
    cpu_seconds: float | None = None
    memory: int | None = None  # bytes; pages shared within the run count once where possible
    read_bytes: int | None = None
    written_bytes: int | None = None
    received_bytes: int | None = None
    sent_bytes: int | None = None
    processes: int = 0
    threads: int = 0  # of all processes together, at least one of each: what a limit of processes counts
    gpus: tuple[GpuUse, ...] = ()


def hypertune_file(report: str) -> str:
    """The file of cloudml-hypertune, beside the one that a replica reports into."""
    return f"{report}.hypertune"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The last report of a program about itself."""

    at: datetime
    step: float | None = None
    total: float | None = None
    values: Mapping[str, float] = field(default_factory=dict[str, float])


class Fold(StrEnum):
    """How several values become one."""

    MEAN = "mean"
    MOST = "most"
    LAST = "last"

    def of(self, values: Sequence[float]) -> float:
        match self:
            case Fold.MEAN:
                return math.fsum(values) / len(values)
            case Fold.MOST:
                return max(values)
            case Fold.LAST:
                return values[-1]
            case _:
                assert_never(self)


@dataclass(frozen=True, slots=True)
class Point:
    at: datetime
    value: float


@dataclass(frozen=True, slots=True)
class Sample:
    """One finite value of one series of a job."""

    task: str
    name: str
    at: datetime
    value: float


@dataclass(frozen=True, slots=True)
class Series:
    task: str
    name: str
    points: tuple[Point, ...]

    @property
    def unit(self) -> str:
        return unit_of(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricQuery:
    since: datetime
    until: datetime
    step: timedelta = timedelta()  # points at most this often; zero for all that is kept


_UNITS = {
    "cpu": "cores",
    "memory": "bytes",
    "disk_read": "bytes/s",
    "disk_write": "bytes/s",
    "network_in": "bytes/s",
    "network_out": "bytes/s",
    "processes": "processes",
    "threads": "threads",
    "step": "steps",
    "total": "steps",
}


def unit_of(name: str) -> str:
    if name.startswith(VALUE):
        return ""
    if name.startswith("gpu_memory"):
        return "bytes"
    return "share" if name.startswith("gpu") else _UNITS.get(name, "")


def fold_of(name: str) -> Fold:
    """How to thin a series: the peak of memory, the last of reported values, the mean of all others."""
    if name.startswith(VALUE) or name in ("step", "total"):
        return Fold.LAST
    return Fold.MOST if "memory" in name else Fold.MEAN


def bucket(at: float, step: float) -> float:
    """The start of the interval of length `step` that contains a moment."""
    return math.floor(at / step) * step


def thinned(series: Series, step: timedelta) -> Series:
    """One point per step, at the step's beginning."""
    length = step.total_seconds()
    if length <= 0:
        return series
    groups: dict[float, list[Point]] = {}
    for point in series.points:
        groups.setdefault(bucket(point.at.timestamp(), length), []).append(point)
    fold = fold_of(series.name)
    points = (
        Point(datetime.fromtimestamp(start, group[0].at.tzinfo), fold.of([p.value for p in group]))
        for start, group in groups.items()
    )
    return Series(series.task, series.name, tuple(points))


def rates(before: Usage | None, now: Usage) -> dict[str, float]:
    """The values of one moment: levels as they are, counters as their growth per second since `before`."""
    result: dict[str, float] = {}
    if now.memory is not None:
        result["memory"] = float(now.memory)
    if now.processes:
        result["processes"] = float(now.processes)
    if now.threads:
        result["threads"] = float(now.threads)
    for gpu in now.gpus:
        result[f"gpu{gpu.device}"] = gpu.share
        result[f"gpu_memory{gpu.device}"] = float(gpu.memory)
    passed = now.taken - before.taken if before is not None else 0.0
    if before is None or passed <= 0:
        return result
    for name, old, new in (
        ("cpu", before.cpu_seconds, now.cpu_seconds),
        ("disk_read", before.read_bytes, now.read_bytes),
        ("disk_write", before.written_bytes, now.written_bytes),
        ("network_in", before.received_bytes, now.received_bytes),
        ("network_out", before.sent_bytes, now.sent_bytes),
    ):
        if old is not None and new is not None:
            result[name] = max(0.0, new - old) / passed
    return result


def report_samples(task: str, report: Report) -> list[Sample]:
    """A report as samples. NaN and infinite values are left out: they cannot be drawn."""
    named = {f"{VALUE}{name}": value for name, value in report.values.items()}
    plain = {"step": report.step, "total": report.total}
    return [
        Sample(task, name, report.at, value)
        for name, value in {**plain, **named}.items()
        if value is not None and math.isfinite(value)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    task: str
    at: datetime
    step: float | None
    total: float | None
    values: Mapping[str, float]
    left: timedelta | None = None  # the remaining time at the pace so far

    @property
    def share(self) -> float | None:
        if self.step is None or not self.total or self.total <= 0:
            return None
        return min(1.0, max(0.0, self.step / self.total))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReading:
    """One run at one reading of the collector."""

    key: RunKey
    usage: Usage | None
    values: Mapping[str, float]
    report: Report | None
    first: Report | None  # the run's first report: its pace is measured from it


def progress(task: str, report: Report, first: Report | None, now: datetime) -> Progress:
    """The progress of a program, and its remaining time by the pace since its first report."""
    return Progress(
        task=task,
        at=report.at,
        step=report.step,
        total=report.total,
        values=report.values,
        left=_left(report, first, now),
    )


def _left(report: Report, first: Report | None, now: datetime) -> timedelta | None:
    if report.step is None or report.total is None or first is None or first.step is None:
        return None
    passed, done = (report.at - first.at).total_seconds(), report.step - first.step
    if done <= 0 or passed <= 0:
        return timedelta() if report.step >= report.total else None
    seconds = (report.total - report.step) / (done / passed) - (now - report.at).total_seconds()
    return timedelta(seconds=min(max(0.0, seconds), 1e9)) if math.isfinite(seconds) else None


def last_progress(series: Iterable[Series]) -> Progress | None:
    """The progress from stored series: of the first replica that reported steps, else any values."""
    last_points: dict[str, dict[str, Point]] = {}  # by task and name
    for item in series:
        if item.points and fold_of(item.name) is Fold.LAST:
            last_points.setdefault(item.task, {})[item.name] = item.points[-1]
    for task, points in sorted(last_points.items(), key=lambda item: ("step" not in item[1], item[0])):
        step, total = points.get("step"), points.get("total")
        return Progress(
            task=task,
            at=max(point.at for point in points.values()),
            step=step.value if step else None,
            total=total.value if total else None,
            values={n.removeprefix(VALUE): p.value for n, p in points.items() if n.startswith(VALUE)},
        )
    return None
