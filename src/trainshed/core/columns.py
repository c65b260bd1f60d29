"""The series of a job as columns over shared moments, narrowed to what a graph can show. Pure.

The metric store makes Columns; `service/graphs.py` and `core/curve.py` read them. Every column has a value,
or None, for each moment. Narrowing keeps the extremes of each stretch, so that no peak is lost on a screen.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from trainshed.core.metrics import VALUE, Fold, fold_of

Column: TypeAlias = Sequence[float | None]
SeriesName: TypeAlias = tuple[str, str]  # task and name


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnQuery:
    since: float  # seconds since 1970
    until: float
    points: int  # how many moments are wanted: coarser points do where they are at least half as many
    names: Callable[[str], bool] | None = None  # which series, by name; None: all


@dataclass(frozen=True, slots=True)
class Columns:
    times: Sequence[float]  # seconds since 1970, rising
    values: Mapping[SeriesName, Column]
    spacing: float = 0.0  # seconds between moments while all runs well, at most


@dataclass(frozen=True, slots=True)
class ReportedColumns:
    """What one replica reported, by name, beside its steps."""

    task: str
    times: Sequence[float]
    steps: Column
    values: Mapping[str, Column]


NO_COLUMNS = Columns((), {})


def used(columns: Columns) -> Columns:
    """The columns of what replicas used."""
    values = {name: column for name, column in columns.values.items() if not _is_reported(name[1])}
    return _occupied(Columns(columns.times, values, columns.spacing))


def reported(columns: Columns) -> list[Columns]:
    """The columns of what each replica reported, without the moments at which it reported nothing."""
    by_task: dict[str, dict[SeriesName, Column]] = {}
    for (task, name), column in sorted(columns.values.items()):
        if _is_reported(name):
            by_task.setdefault(task, {})[task, name] = column
    return [_occupied(Columns(columns.times, values)) for values in by_task.values()]


def named(columns: Columns) -> ReportedColumns:
    """The columns of one replica's reports, by the names that the program gave."""
    [task] = {task for task, _ in columns.values}
    values = {
        name.removeprefix(VALUE): column
        for (_, name), column in columns.values.items()
        if name.startswith(VALUE)
    }
    steps = columns.values.get((task, "step"), [None] * len(columns.times))
    return ReportedColumns(task, columns.times, steps, values)


def narrowed(columns: Columns, points: int) -> Columns:
    """At most `points` moments: for each stretch of time the lowest and the highest value, as they came."""
    times = columns.times
    if len(times) <= points:
        return columns
    cells = _cells(times, max(1, points // 2))
    moments: list[float] = []
    for first, end in cells:
        moments += [times[first]] if end - first == 1 else [times[first], times[end - 1]]
    values = {name: _extremes(column, cells) for name, column in columns.values.items()}
    spacing = max(columns.spacing, 2 * (times[-1] - times[0]) / max(1, points // 2))
    return Columns(moments, values, spacing)


def with_gaps(columns: Columns) -> Columns:
    """A moment without values in each stretch in which nothing was measured, so that no line crosses it."""
    times, longest = columns.times, 3 * columns.spacing
    gaps = [at for at in range(1, len(times)) if times[at] - times[at - 1] > longest]
    if not gaps or not columns.spacing:
        return columns
    moments = _with_each(times, gaps, lambda at: (times[at - 1] + times[at]) / 2)
    values = {name: _with_each(column, gaps, lambda _: None) for name, column in columns.values.items()}
    return Columns([at for at in moments if at is not None], values, columns.spacing)


def _with_each(items: Column, places: Sequence[int], new: Callable[[int], float | None]) -> Column:
    result: list[float | None] = []
    begin = 0
    for at in places:
        result += items[begin:at]
        result.append(new(at))
        begin = at
    return [*result, *items[begin:]]


def _is_reported(name: str) -> bool:
    return fold_of(name) is Fold.LAST


def _occupied(columns: Columns) -> Columns:
    """Without the moments at which no column has a value."""
    if not columns.values:
        return NO_COLUMNS
    full = next((column for column in columns.values.values() if None not in column), None)
    if full is not None:
        return columns
    taken = [any(value is not None for value in row) for row in zip(*columns.values.values(), strict=True)]
    values = {
        name: [value for value, is_taken in zip(column, taken, strict=True) if is_taken]
        for name, column in columns.values.items()
    }
    times = [at for at, is_taken in zip(columns.times, taken, strict=True) if is_taken]
    return Columns(times, values, columns.spacing)


def _cells(times: Sequence[float], count: int) -> list[tuple[int, int]]:
    """The moments of each of so many equal stretches, as slices; empty stretches are left out."""
    width = (times[-1] - times[0]) / count
    edges = [bisect_left(times, times[0] + number * width) for number in range(1, count)]
    bounds = [0, *edges, len(times)]
    return [(first, end) for first, end in pairwise(bounds) if first < end]


def _extremes(column: Column, cells: Sequence[tuple[int, int]]) -> list[float | None]:
    result: list[float | None] = []
    for first, end in cells:
        part = [value for value in column[first:end] if value is not None]
        if end - first == 1:
            result += column[first:end]
        elif not part:
            result += (None, None)
        else:
            low, high = min(part), max(part)
            result += (low, high) if part.index(low) <= part.index(high) else (high, low)
    return result


@dataclass(frozen=True, slots=True)
class ColumnSummary:
    last: float
    least: float
    most: float
    mean: float


def summary(column: Column) -> ColumnSummary | None:
    """None where the column has no value."""
    values = [value for value in column if value is not None]
    if not values:
        return None
    return ColumnSummary(values[-1], min(values), max(values), math.fsum(values) / len(values))
