"""Numbers the lines of several files in their one order, and finds the line of a number or of a moment.

Lines that were decided in one batch lie side by side in their file, and no two batches of a job overlap in
time. So the number of a line is the number of lines that all batches dated before decided, and a search for a
number is a search for a batch. Works on views and counts that are complete; may run in any thread.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from trainshed.logs.drop import Drop
from trainshed.logs.file import ReadableRange
from trainshed.logs.index import Records
from trainshed.logs.line_counts import LineCounts
from trainshed.logs.scan import settled


class DropChanged(Exception):
    """Bytes were dropped while lines were counted: the caller asks again."""


@dataclass(slots=True)
class _NumberedFile:
    view: ReadableRange
    counts: LineCounts
    records: Records
    drop: Drop | None

    def decided(self, batches: int) -> int:
        if batches == 0:
            return 0
        if self.view.is_closed and batches == self.view.count:
            return self.view.end
        return settled(self.view.file, self.records.batch(batches - 1).end)

    def lines(self, batches: int) -> int:
        """How many lines the first batches decide."""
        return self.counts.before(self.decided(batches), self.drop)

    def lines_before(self, at_ns: int) -> int:
        number = self.records.number_not_before(at_ns)
        if number == self.view.count:
            return self.lines(number)
        batch, start = self.records.batch(number), self.decided(number)
        if batch.stamp < at_ns:
            # A line that began in an earlier batch has the time of the batch itself.
            stop = max(start + (start < batch.start), batch.start + at_ns - batch.stamp - 1)
            start = min(stop, self.decided(number + 1))
        return self.counts.before(start, self.drop)


class LineOrder:
    """The lines of these views, numbered from 0."""

    def __init__(self, views: Sequence[ReadableRange], counts: Sequence[LineCounts]) -> None:
        self._files = [
            _NumberedFile(view, count, Records(view.file.index.path, view.count), view.file.drop)
            for view, count in zip(views, counts, strict=True)
            if view.count
        ]
        self.total = sum(file.lines(file.view.count) for file in self._files)
        self._check()

    def number_of(self, at_ns: int) -> int:
        """The number of the first line of that time or later; the total where there is none."""
        number = sum(file.lines_before(at_ns) for file in self._files)
        self._check()
        return number

    def time_of(self, number: int) -> int:
        """The time of that line, which no other line of the job has. There must be such a line."""
        low = [0] * len(self._files)
        low_lines = [0] * len(self._files)
        high = [file.view.count for file in self._files]
        while (left := sum(high) - sum(low)) > 1:
            stamp = self._middle(low, high, left)
            cut = [
                batches if batches == other else min(max(file.records.number_after(stamp), batches), other)
                for file, batches, other in zip(self._files, low, high, strict=True)
            ]
            cut_lines = [
                lines if batches == other else file.lines(other)
                for file, batches, other, lines in zip(self._files, low, cut, low_lines, strict=True)
            ]
            if sum(cut_lines) > number:
                high = cut
            else:
                low, low_lines = cut, cut_lines
        at = next(at for at, (batches, other) in enumerate(zip(low, high, strict=True)) if batches < other)
        file = self._files[at]
        start = file.counts.start(number - sum(low_lines) + low_lines[at], file.drop)
        self._check()
        return file.records.batch(low[at]).time(start)

    def _middle(self, low: list[int], high: list[int], left: int) -> int:
        """The stamp of a batch in the midst of those left: the weighted median of the files' middle ones."""
        middles = sorted(
            (file.records.batch((batches + other - 1) // 2).stamp, other - batches)
            for file, batches, other in zip(self._files, low, high, strict=True)
            if batches < other
        )
        weight = 0
        for stamp, size in middles:
            weight += size
            if 2 * weight >= left:
                return stamp
        raise AssertionError("there are batches left")

    def _check(self) -> None:
        if any(file.view.file.drop is not file.drop for file in self._files):
            raise DropChanged
