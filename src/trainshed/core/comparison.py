"""Jobs beside each other: their reported metrics over shared places, the settings that differ. Pure.

`service/graphs.py` calls `compare`, in a thread.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainshed.core.columns import NO_COLUMNS, Column, Columns, ColumnSummary, summary
from trainshed.core.curve import Band, Curve, Over, band, curve, metric_names, resampled, shared_places
from trainshed.core.jobs.job import Job
from trainshed.core.jobs.job_settings import Difference, differences

MOST_JOBS = 500
MOST_VALUES = 200_000  # of one answer: with more curves each has fewer points
FEWEST_POINTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRequest:
    metrics: frozenset[str] = frozenset()  # empty: all
    over: Over = Over.STEP
    points: int = 200
    group_by: str = ""  # the key of a label; empty: every job for itself
    since: float | None = None  # the first and the last place; None: of all curves
    until: float | None = None


@dataclass(frozen=True, slots=True)
class ComparedGroup:
    """The jobs with the same value of a label; jobs without that label are a group too."""

    value: str | None
    jobs: tuple[int, ...]  # by their place in the comparison
    band: Band


@dataclass(frozen=True, slots=True)
class ComparedMetric:
    name: str
    curves: Mapping[int, Column]  # by the job's place in the comparison; empty where jobs are grouped
    groups: tuple[ComparedGroup, ...]
    summaries: Mapping[int, ColumnSummary]


@dataclass(frozen=True, slots=True)
class Comparison:
    jobs: tuple[Job, ...]
    over: Over
    places: Sequence[float]
    metrics: tuple[ComparedMetric, ...]
    differences: tuple[Difference, ...]


def compare(jobs: Sequence[Job], columns: Mapping[str, Columns], asked: ComparisonRequest) -> Comparison:
    curves = _curves(jobs, columns, asked)
    count = sum(map(len, curves.values()))
    points = min(asked.points, max(FEWEST_POINTS, MOST_VALUES // max(1, count)))
    every = [some for by_job in curves.values() for some in by_job.values()]
    places = shared_places(every, points, asked.since, asked.until)
    metrics = tuple(_metric(name, jobs, by_job, places, asked.group_by) for name, by_job in curves.items())
    return Comparison(tuple(jobs), asked.over, places, metrics, differences(jobs))


def _curves(
    jobs: Sequence[Job], columns: Mapping[str, Columns], asked: ComparisonRequest
) -> dict[str, dict[int, Curve]]:
    result: dict[str, dict[int, Curve]] = {}
    for number, job in enumerate(jobs):
        own = columns.get(job.id, NO_COLUMNS)
        began = (job.status.started_at or job.created_at).timestamp()
        for name in metric_names(own):
            if (some := curve(own, name, asked.over, began)) is not None:
                result.setdefault(name, {})[number] = some
    return dict(sorted(result.items()))


def _metric(
    name: str, jobs: Sequence[Job], curves: Mapping[int, Curve], places: Sequence[float], group_by: str
) -> ComparedMetric:
    shown = {number: resampled(some, places) for number, some in curves.items()}
    summaries = {number: total for number, some in curves.items() if (total := summary(some.values))}
    if not group_by:
        return ComparedMetric(name, shown, (), summaries)
    members: dict[str | None, list[int]] = {}
    for number in curves:
        members.setdefault(jobs[number].labels.get(group_by), []).append(number)
    groups = tuple(
        ComparedGroup(value, tuple(numbers), band([shown[number] for number in numbers]))
        for value, numbers in sorted(members.items(), key=lambda item: (item[0] is None, item[0] or ""))
    )
    return ComparedMetric(name, {}, groups, summaries)
