"""Answers a LineQuery over many files: by number where their lines are counted, else by time.

Works on views only, so it may run in any thread. It reads the lines of the answer and a few blocks beside.
"""

from collections.abc import Sequence
from dataclasses import replace

from trainshed.core.log_lines import LinePage, LineQuery, LineTotal
from trainshed.core.logs import Line, LogQuery
from trainshed.logs import merge
from trainshed.logs.file import ReadableRange
from trainshed.logs.line_counts import LineCounts
from trainshed.logs.line_order import DropChanged, LineOrder

_TRIES = 5  # drops are rare: each frees a tenth of a quota


def numbered_page(
    views: Sequence[ReadableRange], counts: Sequence[LineCounts], query: LineQuery, most: int
) -> LinePage:
    """At most query.count lines, fewer where they are of the size `most` together. All must be counted."""
    order = order_of(views, counts)
    size = sum(view.end for view in views)
    if query.since_ns is not None:
        first = order.number_of(query.since_ns)
    else:
        first = query.line - 1 if query.line > 0 else max(0, order.total + query.line)
    first = max(0, min(first, order.total) - query.before)
    lines: tuple[Line, ...] = ()
    if first < order.total and query.count:
        lines = merge.read(views, LogQuery(since_ns=order.time_of(first), limit=query.count), most)
    return LinePage(lines, first + 1, LineTotal(order.total, size, size))


def unnumbered_page(
    views: Sequence[ReadableRange], query: LineQuery, total: LineTotal, most: int
) -> LinePage:
    """The same for a query by time or from the end, without numbers; only the first line's is known."""
    if query.since_ns is None:
        back = query.before + (-query.line if query.line < 0 else 0)
        lines = _back(views, LogQuery(limit=max(back, 1)), most)[: query.count]
        return LinePage(lines, None, total)
    before = _back(views, LogQuery(until_ns=query.since_ns, limit=query.before), most) if query.before else ()
    rest = LogQuery(since_ns=query.since_ns, limit=max(1, query.count - len(before)))
    return LinePage((*before, *merge.read(views, rest, most))[: query.count], None, total)


def order_of(views: Sequence[ReadableRange], counts: Sequence[LineCounts]) -> LineOrder:
    for _ in range(_TRIES - 1):
        try:
            return LineOrder(views, counts)
        except DropChanged:
            continue
    return LineOrder(views, counts)


def _back(views: Sequence[ReadableRange], query: LogQuery, most: int) -> tuple[Line, ...]:
    return merge.read(views, replace(query, newest_first=True), most)[::-1]
