"""Searches the lines of a job for a text: bytes in bulk, and only the lines that are given out are cut.

`line_numbers.py` calls `step` again and again, in any thread, one call at a time. Between two calls others
have their turn, and the search may be given up. Forwards it reads the log once. Backwards it goes back by
windows of lines and reads each forwards. Memory is that of a few chunks and of the matches of one window.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from trainshed.core.log_lines import FindQuery, FindStep, LinePattern, NumberedLine
from trainshed.core.logs import Chunk, OutputQuery, OutputStream
from trainshed.logs.chunks import ChunkReader
from trainshed.logs.file import ReadableRange
from trainshed.logs.line_counts import LineCounts
from trainshed.logs.line_page import order_of
from trainshed.logs.scan import FileScan

_STEP = 16 * 1024 * 1024  # bytes searched in one step, about
_WINDOW = 100_000  # lines that are searched at a time when going back
_CHUNK = 4096  # bytes read for a line that matches; more where it is longer


class _CountedFile(NamedTuple):
    view: ReadableRange
    counts: LineCounts

    def before(self, offset: int) -> int:
        return self.counts.before(offset, self.view.file.drop)

    @property
    def who(self) -> tuple[int, int, int, OutputStream]:
        name = self.view.file.name
        return name.attempt, name.pool, name.index, self.view.file.stream


class _Match(NamedTuple):
    file: _CountedFile
    offset: int
    shift: int  # what the number of a line of the job is more than its number in the file

    @property
    def number(self) -> int:
        return self.shift + self.file.before(self.offset + 1)

    def line(self) -> NumberedLine | None:
        own = self.file.before(self.offset + 1)
        start = self.file.counts.start(own - 1, self.file.view.file.drop)
        line = next(FileScan(self.file.view, _CHUNK).onward(start), None)
        return None if line is None else NumberedLine(self.shift + own, line)


class LineSearch:
    """All lines of the views must be counted."""

    def __init__(
        self, views: Sequence[ReadableRange], counts: Sequence[LineCounts], query: FindQuery
    ) -> None:
        self._views = views
        self._files = [_CountedFile(view, count) for view, count in zip(views, counts, strict=True)]
        self._query = query
        self._order = order_of(views, counts)
        self._matches = 0
        self._searched = 0
        self._steps = self._back() if query.backwards else self._forth()

    def step(self) -> FindStep | None:
        """What the next part has in it; None once all is searched."""
        return next(self._steps, None)

    def _forth(self) -> Iterator[FindStep]:
        line, total = self._query.line, self._order.total
        first = line if line > 0 else max(1, total + 1 + line)
        for part in self._parts(first, total + 1):
            yield self._given(part)

    def _back(self) -> Iterator[FindStep]:
        line, total = self._query.line, self._order.total
        stop = min(line, total) + 1 if line > 0 else total + 2 + line
        while stop > 1:
            first = max(1, stop - _WINDOW)
            matches = [match for part in self._parts(first, stop) for match in part]
            yield self._given(matches[::-1])
            stop = first

    def _given(self, matches: list[_Match]) -> FindStep:
        left = max(0, self._query.limit - self._matches)
        self._matches += len(matches)
        lines = tuple(line for match in matches[:left] if (line := match.line()) is not None)
        return FindStep(lines, self._matches, self._searched, sum(view.end for view in self._views))

    def _parts(self, first: int, stop: int) -> Iterator[list[_Match]]:
        """The matches in these lines, those of some bytes at a time."""
        if first >= stop:
            return
        since_ns = self._order.time_of(first - 1) if first > 1 else None
        reader, progress = ChunkReader(OutputQuery(since_ns=since_ns)), _SearchedFiles(self._files, first)
        part: list[_Match] = []
        size = 0
        while chunks := reader.read(self._views):
            for chunk in chunks:
                matches = progress.matches(chunk, self._query.pattern)
                self._searched += len(chunk.data)
                size += len(chunk.data)
                if stop <= self._order.total and progress.next_line() > stop:
                    part += matches[: bisect_left(matches, stop, key=lambda match: match.number)]
                    yield part
                    return
                part += matches
            if size >= _STEP:
                yield part
                part, size = [], 0
        yield part


class _SearchedFiles:
    """How far each file is searched, and so which number the next line has."""

    def __init__(self, files: Sequence[_CountedFile], first: int) -> None:
        self._files = {file.who: file for file in files}
        self._first = first
        self._begun: dict[_CountedFile, int] = {}  # the lines before what was searched of it
        self._ends: dict[_CountedFile, int] = {}
        self._known: dict[_CountedFile, tuple[int, int]] = {}

    def matches(self, chunk: Chunk, pattern: LinePattern) -> list[_Match]:
        end = chunk.end
        file = self._files[end.attempt, end.pool, end.index, end.stream]
        drop = file.view.file.drop
        start = drop.head if drop and chunk.is_marker else end.offset - len(chunk.data)
        if file not in self._begun:
            self._begun[file] = file.before(start)
        offsets = [start] if chunk.is_marker and pattern.search(chunk.data, 0) else []
        if not chunk.is_marker:
            offsets = [start + at for at in _matching_lines(chunk.data, pattern)]
        shift = self._shift(file) if offsets else 0
        self._ends[file] = end.offset
        return [_Match(file, offset, shift) for offset in offsets]

    def next_line(self) -> int:
        """The number of the first line that is not searched yet."""
        return self._first + sum(self._lines(file) for file in self._ends)

    def _shift(self, own: _CountedFile) -> int:
        others = sum(self._lines(file) for file in self._ends if file is not own)
        return self._first - 1 + others - self._begun[own]

    def _lines(self, file: _CountedFile) -> int:
        """The lines of the file that are searched."""
        end = self._ends[file]
        if self._known.get(file, (-1, 0))[0] != end:
            self._known[file] = end, file.before(end)
        return self._known[file][1] - self._begun[file]


def _matching_lines(data: bytes, pattern: LinePattern) -> Iterator[int]:
    """Where the first match of each line begins."""
    at = 0
    while (match := pattern.search(data, at)) is not None:
        yield match.start()
        at = data.find(b"\n", match.start()) + 1
        if at == 0:
            return
