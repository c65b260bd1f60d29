"""When a log file had grown how far: fixed-size records (stamp, end), one per batch of bytes.

A batch is the bytes between the end before and its own end. The record is on file before anything of the
batch is given out, so the time of a line, once seen, never changes. Written by one process with single
appends; a record torn by a crash or a full disk is cut off again. Stamps and ends never run backwards. The
whole is never read into memory: searches read single blocks.

A record that adds no bytes marks the end of a finished file: it dates a last line without newline.
"""

import errno
import os
import struct
from collections.abc import Callable
from typing import NamedTuple

from trainshed.disk.regular_file import open_regular, read_regular

_RECORD = struct.Struct("<qq")
_BLOCK = 256  # records read at once: one page


class IndexBatch(NamedTuple):
    stamp: int
    start: int
    end: int

    @property
    def latest(self) -> int:
        """The latest time a line of this batch can have."""
        return self.stamp + self.end - self.start

    def time(self, start: int) -> int:
        """The time of the piece decided in this batch that starts there, be it in an earlier batch."""
        return self.stamp + (start - self.start + 1 if start >= self.start else 0)


class Index:
    def __init__(self, path: str, is_new: bool = False) -> None:
        self.path = path
        self.count = 0
        self.last = IndexBatch(0, 0, 0)
        if is_new:
            return
        try:
            descriptor = open_regular(path, os.O_RDWR)
        except OSError:
            return  # none, or not ours any more: then nothing of it can be shown
        try:
            size = os.fstat(descriptor).st_size
            if size % _RECORD.size:
                os.ftruncate(descriptor, size - size % _RECORD.size)
        finally:
            os.close(descriptor)
        self.count = size // _RECORD.size
        if self.count:
            self.last = Records(path, self.count).batch(self.count - 1)

    @property
    def bound(self) -> int:
        """Every later line is later than this."""
        return self.last.latest if self.count else 0

    @property
    def is_closed(self) -> bool:
        return self.count > 0 and self.last.start == self.last.end

    def append(self, stamp: int, end: int) -> None:
        """Record a batch. OSError where the disk does not take it; the index is then as before."""
        descriptor = open_regular(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            if os.write(descriptor, _RECORD.pack(stamp, end)) != _RECORD.size:
                os.ftruncate(descriptor, self.count * _RECORD.size)
                raise OSError(28, os.strerror(28), self.path)
        finally:
            os.close(descriptor)
        self.last = IndexBatch(stamp, self.last.end, end)
        self.count += 1


class Records:
    """The first `count` records of an index file, read block by block. For one reader at a time."""

    def __init__(self, path: str, count: int) -> None:
        self._path = path
        self._count = count
        self._block = -1
        self._data = b""

    def covering(self, offset: int) -> IndexBatch:
        """The batch that byte lies in. The byte must be within the recorded ones."""
        return self.batch(self.number_covering(offset))

    def number_covering(self, offset: int) -> int:
        return min(self._first(lambda batch: batch.end > offset), self._count - 1)

    def number_not_before(self, at_ns: int) -> int:
        """The number of the first batch that can hold a line of that time or later; the count where none."""
        return self._first(lambda batch: batch.latest >= at_ns)

    def number_after(self, at_ns: int) -> int:
        """The number of the first batch dated later than that; the count where none is."""
        return self._first(lambda batch: batch.stamp > at_ns)

    def not_before(self, at_ns: int) -> IndexBatch | None:
        """The first batch that can hold a line of that time or later."""
        number = self.number_not_before(at_ns)
        return self.batch(number) if number < self._count else None

    def not_after(self, at_ns: int) -> IndexBatch | None:
        """The last batch that can hold a line of that time or earlier."""
        number = self.number_after(at_ns)
        return self.batch(number - 1) if number else None

    def batch(self, number: int) -> IndexBatch:
        stamp, end = self._get(number)
        return IndexBatch(stamp, self._get(number - 1)[1] if number else 0, end)

    def _first(self, holds: Callable[[IndexBatch], bool]) -> int:
        """The number of the first batch that holds, as all later ones do; the count where none does."""
        low, high = 0, self._count
        # Most questions are about the newest lines: look into the newest block first.
        newest = max(0, (self._count - 1) // _BLOCK * _BLOCK)
        if newest and not holds(self.batch(newest)):
            low = newest + 1
        while low < high:
            middle = (low + high) // 2
            if holds(self.batch(middle)):
                high = middle
            else:
                low = middle + 1
        return low

    def _get(self, number: int) -> tuple[int, int]:
        block = number // _BLOCK
        if block != self._block:
            size = _BLOCK * _RECORD.size
            self._data = read_regular(self._path, size, block * size)
            self._block = block
        if (number % _BLOCK + 1) * _RECORD.size > len(self._data):
            self._block = -1
            raise OSError(errno.EIO, "The index is shorter than it was", self._path)
        stamp, end = _RECORD.unpack_from(self._data, number % _BLOCK * _RECORD.size)
        return stamp, end
