"""One job's folder: the names of its series, and its points at every resolution.

    series     a line per series, ["workerpool0-0", "cpu"]; its number is the line's
    all.new …  points as recorded, every 10 s, every 60 s (segment.py)

The coarser points are made while the finer ones come in. Those of a stretch that is not over are only in
memory; a server that takes the job up again makes them anew from the finer file, which has them all.
It may assume that one thread at a time writes to a job; reading needs nothing but the folder.
"""

import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from trainshed.core.metrics import MetricQuery, Point, Sample, Series, bucket, fold_of, thinned
from trainshed.disk.regular_file import read_regular, write_regular
from trainshed.metrics.segment import RESOLUTIONS, Row, Segment, read

MOST_SERIES = 50_000
MOST_NAMES = MOST_SERIES * 1024  # bytes of the names of so many series: a name has 100 characters at most

Names = list[tuple[str, str] | None]  # None for a damaged line: it still has its number


class JobMetrics:
    """The writing side of a job."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = folder
        self._names = read_names(folder, mend=True)
        self._numbers = {name: at for at, name in enumerate(self._names) if name is not None}
        self._segments = [Segment(folder, resolution) for resolution in RESOLUTIONS]
        self._gathering = [_Gathering(resolution.step) for resolution in RESOLUTIONS[1:]]
        self._last = 0.0
        self._catch_up()

    def record(self, samples: Sequence[Sample]) -> None:
        rows: list[Row] = []
        for sample in samples:
            at = sample.at.timestamp()
            number = self._number(sample.task, sample.name)
            if number is not None and at >= self._last:
                rows.append((at, number, sample.value))
        rows.sort(key=lambda row: row[0])
        if rows:
            self._segments[0].append(rows)
            self._last = rows[-1][0]
            for segment, gathering in zip(self._segments[1:], self._gathering, strict=True):
                segment.append(gathering.add(rows, self._names))

    def _number(self, task: str, name: str) -> int | None:
        number = self._numbers.get((task, name))
        if number is None and len(self._names) < MOST_SERIES:
            number = self._numbers[task, name] = len(self._names)
            self._names.append((task, name))
            line = f"{json.dumps([task, name])}\n"
            write_regular(self._folder / "series", line.encode(), os.O_APPEND)
        return number

    def _catch_up(self) -> None:
        """Gather what an earlier server had gathered."""
        _, rows = read(self._folder, RESOLUTIONS[0], 0.0, float("inf"))
        if not rows:
            return
        self._last = rows[-1][0]
        for segment, gathering in zip(self._segments[1:], self._gathering, strict=True):
            resolution = RESOLUTIONS[1 + self._gathering.index(gathering)]
            _, written = read(self._folder, resolution, rows[0][0] - resolution.step, float("inf"))
            over = written[-1][0] + resolution.step if written else 0.0
            segment.append(gathering.add([row for row in rows if row[0] >= over], self._names))


class _Gathering:
    """Values of the stretch that is not over, by series; what is over comes out as one point."""

    def __init__(self, step: int) -> None:
        self._step = step
        self._begin = 0.0
        self._values: dict[int, list[float]] = {}

    def add(self, rows: Sequence[Row], names: Names) -> list[Row]:
        done: list[Row] = []
        for at, number, value in rows:
            begin = bucket(at, self._step)
            if begin > self._begin:
                done += self._close(names)
                self._begin = begin
            self._values.setdefault(number, []).append(value)
        return done

    def _close(self, names: Names) -> list[Row]:
        closed: list[Row] = []
        for number, values in self._values.items():
            name = names[number] if number < len(names) else None
            if name is not None:
                closed.append((self._begin, number, fold_of(name[1]).of(values)))
        self._values = {}
        return closed


def read_names(folder: Path, *, mend: bool = False) -> Names:
    try:
        data = read_regular(folder / "series", MOST_NAMES)
    except OSError:
        return []
    whole = data[: data.rfind(b"\n") + 1]
    if mend and len(whole) < len(data):
        write_regular(folder / "series", whole)
    return [_name(line) for line in whole.splitlines()]


def _name(line: bytes) -> tuple[str, str] | None:
    try:
        entry: Any = json.loads(line)
    except ValueError:
        return None
    match entry:
        case [str(task), str(name)]:
            return task, name
        case _:
            return None


def read_job(folder: Path, asked: MetricQuery) -> tuple[Series, ...]:
    """Every series of a window, each part of it at the finest resolution that has it whole."""
    names = read_names(folder)
    since, until = asked.since.timestamp(), asked.until.timestamp()
    rows_by_series: dict[int, list[Row]] = {}
    begin = float("inf")
    for resolution in RESOLUTIONS:
        first, rows = read(folder, resolution, since, until)
        older: dict[int, list[Row]] = {}
        for row in rows:
            if row[0] + resolution.step <= begin and row[0] < begin:
                older.setdefault(row[1], []).append(row)
        for number, points in older.items():
            rows_by_series[number] = points + rows_by_series.get(number, [])
        begin = min(begin, first) if first is not None else begin
    series = (
        thinned(Series(*name, _points(rows_by_series[number])), asked.step)
        for number, name in enumerate(names)
        if name is not None and number in rows_by_series
    )
    return tuple(sorted(series, key=lambda entry: (entry.task, entry.name)))


def _points(rows: Sequence[Row]) -> tuple[Point, ...]:
    by_time = {at: value for at, _, value in rows}
    return tuple(Point(datetime.fromtimestamp(at, UTC), value) for at, value in sorted(by_time.items()))
