"""A job's log by line numbers: which lines are asked for, and the answer. Lines are numbered from 1.

`logs/` answers them; the service and the API use them. The number of a line is its place among the lines of
the chosen replicas, in the order of the whole log. It stays while the log grows. Where bytes are dropped, one
line stands for them, and later lines get smaller numbers.
"""

from dataclasses import dataclass
from typing import Protocol

from trainshed.core.logs import Line, OutputStream


@dataclass(frozen=True, slots=True, kw_only=True)
class LineChoice:
    """Whose lines: None means all."""

    attempt: int | None = None
    task: str | None = None
    stream: OutputStream | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LineQuery:
    """`count` lines from a line on: that of a number (negative: from the end) or the first since a time."""

    choice: LineChoice
    line: int = 1
    since_ns: int | None = None  # in place of a number
    before: int = 0  # so many lines before it, too
    count: int
    is_numbered: bool = False  # wait until lines are counted; else they may come without numbers


@dataclass(frozen=True, slots=True)
class LineTotal:
    lines: int  # counted so far
    size: int  # bytes there are
    counted: int  # bytes of them that are counted

    @property
    def is_complete(self) -> bool:
        return self.counted == self.size


@dataclass(frozen=True, slots=True)
class LinePage:
    lines: tuple[Line, ...]
    first: int | None  # the number of the first of them; None while lines are still being counted
    total: LineTotal


class LineMatch(Protocol):
    def start(self) -> int: ...


class LinePattern(Protocol):
    """Finds a text in many lines at once, in time in proportion to them. A match never holds a newline."""

    def search(self, text: bytes, pos: int, /) -> LineMatch | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FindQuery:
    """Lines that match, from a line on, forwards or backwards."""

    choice: LineChoice
    pattern: LinePattern
    line: int  # the first that is looked at; negative: from the end
    backwards: bool = False
    limit: int = 1000  # matching lines given; more are only counted


@dataclass(frozen=True, slots=True)
class NumberedLine:
    number: int
    line: Line


@dataclass(frozen=True, slots=True)
class FindStep:
    """What a part of the log had in it, and how far the search has come."""

    lines: tuple[NumberedLine, ...]
    matches: int  # matching lines so far, also those beyond the limit
    searched: int  # bytes so far
    size: int  # bytes to search in all
