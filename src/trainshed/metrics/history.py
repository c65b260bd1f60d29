"""All that one replica reported through files, kept in a journal: the files have only its latest reports.

The metric store makes one for each replica that a study asks for, and looks through it every two seconds.
The journal is the server's own file. It has a line for each report, and is thinned when it is full: the
first, the last, the lowest and the highest value of each name stay. A line that was torn costs itself. What
is in the program's files twice is in the journal once. It trusts no byte of any file.
"""

import json
import os
import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from trainshed.core.metrics import Report, hypertune_file
from trainshed.core.tuning.measurement import MetricChannel, ReportedEntry, evenly, extremes, valid_step
from trainshed.disk.regular_file import open_regular, read_regular, write_regular
from trainshed.metrics.hypertune import parse_tuned, read_end
from trainshed.metrics.spoken import MOST_FILE, parse_file
from trainshed.report import HISTORY, HISTORY_SIZE

MOST_JOURNAL = 256 * 1024  # bytes
MOST_ENTRIES = 1500  # that stay of a full journal
_KNOWN = 4000  # reports that are remembered, so that none counts twice: more than the files can have
_TICK = 100_000_000  # nanoseconds: times of files are no finer than some of these

_Key = tuple[str, float, float, str]  # channel, time, step as given, names


@dataclass(frozen=True, slots=True)
class _Journaled:
    entry: ReportedEntry
    given: float  # the step as the program gave it; -1: it gave none
    is_counted: bool  # its step is the number of reports without one before it

    @property
    def key(self) -> _Key:
        return self.entry.channel, self.entry.at, self.given, ",".join(self.entry.values)

    def line(self) -> bytes:
        entry = self.entry
        row = [entry.channel, entry.at, entry.step, self.given, self.is_counted, dict(entry.values)]
        return f"{json.dumps(row)}\n".encode()


class ReplicaHistory:
    """Not for two threads."""

    def __init__(self, report: str, journal: Path) -> None:
        self._report, self._tuned, self._journal = report, hypertune_file(report), journal
        self._stamps: dict[str, tuple[int, int, int]] = {}
        self._rows = _load(journal)
        self._known: OrderedDict[_Key, None] = OrderedDict((row.key, None) for row in self._rows)
        self._counts: dict[tuple[str, str], int] = {}  # the next step of names that are reported without one
        for row in self._rows:
            self._count(row)
        self._size = sum(len(row.line()) for row in self._rows)

    @property
    def entries(self) -> tuple[ReportedEntry, ...]:
        return tuple(row.entry for row in self._rows)

    def look(self) -> None:
        """Take over what is new in the files. Raises OSError where the journal cannot be written."""
        fresh: list[_Journaled] = []
        if self._changed(self._tuned):
            fresh += self._unknown(_tuned(self._tuned))
        if self._changed(self._report):
            fresh += self._unknown(_reported(self._report))
        if not fresh:
            return
        self._rows += fresh
        lines = b"".join(row.line() for row in fresh)
        self._size += len(lines) + 1
        if self._size > MOST_JOURNAL:
            self._rows = _thinned(self._rows)
            self._rewrite()
        else:
            self._append(lines)

    def _changed(self, path: str) -> bool:
        try:
            status = os.lstat(path)
        except OSError:
            return False
        stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        if self._stamps.get(path) == stamp:
            return False
        # A file that was changed just now may change again without another time.
        if time.time_ns() - status.st_mtime_ns > _TICK:
            self._stamps[path] = stamp
        return True

    def _unknown(self, given: Iterable[tuple[ReportedEntry, float]]) -> list[_Journaled]:
        """Those that were not seen before, each with its step."""
        rows: list[_Journaled] = []
        for entry, step in given:
            # hypertune says 0 where it was given no step.
            no_step = step < 0 or (step == 0 and entry.channel is MetricChannel.HYPERTUNE)
            row = _Journaled(entry, step, is_counted=no_step)
            if row.key in self._known:
                continue
            self._known[row.key] = None
            if row.is_counted:
                count = max((self._counts.get((entry.channel, name), 0) for name in entry.values), default=0)
                counted = ReportedEntry(entry.channel, entry.at, count, entry.values)
                row = _Journaled(counted, step, is_counted=True)
            self._count(row)
            rows.append(row)
        while len(self._known) > _KNOWN:
            self._known.popitem(last=False)
        return rows

    def _count(self, row: _Journaled) -> None:
        if row.is_counted:
            for name in row.entry.values:
                self._counts[row.entry.channel, name] = row.entry.step + 1

    def _append(self, lines: bytes) -> None:
        self._journal.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # An end of line first: the last line of an earlier server may be torn.
        write_regular(self._journal, b"\n" + lines, os.O_APPEND)

    def _rewrite(self) -> None:
        lines = b"".join(row.line() for row in self._rows)
        fresh = self._journal.with_name(f"{self._journal.name}.new")
        write_regular(fresh, lines)
        fresh.replace(self._journal)
        self._size = len(lines)


def _thinned(rows: Sequence[_Journaled]) -> list[_Journaled]:
    places: dict[tuple[str, str], list[int]] = {}
    for at, row in enumerate(rows):
        for name in row.entry.values:
            places.setdefault((row.entry.channel, name), []).append(at)
    kept: set[int] = set()
    for (_, name), where in places.items():
        kept |= {where[at] for at in extremes([rows[place].entry.values[name] for place in where])}
    most = MOST_ENTRIES
    while True:  # fewer where rows are long
        chosen = [rows[at] for at in evenly(len(rows), kept, most)]
        if most == 1 or sum(len(row.line()) for row in chosen) <= MOST_JOURNAL // 2:
            return chosen
        most //= 2


def _tuned(path: str) -> list[tuple[ReportedEntry, float]]:
    try:
        values = parse_tuned(read_end(path))
    except OSError:
        return []
    channel = MetricChannel.HYPERTUNE
    return [(ReportedEntry(channel, v.at, v.step, {v.tag: v.value}), float(v.step)) for v in values]


def _reported(path: str) -> list[tuple[ReportedEntry, float]]:
    """The latest reports; of a program with an older `trainshed.report` the last one, with all its values."""
    try:
        lines = read_regular(path, HISTORY_SIZE, HISTORY).split(b"\n")
        if len(lines) == 1:
            lines = read_regular(path, MOST_FILE).split(b"\n")[:1]
    except OSError:
        return []
    reports = [report for line in lines if (report := parse_file(line)) is not None]
    return [_from_report(report) for report in sorted(reports, key=lambda report: report.at) if report.values]


def _from_report(report: Report) -> tuple[ReportedEntry, float]:
    step = valid_step(report.step)
    entry = ReportedEntry(MetricChannel.REPORT, report.at.timestamp(), step or 0, report.values)
    return entry, -1.0 if step is None else float(step)


def _load(journal: Path) -> list[_Journaled]:
    try:
        handle = open_regular(journal)
    except OSError:
        return []
    with os.fdopen(handle, "rb") as file:
        lines = file.read(2 * MOST_JOURNAL).split(b"\n")
    return [row for line in lines if (row := _row(line)) is not None]


def _row(line: bytes) -> _Journaled | None:
    try:
        row: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    match row:
        case [str(channel), float(at), int(step), float(given), bool(is_counted), dict()]:
            try:
                values = cast(dict[str, float], row[-1])
                named = {name: float(value) for name, value in values.items()}
                return _Journaled(
                    ReportedEntry(MetricChannel(channel), at, step, named), given, is_counted=is_counted
                )
            except (TypeError, ValueError):
                return None
        case _:
            return None
