"""Points of one resolution, in two append-only files: the one written now, and the one before it.

A point is 20 bytes: time, number of its series, value. Files grow in order of time, so a window is found by
halving. When the newer file spans what is to be kept, it takes the older one's place: what is kept is never
less than the span and never more than twice that. A rename is all that happens to a written byte.

Nothing is synced: what a write took survives the death of the server, not of the machine. Reading trusts no
byte: half a point at the end, or one that makes no sense, is left out.
"""

import contextlib
import math
import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from trainshed.disk.regular_file import open_regular, read_regular

Row: TypeAlias = tuple[float, int, float]  # seconds since the epoch, series, value

POINT = struct.Struct("<dId")
_TIME = struct.Struct("<d")
_NEVER = 1e11  # seconds since the epoch: no clock says that, only a damaged file
MOST_BYTES = 64 * 1024 * 1024  # of one file: a job of very many replicas keeps less than the span


@dataclass(frozen=True, slots=True)
class Resolution:
    step: int  # seconds between points; 0 for as they come
    span: float  # seconds to be kept at least

    @property
    def label(self) -> str:
        return f"{self.step}s" if self.step else "all"


RESOLUTIONS = (Resolution(0, 30 * 60.0), Resolution(10, 6 * 3600.0), Resolution(60, 30 * 86400.0))


class Segment:
    """The writing side, one at a time."""

    def __init__(self, folder: Path, resolution: Resolution) -> None:
        self._new, self._old = _paths(folder, resolution)
        self._span = resolution.span
        self._begin: float | None = None
        self._size = 0
        with contextlib.suppress(OSError):
            with os.fdopen(open_regular(self._new, os.O_RDWR), "r+b") as file:
                self._size = os.fstat(file.fileno()).st_size
                if torn := self._size % POINT.size:
                    self._size -= torn
                    file.truncate(self._size)
            self._begin = next(read_file(read_regular(self._new, POINT.size)), (None,))[0]

    def append(self, rows: Sequence[Row]) -> None:
        if not rows:
            return
        last = rows[-1][0]
        if self._begin is not None and (last - self._begin > self._span or self._size >= MOST_BYTES):
            self._new.replace(self._old)
            self._begin, self._size = None, 0
        data = b"".join(POINT.pack(*row) for row in rows)
        handle = open_regular(self._new, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            written = os.write(handle, data)
            if written != len(data):
                os.ftruncate(handle, self._size)  # a full disk: a half point would shift all that follow
                raise OSError(28, "No space left on device", str(self._new))
        finally:
            os.close(handle)
        self._size += written
        if self._begin is None:
            self._begin = rows[0][0]


def _paths(folder: Path, resolution: Resolution) -> tuple[Path, Path]:
    return folder / f"{resolution.label}.new", folder / f"{resolution.label}.old"


def read(folder: Path, resolution: Resolution, since: float, until: float) -> tuple[float | None, list[Row]]:
    """When the first point kept is, and those of a window, in the order they were written."""
    first: float | None = None
    rows: list[Row] = []
    for data in reversed(_contents(_paths(folder, resolution))):
        if first is None:
            first = next((row[0] for row in read_file(data[: POINT.size])), None)
        begin = _place(data, since)
        rows += [row for row in read_file(data[begin * POINT.size :], until) if row[0] >= since]
    return first, rows


def window(folder: Path, resolution: Resolution, since: float) -> list[bytes]:
    """The points from `since` on as they stand in the files, older first. They may be damaged."""
    contents = reversed(_contents(_paths(folder, resolution)))
    return [data[_place(data, since) * POINT.size :] for data in contents]


def _contents(paths: Sequence[Path]) -> list[bytes]:
    """Newer first: if one takes the other's place meanwhile it is met twice, and known by its number."""
    result: list[bytes] = []
    seen: set[int] = set()
    for path in paths:
        with contextlib.suppress(OSError), os.fdopen(open_regular(path), "rb") as file:
            number = os.fstat(file.fileno()).st_ino
            if number not in seen:
                seen.add(number)
                result.append(file.read(2 * MOST_BYTES))
    return result


def read_file(data: bytes, until: float = math.inf) -> Iterator[Row]:
    whole = len(data) - len(data) % POINT.size
    for at, series, value in POINT.iter_unpack(memoryview(data)[:whole]):
        if not is_sane(at, series, value):
            continue  # damaged: it says nothing about those behind it
        if at > until:
            return
        yield at, series, value


def is_sane(at: float, _series: int, value: float) -> bool:
    """Whether a row may have been written so; it may be damaged all the same."""
    return 0 < at < _NEVER and math.isfinite(value)


def _place(data: bytes, since: float) -> int:
    """The number of the first point that is not before `since`."""
    low, high = 0, len(data) // POINT.size
    while low < high:
        middle = (low + high) // 2
        if _TIME.unpack_from(data, middle * POINT.size)[0] < since:
            low = middle + 1
        else:
            high = middle
    return low
