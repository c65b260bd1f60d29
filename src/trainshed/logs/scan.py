"""The lines of one file as they are dated, forwards or backwards, from anywhere.

Reads in chunks and keeps no more than one. A file is opened only while a chunk is read, so that a job of
a thousand replicas needs no thousand descriptors. May run in a thread of its own beside the one that dates
and drops: bytes read while a drop happened are thrown away and read again.
"""

from collections.abc import Iterator

from trainshed.core.logs import Line
from trainshed.logs.drop import Drop
from trainshed.logs.file import LogFile, ReadableRange
from trainshed.logs.index import IndexBatch, Records
from trainshed.logs.lines import LONGEST, UNENDED, LinePiece, boundary, pieces


class FileScan:
    """One pass over one file. `chunk` bytes are read at once, more only for a longer line."""

    def __init__(self, view: ReadableRange, chunk: int) -> None:
        self._view = view
        self._file: LogFile = view.file
        self._records = Records(view.file.index.path, view.count)
        self._chunk = chunk
        self._batch = IndexBatch(0, 0, 0)
        name = view.file.name
        self._who = (name.job, name.attempt, name.pool, name.index, view.file.stream)

    def forward(self, since_ns: int) -> Iterator[Line]:
        """All lines of that time or later, oldest first; perhaps some earlier ones before."""
        batch = self._records.not_before(since_ns) if self._view.count else None
        if batch is None:
            return
        # One byte back: a piece may be decided by the very byte at which this batch begins.
        at = batch.start + min(max(0, since_ns - batch.stamp - 1), batch.end - batch.start)
        yield from self.onward(boundary(self._file.read, max(0, at - 1)))

    def onward(self, start: int) -> Iterator[Line]:
        """The line that starts there and all behind it."""
        chunk = self._chunk
        while start < self._view.end:
            drop = self._file.drop
            if drop and drop.head <= start < drop.cut:
                yield self._marker(drop)
                start = drop.cut
                continue
            limit = drop.head if drop and start < drop.head else self._view.end
            base = max(0, start - 1)
            asked = min(limit - base, chunk)
            data = self._file.read(base, asked)
            if self._file.drop is not drop:
                continue
            whole = base + len(data) >= limit
            before = start
            for piece in pieces(data, base, start, whole and self._is_closed(limit)):
                start = piece.stop
                yield self._line(piece, limit)
            if start == before:
                if whole or len(data) < asked:
                    return
                chunk = max(chunk, LONGEST + 2)

    def backward(self, until_ns: int) -> Iterator[Line]:
        """All lines of that time or earlier, newest first; perhaps some later ones before."""
        batch = self._records.not_after(until_ns) if self._view.count else None
        if batch is None:
            return
        at = batch.start + min(until_ns - batch.stamp, batch.end - batch.start)
        stop = min(self._view.end, at + LONGEST + 1)
        while stop > 0:
            drop = self._file.drop
            if drop and drop.head < stop <= drop.cut:
                yield self._marker(drop)
                stop = drop.head
                continue
            above = drop is not None and stop > drop.cut
            limit = drop.head if drop and not above else self._view.end
            start = boundary(self._file.read, max(0, stop - self._chunk))
            if drop and above:
                start = max(start, drop.cut)
            base = max(0, start - 1)
            data = self._file.read(base, min(stop + 4, limit) - base)
            if self._file.drop is not drop:
                continue
            closed = base + len(data) >= limit and self._is_closed(limit)
            window = [piece for piece in pieces(data, base, start, closed) if piece.start < stop]
            dated = [self._line(piece, limit) for piece in window]
            stop = start
            yield from reversed(dated)

    def _is_closed(self, limit: int) -> bool:
        return self._view.is_closed or limit < self._view.end

    def _line(self, piece: LinePiece, limit: int) -> Line:
        decided = piece.decided
        if decided == UNENDED and limit == self._view.end:
            batch = self._records.batch(self._view.count - 1)
        else:
            batch = self._batch_of(limit if decided == UNENDED else decided)
        start = piece.start
        return Line(*self._who, batch.time(start), start, piece.data.decode("utf-8", "replace"))

    def _marker(self, drop: Drop) -> Line:
        return Line(*self._who, self._batch_of(drop.head).time(drop.head), drop.head, drop.marker)

    def _batch_of(self, offset: int) -> IndexBatch:
        if not self._batch.start <= offset < self._batch.end:
            self._batch = self._records.covering(offset)
        return self._batch


def line_start(file: LogFile, offset: int) -> int:
    """A boundary at or before that offset, as it was before anything was dropped there."""
    start = boundary(file.read, offset)
    return max(start, file.drop.cut) if file.drop and offset >= file.drop.cut else start


def settled(file: LogFile, end: int) -> int:
    """Up to where the bytes before `end` decide all pieces, while the file is not closed."""
    drop = file.drop
    if drop and drop.head < end <= drop.cut:
        return drop.cut
    if end == 0 or file.read(end - 1, 1) == b"\n":
        return end
    start = line_start(file, end - 1)
    base = max(0, start - 1)
    for piece in pieces(file.read(base, end - base), base, start, closed=False):
        start = piece.stop
    return start


def decided(view: ReadableRange, number: int) -> int:
    """Up to where the pieces of a file are decided once its first `number` batches are there."""
    if number == 0:
        return 0
    if view.is_closed and number == view.count:
        return view.end
    return settled(view.file, Records(view.file.index.path, view.count).batch(number - 1).end)
