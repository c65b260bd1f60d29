"""How many lines of one file start before each multiple of SPAN bytes: the line index of that file.

`line_order.py` asks it; `line_numbers.py` has it extended as the file grows. Bytes are counted once, in bulk,
and the counts are kept beside the file: loaded where they are whole, made again where lost or damaged.
Memory is 8 bytes for each SPAN. Bytes that were dropped count as they are read, which may be zeros: a caller
only ever uses the difference of two counts on the same side of a drop. May be used by several threads.
"""

import contextlib
import struct
import threading
import zlib
from array import array
from bisect import bisect_right
from pathlib import Path

from trainshed.disk.regular_file import read_regular, write_regular
from trainshed.logs import lines
from trainshed.logs.drop import Drop
from trainshed.logs.file import LogFile

SPAN = 64 * 1024  # bytes: a multiple of lines.BLOCK
_WINDOW = 16  # spans read at once
_SAVED = 64  # new spans after which the counts are written: fewer are counted again quickly
_HEAD = struct.Struct("<8sQI")  # magic, how many counts, their checksum
_MAGIC = b"lines\0\0\1"


class LineCounts:
    def __init__(self, file: LogFile) -> None:
        self._file = file
        self._path = f"{file.path}.lines"
        self._lock = threading.Lock()
        self._counts = _load(self._path, file.index.last.end // SPAN)
        self._saved = len(self._counts)

    @property
    def counted(self) -> int:
        """The bytes that are counted."""
        return (len(self._counts) - 1) * SPAN

    @property
    def lines(self) -> int:
        """The lines that start in them."""
        return self._counts[-1]

    def is_complete(self, end: int) -> bool:
        return self.counted >= end // SPAN * SPAN

    def extend(self, end: int) -> None:
        """Count what is there before `end`, one window of it at most."""
        with self._lock:
            low = self.counted
            stop = min(end // SPAN, len(self._counts) - 1 + _WINDOW) * SPAN
            if stop <= low:
                return
            base = max(0, low - lines.BLOCK)
            data = self._file.read(base, stop + 3 - base)
            for edge in range(low, stop, SPAN):
                count = lines.count_starts(data, base, max(edge, 1), edge + SPAN) + (edge == 0)
                self._counts.append(self._counts[-1] + count)

    def save(self, *, is_last: bool) -> None:
        """Keep the counts beside the file, where enough are new. A disk that is full keeps none."""
        with self._lock:
            if len(self._counts) - self._saved < (1 if is_last else _SAVED):
                return
            data = self._counts.tobytes()
            head = _HEAD.pack(_MAGIC, len(self._counts), zlib.crc32(data))
            self._saved = len(self._counts)
            fresh = Path(f"{self._path}.new")
            with contextlib.suppress(OSError):
                write_regular(fresh, head + data)
                fresh.replace(self._path)

    def before(self, offset: int, drop: Drop | None) -> int:
        """How many lines start before that byte; the line that stands for dropped bytes is one."""
        if drop is None or offset <= drop.head:
            return self._starts_before(offset)
        behind = self._starts_between(drop.cut, offset) if offset > drop.cut else 0
        return self._starts_before(drop.head) + 1 + behind

    def start(self, number: int, drop: Drop | None) -> int:
        """Where the line of that number (from 0) starts: the inverse of `before`."""
        if drop is None:
            return self._start(number)
        ahead = self._starts_before(drop.head)
        if number < ahead:
            return self._start(number)
        if number == ahead:
            return drop.head
        number -= ahead + 1
        edge = -(-drop.cut // SPAN) * SPAN
        first = self._starts_between(drop.cut, edge) if edge <= self.counted else number + 1
        if number < first:
            data = self._file.read(drop.cut - 1, edge + 3 - drop.cut)
            return [drop.cut, *lines.starts_of(data, drop.cut - 1, drop.cut + 1, drop.cut + len(data))][
                number
            ]
        return self._start(number - first + self._counts[edge // SPAN], edge // SPAN)

    def _starts_before(self, offset: int) -> int:
        if offset <= 0:
            return 0
        at = min(offset // SPAN, len(self._counts) - 1)
        edge = at * SPAN
        base = max(0, edge - lines.BLOCK)
        data = self._file.read(base, offset + 3 - base)
        return self._counts[at] + lines.count_starts(data, base, max(edge, 1), offset) + (edge == 0)

    def _starts_between(self, cut: int, offset: int) -> int:
        """From a start on. What is before it is not read: it may be gone."""
        edge = -(-cut // SPAN) * SPAN
        stop = min(edge, offset) if edge <= self.counted else offset
        data = self._file.read(cut - 1, stop + 4 - cut)
        count = 1 + lines.count_starts(data, cut - 1, cut + 1, stop) if stop > cut else 0
        if stop == offset:
            return count
        return count + self._starts_before(offset) - self._counts[edge // SPAN]

    def _start(self, number: int, first: int = 0) -> int:
        at = bisect_right(self._counts, number, lo=first) - 1
        edge = at * SPAN
        base = max(0, edge - lines.BLOCK)
        data = self._file.read(base, edge + SPAN + 3 - base)
        starts = lines.starts_of(data, base, max(edge, 1), min(edge + SPAN, base + len(data)))
        return ([0, *starts] if edge == 0 else starts)[number - self._counts[at]]


def _load(path: str, most: int) -> "array[int]":
    """The counts that were kept, of `most` spans at most; of none where they are lost or damaged."""
    nothing = array("q", [0])
    try:
        data = read_regular(path, _HEAD.size + (most + 1) * 8 + 8 * 1024 * 1024)
        magic, count, checksum = _HEAD.unpack_from(data)
    except (OSError, struct.error):
        return nothing
    body = data[_HEAD.size :]
    if magic != _MAGIC or len(body) != count * 8 or not count or zlib.crc32(body) != checksum:
        return nothing
    counts = array("q", body)
    del counts[most + 1 :]
    return counts if counts[0] == 0 else nothing
