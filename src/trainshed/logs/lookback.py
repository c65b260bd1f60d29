"""Finds where the last lines of a job begin, counting newlines in bulk from the end of its files.

It goes back batch by batch in the order of the whole job, as `chunks.py` goes forward, and cuts nothing into
lines but the one window in which the first of the wanted lines begins. Memory does not grow with the lines.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from trainshed.logs import lines
from trainshed.logs.file import LogFile, ReadableRange
from trainshed.logs.index import Records
from trainshed.logs.lines import pieces
from trainshed.logs.scan import decided, line_start

_WINDOW = 1024 * 1024  # bytes read at once


@dataclass(slots=True)
class _Tail:
    """The part of a file that is not looked at yet: its first `number` batches, up to `offset`."""

    view: ReadableRange
    records: Records
    number: int
    offset: int

    @property
    def marker_batch(self) -> int | None:
        """The batch of the line that stands for dropped bytes, where that line is the next one back."""
        drop = self.view.file.drop
        return self.records.number_covering(drop.head) if drop and drop.cut == self.offset else None

    def stamp(self) -> int | None:
        """When the next batch back was dated; None where nothing is left."""
        at = self.marker_batch
        if at is None and not self.number:
            return None
        return self.records.batch(self.number - 1 if at is None else at).stamp

    def back(self, after_ns: int, left: int) -> int:
        """Go back over batches dated after that moment, by at most `left` lines; how many are left then."""
        file = self.view.file
        if (at := self.marker_batch) is not None and file.drop is not None:
            self.number, self.offset = at + 1, file.drop.head
            return left - 1
        first = self.number - 1
        while first and self.offset - self.records.batch(first).start < _WINDOW:
            if self.records.batch(first - 1).stamp <= after_ns:
                break
            first -= 1
        start = min(decided(self.view, first), self.offset)
        if file.drop and self.offset > file.drop.cut:
            start = max(start, file.drop.cut)
        self.offset, left = _back(file, start, self.offset, left)
        self.number = first
        return left


def start_of_last(views: Sequence[ReadableRange], count: int) -> list[tuple[int, int]]:
    """For each file a batch and the byte from which on the last `count` lines of all files lie.

    The byte may lie in a later batch than the one named, never in an earlier one.
    """
    tails = [
        _Tail(view, Records(view.file.index.path, view.count), view.count, decided(view, view.count))
        for view in views
    ]
    heap = [(-stamp, at) for at, tail in enumerate(tails) if (stamp := tail.stamp()) is not None]
    heapq.heapify(heap)
    while heap and count:
        _, at = heapq.heappop(heap)
        count = tails[at].back(-heap[0][0] if heap else -1, count)
        if (stamp := tails[at].stamp()) is not None:
            heapq.heappush(heap, (-stamp, at))
    return [(max(0, tail.number - 1), tail.offset) for tail in tails]


def _back(file: LogFile, start: int, stop: int, left: int) -> tuple[int, int]:
    """From `stop` back by `left` lines, not beyond `start`: where that is, and how many lines are left."""
    while stop > start:
        low = max(start, line_start(file, max(start, stop - _WINDOW)))
        base = max(0, low - 1)
        data = file.read(base, stop - base)
        count = count_pieces(data, base, low)
        if count >= left:
            starts = [piece.start for piece in pieces(data, base, low, closed=True)]
            return starts[-left], 0
        left -= count
        stop = low
    return stop, left


def count_pieces(data: bytes, base: int, start: int) -> int:
    """How many pieces the bytes from the boundary `start` to the end of the data are, which is one too."""
    stop = base + len(data)
    return 1 + lines.count_starts(data, base, start + 1, stop) if stop > start else 0
