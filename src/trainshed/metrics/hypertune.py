"""Reads the file that cloudml-hypertune writes, without trusting a byte of it.

One JSON object a line, its numbers as texts. The program writes the whole file anew at each report, not at
once, and keeps its latest 100 reports: a reader may find it empty, or without its end. What is no entry is
passed over. Of a file that is too long only the end is read.
"""

import json
import math
import os
from dataclasses import dataclass
from typing import Any, cast

from trainshed.core.tuning.measurement import DEFAULT_METRIC, valid_step
from trainshed.disk.regular_file import open_regular

MOST_FILE = 256 * 1024  # bytes: many times what 100 reports take
LONGEST_TAG = 200
_LONGEST_NUMBER = 400
_OWN = frozenset({"timestamp", "trial", "global_step", "checkpoint_path"})


@dataclass(frozen=True, slots=True)
class TunedValue:
    """One entry of the file."""

    tag: str
    at: float  # seconds since the epoch
    step: int  # 0 also where the program gave none
    value: float


def read_end(path: str, most: int = MOST_FILE) -> bytes:
    """Whole lines at the end of a file, and no more than so many bytes."""
    handle = open_regular(path)
    try:
        size = os.fstat(handle).st_size
        data = os.pread(handle, most, max(0, size - most))
    finally:
        os.close(handle)
    return data.partition(b"\n")[2] if size > most else data


def parse_tuned(data: bytes) -> list[TunedValue]:
    """The entries, in the order of the reports."""
    return [entry for line in data.split(b"\n") if (entry := _entry(line)) is not None]


def _entry(line: bytes) -> TunedValue | None:
    if not line.startswith(b"{") or not line.rstrip().endswith(b"}"):
        return None
    try:
        content: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(content, dict):
        return None
    fields = cast(dict[str, object], content)
    at, value = _number(fields.get("timestamp")), None
    tag = next((name for name in fields if name not in _OWN), None)
    if tag is not None:
        value = _number(fields[tag])
    if at is None or not math.isfinite(at) or tag is None or value is None:
        return None
    return TunedValue((tag or DEFAULT_METRIC)[:LONGEST_TAG], at, _step(fields.get("global_step")), value)


def _step(given: object) -> int:
    return valid_step(_number(given)) or 0


def _number(given: object) -> float | None:
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        return None
    if isinstance(given, str) and len(given) > _LONGEST_NUMBER:
        return None
    try:
        return float(given)
    except (ValueError, OverflowError):
        return None
