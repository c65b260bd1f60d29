"""Reads the points of a job as columns. `store.py` calls it, in a thread.

A graph of many replicas over hours has hundreds of thousands of points: all that is done for each of them is
done by the C parts of Python. Points of one look have one time, and most looks have the same series in the
same order, so many looks are put into columns at once. It needs nothing but the folder, and trusts no byte
of it.
"""

import math
import operator
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from itertools import chain, compress
from pathlib import Path
from typing import cast

from trainshed.core.columns import NO_COLUMNS, ColumnQuery, Columns, SeriesName
from trainshed.metrics.job import read_names
from trainshed.metrics.segment import POINT, RESOLUTIONS, Resolution, is_sane, window

PACE = 2.0  # seconds between points as they come
_MANY = 512
_BLOCK = struct.Struct("<" + "dId" * _MANY)


class _FlatRows:
    """Times, numbers of series and values of rows, in order of time."""

    def __init__(self, flat: Sequence[float]) -> None:
        self.times: list[float] = list(flat[0::3])
        self.numbers = cast("list[int]", list(flat[1::3]))
        self.values: list[float] = list(flat[2::3])
        if not self._is_sane():
            rows = sorted(
                row for row in zip(self.times, self.numbers, self.values, strict=True) if is_sane(*row)
            )
            self.times, self.numbers, self.values = (
                map(list, zip(*rows, strict=True)) if rows else ([], [], [])
            )

    def _is_sane(self) -> bool:
        # A sum of finite numbers may be infinite: that costs time, and nothing else.
        if not self.times:
            return True
        if not math.isfinite(sum(self.times)) or not math.isfinite(sum(self.values)):
            return False
        ends_are_sane = is_sane(min(self.times), 0, 0) and is_sane(max(self.times), 0, 0)
        return ends_are_sane and self.times == sorted(self.times)

    def cut(self, first: int, end: int) -> None:
        self.times, self.numbers = self.times[first:end], self.numbers[first:end]
        self.values = self.values[first:end]

    def keep(self, wanted: Mapping[int, SeriesName]) -> None:
        chosen = [number in wanted for number in self.numbers]
        if not all(chosen):
            self.times = [*compress(self.times, chosen)]
            self.values = [*compress(self.values, chosen)]
            self.numbers = [*compress(self.numbers, chosen)]

    def add(self, other: "_FlatRows") -> None:
        self.times += other.times
        self.numbers += other.numbers
        self.values += other.values


def read_columns(folder: Path, asked: ColumnQuery) -> Columns:
    """All series that are asked for, each stretch at the coarsest resolution that does for so many points."""
    wanted = {
        number: name
        for number, name in enumerate(read_names(folder))
        if name is not None and (asked.names is None or asked.names(name[1]))
    }
    if not wanted:
        return NO_COLUMNS
    rows, coarsest = _rows(folder, asked)
    rows.keep(wanted)
    times, values = _columns(rows)
    return Columns(times, {wanted[number]: column for number, column in values.items()}, max(coarsest, PACE))


def _rows(folder: Path, asked: ColumnQuery) -> tuple[_FlatRows, int]:
    """The rows, and the step of the coarsest of them."""
    enough = _enough(asked)
    result, begin, coarsest = _FlatRows(()), -math.inf, 0
    for resolution in reversed(RESOLUTIONS[: enough + 1]):  # finer ones have what is not gathered yet
        rows = _flat(folder, resolution, max(asked.since, begin), asked.until)
        if rows.times:
            result.add(rows)
            begin, coarsest = rows.times[-1] + max(resolution.step, 1e-6), max(coarsest, resolution.step)
    for resolution in RESOLUTIONS[enough + 1 :]:  # coarser ones have what is older
        first = result.times[0] if result.times else math.inf
        if first <= asked.since:
            break
        older = _flat(folder, resolution, asked.since, min(asked.until, first))
        older.cut(0, bisect_right(older.times, first - resolution.step))
        if older.times:
            older.add(result)
            result, coarsest = older, resolution.step
    return result, coarsest


def _enough(asked: ColumnQuery) -> int:
    """The number of the coarsest resolution with at least half as many points as are asked for."""
    length = asked.until - asked.since
    fits = [at for at, kept in enumerate(RESOLUTIONS) if kept.step * asked.points <= 2 * length]
    return max(fits, default=0)


def _flat(folder: Path, resolution: Resolution, since: float, until: float) -> _FlatRows:
    result = _FlatRows(())
    for data in window(folder, resolution, since):
        whole = len(data) - len(data) % _BLOCK.size
        flat = [*chain.from_iterable(_BLOCK.iter_unpack(data[:whole]))]
        flat += chain.from_iterable(POINT.iter_unpack(data[whole : len(data) - len(data) % POINT.size]))
        rows = _FlatRows(flat)
        rows.cut(bisect_left(rows.times, since), bisect_right(rows.times, until))
        result.add(rows)
    return result


def _columns(rows: _FlatRows) -> tuple[list[float], dict[int, list[float | None]]]:
    times, numbers, values = rows.times, rows.numbers, rows.values
    moments: list[float] = []
    columns: dict[int, list[float | None]] = {}
    at = 0
    while at < len(times):
        size = bisect_right(times, times[at], at) - at
        end = at + size * _alike(times, numbers, at, size)
        first = len(moments)
        moments += times[at:end:size]
        for place in range(at, at + size):
            column = columns.setdefault(numbers[place], [])
            column += [None] * (first - len(column))
            column[first:] = values[place:end:size]  # of a series that a look has twice the last value counts
        at = end
    for column in columns.values():
        column.extend([None] * (len(moments) - len(column)))
    return moments, columns


def _alike(times: list[float], numbers: list[int], at: int, size: int) -> int:
    """How many looks of that size, from there on, have the same series in the same order; perhaps fewer."""
    pattern = numbers[at : at + size]
    most = (len(times) - at) // size
    count = 1
    while count < most:
        more = min(most, 2 * count)
        begin, end = at + size * count, at + size * more
        firsts = times[begin:end:size]
        is_alike = (
            numbers[begin:end] == pattern * (more - count)
            and firsts == times[begin + size - 1 : end : size]
            and times[begin - 1] < firsts[0]
            and all(map(operator.lt, firsts, firsts[1:]))
            and (end == len(times) or firsts[-1] < times[end])
        )
        if not is_alike:
            break
        count = more
    return count
