"""Answers a LogQuery over many files: one total order, as few bytes read as possible.

Works on views only, so it may run in any thread. Files that cannot hold an answer are not opened.
"""

import heapq
from collections.abc import Iterator, Sequence
from itertools import islice

from trainshed.core.log_lines import LineChoice
from trainshed.core.logs import Line, LogQuery, OutputStream
from trainshed.logs.file import ReadableRange
from trainshed.logs.scan import FileScan

_FORWARD = 256 * 1024  # bytes read at once, over one file
_BACKWARD = 32 * 1024  # less: a window is cut into lines as a whole before the last is given
_TOGETHER = 8 * 1024 * 1024  # bytes held at once, over all files
_EACH = 64  # what a line counts for beside its text: empty ones take memory too
_FOREVER = 2**63 - 1


def read(views: Sequence[ReadableRange], query: LogQuery, most: int = _FOREVER) -> tuple[Line, ...]:
    """At most query.limit lines, in order; fewer where they are of that size (`size`) together."""
    chosen = candidates(views, query)
    if not chosen:
        return ()
    chunk = max(4096, min(_BACKWARD if query.newest_first else _FORWARD, _TOGETHER // len(chosen)))
    scans = [_within(FileScan(view, chunk), query) for view in chosen]
    merged = scans[0] if len(scans) == 1 else heapq.merge(*scans, key=_place, reverse=query.newest_first)
    lines: list[Line] = []
    total = 0
    for line in islice(merged, query.limit):
        lines.append(line)
        total += _EACH + len(line.text)
        if total >= most:
            break
    return tuple(lines)


def size(lines: Sequence[Line]) -> int:
    """How much of `most` these lines are."""
    return sum(_EACH + len(line.text) for line in lines)


def candidates(views: Sequence[ReadableRange], query: LogQuery) -> list[ReadableRange]:
    """The views that can hold an answer, as far as can be said without reading."""
    first = earliest(query)
    return [view for view in views if view.end and view.latest >= first and is_asked(view, query)]


def earliest(query: LogQuery) -> int:
    return max(query.since_ns or 0, query.after[0] if query.after else 0)


def is_asked(view: ReadableRange, query: LogQuery | LineChoice) -> bool:
    """Whether the file is of the replica, attempt and stream asked for."""
    name = view.file.name
    return (
        (query.attempt is None or query.attempt == name.attempt)
        and (query.task is None or query.task == name.task)
        and (query.stream is None or query.stream is view.file.stream)
    )


def _within(scan: FileScan, query: LogQuery) -> Iterator[Line]:
    first = earliest(query)
    last = min(
        _FOREVER if query.until_ns is None else query.until_ns - 1,
        query.before[0] if query.before else _FOREVER,
    )
    after, before = query.after, query.before
    lines = scan.backward(last) if query.newest_first else scan.forward(first)
    for line in lines:
        at_ns = line.at_ns
        if at_ns < first or (after and at_ns == after[0] and line.insert_id <= after[1]):
            if query.newest_first and at_ns < first:
                return
            continue
        if at_ns > last or (before and at_ns == before[0] and line.insert_id >= before[1]):
            if not query.newest_first and at_ns > last:
                return
            continue
        yield line


def _place(line: Line) -> tuple[int, int, int, int, bool, int]:
    """Sorts as (at_ns, insert_id) does, without making the text."""
    return line.at_ns, line.attempt, line.pool, line.index, line.stream is OutputStream.STDERR, line.sequence
