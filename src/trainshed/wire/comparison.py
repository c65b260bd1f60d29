"""Parses the request of customJobs:compare. Invalid has every violation."""

import re
from dataclasses import dataclass

from trainshed.core.comparison import FEWEST_POINTS, MOST_JOBS, ComparisonRequest
from trainshed.core.curve import Over
from trainshed.core.query import Condition
from trainshed.wire.base import Message, int32, number, read, text, texts
from trainshed.wire.faults import Faults
from trainshed.wire.job_filter import parse_filter

MOST_POINTS = 2000
_NAME = re.compile(r"projects/([^/]+)/locations/([^/]+)/customJobs/([^/]+)")
_LABELS = "labels."


class _CompareBody(Message):
    jobs: tuple[str, ...] = texts()
    filter: str = text()
    metrics: tuple[str, ...] = texts()
    over: str = text()
    points: int = int32()
    group_by: str = text()
    start: float | None = number()
    end: float | None = number()


@dataclass(frozen=True, slots=True)
class AskedComparison:
    request: ComparisonRequest
    names: tuple[tuple[str, str, str], ...]  # project, location and id; empty: those the condition holds for
    where: Condition | None


def parse_comparison(body: object) -> AskedComparison:
    faults = Faults("compare_request")
    given = read(_CompareBody, body, faults)
    names = _names(given, faults)
    over = _over(given, faults)
    if not (0 <= given.points <= MOST_POINTS):
        faults.add("points", f"must be at most {MOST_POINTS}, and not {given.points}.")
    if given.group_by and not given.group_by.removeprefix(_LABELS).strip():
        faults.add("group_by", "must name a label, as labels.KEY.")
    elif given.group_by and not given.group_by.startswith(_LABELS):
        faults.add("group_by", f"must be labels.KEY, not '{given.group_by[:60]}'.")
    if given.start is not None and given.end is not None and given.start >= given.end:
        faults.add("end", f"must be after start, {given.start:g}, and not {given.end:g}.")
    faults.settle()
    request = ComparisonRequest(
        metrics=frozenset(given.metrics),
        over=over,
        points=max(FEWEST_POINTS, given.points) if given.points else ComparisonRequest().points,
        group_by=given.group_by.removeprefix(_LABELS),
        since=given.start,
        until=given.end,
    )
    return AskedComparison(request, names, None if names else parse_filter(given.filter, is_own=True))


def _names(given: _CompareBody, faults: Faults) -> tuple[tuple[str, str, str], ...]:
    if given.jobs and given.filter:
        faults.add("filter", "must not be given beside jobs: leave out one of them.")
    if len(given.jobs) > MOST_JOBS:
        faults.add("jobs", f"has {len(given.jobs)} names, and at most {MOST_JOBS} can be compared.")
        return ()
    names: list[tuple[str, str, str]] = []
    for at, name in enumerate(given.jobs):
        if (match := _NAME.fullmatch(name)) is None:
            known = "projects/PROJECT/locations/LOCATION/customJobs/ID"
            faults.add(f"jobs[{at}]", f"must be {known}, not '{name[:100]}'.")
        else:
            names.append((match[1], match[2], match[3]))
    return tuple(names)


def _over(given: _CompareBody, faults: Faults) -> Over:
    if given.over and given.over not in tuple(Over):
        faults.add("over", f"must be {' or '.join(Over)}, not '{given.over[:60]}'.")
        return Over.STEP
    return Over(given.over or Over.STEP)
