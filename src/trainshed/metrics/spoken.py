"""Reads the progress that programs report, in a file of their own or in a line of their output.

The file is overwritten in place by `trainshed.report`: the time, JSON, the time again. Another file has what
cloudml-hypertune was given (hypertune.py); only who reports nothing else is shown by it. A line of output
begins with TRAINSHED_STEP: `TRAINSHED_STEP 3/100 loss=0.5`. Of output only the end is looked at, and only if
it has grown: in a flood a line may be missed, the next one will be seen. A program's bytes are never trusted.
"""

import json
import math
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from trainshed.core.metrics import Report, hypertune_file
from trainshed.disk.regular_file import read_regular
from trainshed.metrics.hypertune import parse_tuned, read_end

PREFIX = b"TRAINSHED_STEP "
TAIL = 64 * 1024
MOST_FILE = 64 * 1024
MOST_VALUES = 64


@dataclass(slots=True)
class ReportedLines:
    """What one replica has reported so far."""

    file: Path
    stdout: str
    seen: int = 0  # bytes of output looked at
    report: Report | None = None
    tuned: tuple[int, int] = (0, 0)  # of hypertune's file: when it was changed, and its size

    def look(self, now: datetime) -> Report | None:
        filed, printed = read_file(self.file), self._printed(now)
        for report in (self._tuned(), filed, printed):
            if report is not None and (self.report is None or report.at >= self.report.at):
                self.report = report
        return self.report

    def _tuned(self) -> Report | None:
        path = hypertune_file(str(self.file))
        try:
            status = os.lstat(path)
            if self.tuned == (status.st_mtime_ns, status.st_size):
                return None
            self.tuned = (status.st_mtime_ns, status.st_size)
            return last_tuned(read_end(path))
        except OSError:
            return None

    def _printed(self, now: datetime) -> Report | None:
        try:
            size = os.stat(self.stdout).st_size  # noqa: PTH116 - at every look, of every replica
            if size == self.seen:
                return None
            begin = max(self.seen if size > self.seen else 0, size - TAIL)
            data = read_regular(self.stdout, size - begin, begin)
        except OSError:
            return None
        # A line that has not ended yet is left for the next look.
        whole = data[: data.rfind(b"\n") + 1]
        cut = begin > self.seen
        self.seen = begin + len(whole) if whole or size - begin < TAIL else size
        return last_line(whole.partition(b"\n")[2] if cut else whole, now, self.report)


def read_file(path: Path) -> Report | None:
    try:
        return parse_file(read_regular(path, MOST_FILE))
    except OSError:
        return None


def parse_file(data: bytes) -> Report | None:
    words = data.split(b"\n", 1)[0].strip()
    first, _, rest = words.partition(b" ")
    text, _, last = rest.rpartition(b" ")
    if first != last or not first.isdigit():
        return None  # caught while it was being written
    try:
        content: Any = json.loads(text)
        at = datetime.fromtimestamp(int(first) / 1e9, UTC)
    except (ValueError, OverflowError, OSError, RecursionError):
        return None
    if not isinstance(content, dict):
        return None
    report = cast(dict[str, object], content)
    values = report.get("values")
    named = cast(dict[str, object], values) if isinstance(values, dict) else {}
    return Report(
        at=at, step=_finite(report.get("step")), total=_finite(report.get("total")), values=_values(named)
    )


def last_tuned(data: bytes) -> Report | None:
    """The last value of each tag in hypertune's file, and the step of the last of them."""
    entries = parse_tuned(data)
    if not entries:
        return None
    values: dict[str, object] = {entry.tag: entry.value for entry in entries}
    try:
        at = datetime.fromtimestamp(entries[-1].at, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return Report(at=at, step=entries[-1].step or None, values=_values(values))


def last_line(data: bytes, now: datetime, before: Report | None) -> Report | None:
    """The last line that begins with the prefix; values said before and not again stay."""
    at = len(data)
    while (at := data.rfind(PREFIX, 0, at)) >= 0:
        if at == 0 or data[at - 1 : at] in (b"\n", b"\r"):
            line = data[at + len(PREFIX) :].split(b"\n", 1)[0]
            return _parse_line(line.decode("utf-8", "replace"), now, before)
    return None


def _parse_line(line: str, now: datetime, before: Report | None) -> Report | None:
    step = total = None
    values: dict[str, object] = {}
    for word in line.split():
        name, sign, value = word.rpartition("=")
        if not sign:
            begin, _, end = word.partition("/")
            step, total = _finite(begin), _finite(end) if end else total
        elif name == "step":
            step = _finite(value)
        elif name == "total":
            total = _finite(value)
        else:
            values[name] = value
    if step is None and not values:
        return None
    if before is None:
        return Report(at=now, step=step, total=total, values=_values(values))
    return Report(
        at=now,
        step=before.step if step is None else step,
        total=before.total if total is None else total,
        values=_values({**before.values, **values}),
    )


def _values(named: dict[str, object]) -> dict[str, float]:
    numbers = {name[:100]: _number(value) for name, value in named.items()}
    return dict([(name, value) for name, value in numbers.items() if value is not None][:MOST_VALUES])


def _finite(value: object) -> float | None:
    number = _number(value)
    return number if number is not None and math.isfinite(number) else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None
