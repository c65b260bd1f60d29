"""Reads a job's output as bytes, in the order of its lines, with no work done for each line.

All lines that were decided in one batch lie side by side in their file, and no two batches of a job overlap
in time. So the order of lines is the order of batches, and what is read are ranges of files: from the end of
what one batch decided to the end of what a later one did. Works on views only, so it may run in any thread,
one call at a time. It keeps two numbers for each file and never more than about MOST bytes.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from trainshed.core.logs import Chunk, OutputPlace, OutputQuery, OutputStream
from trainshed.logs.file import ReadableRange
from trainshed.logs.index import IndexBatch, Records
from trainshed.logs.lines import LONGEST, pieces
from trainshed.logs.lookback import start_of_last
from trainshed.logs.scan import decided, line_start

MOST = 256 * 1024  # bytes given out at once, about
_FOREVER = 2**63 - 1


class _Emptied(Exception):
    """The file is shorter than it was: its program emptied it, and the next look at it mends that."""


@dataclass(slots=True)
class _Cursor:
    """How far one file is given out: `number` is the first batch of which something may be left."""

    view: ReadableRange
    records: Records
    number: int = 0
    offset: int = 0

    def see(self, view: ReadableRange) -> None:
        if view.count != self.view.count:
            self.records = Records(view.file.index.path, view.count)
        self.view = view

    def stamp(self) -> int | None:
        """When the next batch was dated; None where all that is dated is given out."""
        while self.number < self.view.count:
            batch = self.records.batch(self.number)
            if batch.end > self.offset:
                return batch.stamp
            self.number += 1
        return None

    def run(self, before_ns: int) -> tuple[int, IndexBatch]:
        """The last of the batches that come next, all dated before that moment, of MOST bytes together."""
        last, batch = self.number, self.records.batch(self.number)
        while batch.end - self.offset < MOST and last + 1 < self.view.count:
            following = self.records.batch(last + 1)
            if following.stamp >= before_ns:
                break
            last, batch = last + 1, following
        return last, batch

    @property
    def who(self) -> tuple[int, int, int, OutputStream]:
        name = self.view.file.name
        return name.attempt, name.pool, name.index, self.view.file.stream

    def place(self, number: int) -> OutputPlace:
        return OutputPlace(*self.who, number, self.offset)


class ChunkReader:
    """One pass over a job's files, which may grow and become more between two reads."""

    def __init__(self, query: OutputQuery) -> None:
        self._query = query
        self._cursors: dict[str, _Cursor] = {}
        self._is_begun = False

    def read(self, views: Sequence[ReadableRange]) -> tuple[Chunk, ...]:
        """The next chunks, MOST bytes together, about; none once all of these views is given out."""
        cursors = [self._cursor(view) for view in views if self._is_asked(view)]
        if not self._is_begun:
            self._begin(cursors)
            self._is_begun = True
        heap = [(stamp, at) for at, cursor in enumerate(cursors) if (stamp := cursor.stamp()) is not None]
        heapq.heapify(heap)
        chunks: list[Chunk] = []
        size = 0
        while heap and size < MOST:
            _, at = heapq.heappop(heap)
            try:
                chunk = _next(cursors[at], heap[0][0] if heap else _FOREVER)
            except _Emptied:
                break
            except OSError:
                if cursors[at].view.file.is_intact():
                    raise
                continue  # removed or replaced by the job: the others go on
            if chunk is not None:
                chunks.append(chunk)
                size += len(chunk.data)
            if (stamp := cursors[at].stamp()) is not None:
                heapq.heappush(heap, (stamp, at))
        return tuple(chunks)

    def _is_asked(self, view: ReadableRange) -> bool:
        query, name = self._query, view.file.name
        return (query.attempt is None or query.attempt == name.attempt) and (
            query.task is None or query.task == name.task
        )

    def _cursor(self, view: ReadableRange) -> _Cursor:
        cursor = self._cursors.get(view.file.path)
        if cursor is None:
            records = Records(view.file.index.path, view.count)
            cursor = self._cursors[view.file.path] = _Cursor(view, records)
        cursor.see(view)
        return cursor

    def _begin(self, cursors: Sequence[_Cursor]) -> None:
        query = self._query
        if query.after is not None:
            _go_behind(cursors, query.after)
            return
        if query.since_ns is not None:
            for cursor in cursors:
                _go_since(cursor, query.since_ns)
        if query.last is not None:
            starts = start_of_last([cursor.view for cursor in cursors], query.last)
            for cursor, (number, offset) in zip(cursors, starts, strict=True):
                if offset > cursor.offset:
                    cursor.number, cursor.offset = max(cursor.number, number), offset


def _next(cursor: _Cursor, before_ns: int) -> Chunk | None:
    """The next chunk of that file, from batches dated before that moment; None where none is decided yet."""
    view, file = cursor.view, cursor.view.file
    drop = file.drop
    if drop and drop.head <= cursor.offset < drop.cut:
        number = cursor.number
        cursor.offset = drop.cut
        return Chunk(f"{drop.marker}\n".encode(), cursor.place(number), is_marker=True)
    last, batch = cursor.run(before_ns)
    if drop and cursor.offset < drop.head < batch.end:
        stop, is_whole = drop.head, False
    else:
        stop, is_whole = decided(view, last + 1), True
    length = max(0, min(stop - cursor.offset, MOST))
    data = file.read(cursor.offset, length)
    if file.drop is not drop:
        return None  # it may have been freed while it was read: the next call sees the drop
    if len(data) < length:
        raise _Emptied
    if length < stop - cursor.offset:
        is_whole = False
        data = data[: data.rfind(b"\n") + 1] or data
    cursor.offset += len(data)
    if is_whole:
        cursor.number = last + 1
    return Chunk(data, cursor.place(last)) if data else None


def _go_behind(cursors: Sequence[_Cursor], place: OutputPlace) -> None:
    """All batches dated before that of the place are given out, and of its own file all before its offset."""
    who = (place.attempt, place.pool, place.index, place.stream)
    own = next((cursor for cursor in cursors if cursor.who == who), None)
    if own is None or not own.view.count:
        return  # of a file that is no more: it can only be shown as a whole
    number = min(place.batch, own.view.count - 1)
    at_ns = own.records.batch(number).stamp
    for cursor in cursors:
        if cursor.view.count:
            cursor.number = cursor.records.number_after(at_ns)
            cursor.offset = decided(cursor.view, cursor.number)
    own.number, own.offset = number, place.offset


def _go_since(cursor: _Cursor, since_ns: int) -> None:
    """To the first line of that time or later."""
    view, file = cursor.view, cursor.view.file
    if not view.count:
        return
    cursor.number = cursor.records.number_not_before(since_ns)
    cursor.offset = decided(view, cursor.number)
    if cursor.number == view.count:
        return
    batch = cursor.records.batch(cursor.number)
    at = min(batch.start + since_ns - batch.stamp - 1, batch.end - 1)
    if at < max(batch.start, cursor.offset):
        return
    if file.drop and file.drop.head < at < file.drop.cut:
        cursor.offset = file.drop.cut
        return
    start = line_start(file, at)
    cursor.offset = max(cursor.offset, start)
    if start < at:
        # The line began earlier. It is one of the earlier ones, unless a later batch ended it.
        base = max(0, start - 1)
        piece = next(pieces(file.read(base, LONGEST + 2), base, start, closed=False), None)
        if piece is not None and piece.decided < batch.end:
            cursor.offset = max(cursor.offset, piece.stop)
