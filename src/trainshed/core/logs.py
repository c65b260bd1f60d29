"""Log lines and chunks of output as values, and the queries for them.

`logs/` reads and writes them; the service and the API use them.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from trainshed.core.event import Event
from trainshed.core.names import task_name

# Older releases gave ids without a job. Such an id still names the place behind which a client goes on.
_INSERT_ID = re.compile(r"l([0-9]{20})[0-9]{27}(?:-[A-Za-z0-9_.-]{1,128})?")
_PLACE_PARTS, _STREAM_PART = 6, 3
_LONGEST_NUMBER = 18  # digits: what a signed 64-bit number always holds


class OutputStream(StrEnum):
    STDOUT = "stdout"
    STDERR = "stderr"


@dataclass(frozen=True, slots=True)
class Line:
    """One line (or a piece of an overlong one). Ordered by (at_ns, insert_id), which is also unique."""

    job: str
    attempt: int
    pool: int
    index: int
    stream: OutputStream
    at_ns: int  # nanoseconds since the epoch, fixed once seen
    sequence: int  # increases within (attempt, pool, index, stream): the byte offset of the line
    text: str

    @property
    def insert_id(self) -> str:
        """Sorts as text in the order of the lines; the job, last, tells apart lines of two in one moment."""
        stream = 0 if self.stream is OutputStream.STDOUT else 1
        return (
            f"l{self.at_ns:020d}{self.attempt:04d}{self.pool:02d}{self.index:04d}{stream}{self.sequence:016d}"
            f"-{self.job}"
        )

    @property
    def task(self) -> str:
        return task_name(self.pool, self.index)


def place_of(insert_id: str) -> tuple[int, str] | None:
    """The position of the line of that id; None where no line can have such an id."""
    match = _INSERT_ID.fullmatch(insert_id)
    return (int(match[1]), insert_id) if match else None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogQuery:
    """Which lines, from where, in which order. `after` and `before` are exclusive."""

    after: tuple[int, str] | None = None  # (at_ns, insert_id): strictly later lines only
    before: tuple[int, str] | None = None  # strictly earlier lines only
    since_ns: int | None = None  # inclusive
    until_ns: int | None = None  # exclusive
    attempt: int | None = None
    task: str | None = None
    stream: OutputStream | None = None
    newest_first: bool = False
    limit: int = 1000


@dataclass(frozen=True, slots=True)
class OutputPlace:
    """How far a reader of a job's output has come: the file, the batch in it, and the byte offset."""

    attempt: int
    pool: int
    index: int
    stream: OutputStream
    batch: int
    offset: int

    def __str__(self) -> str:
        return f"{self.attempt}.{self.pool}.{self.index}.{self.stream}.{self.batch}.{self.offset}"

    @classmethod
    def parse(cls, text: str) -> "OutputPlace":
        """The place that `str` wrote. Raises ValueError for any other text."""
        parts = text.split(".")
        numbers = [part for at, part in enumerate(parts) if at != _STREAM_PART]
        if len(parts) != _PLACE_PARTS or not all(
            part.isascii() and part.isdigit() and len(part) <= _LONGEST_NUMBER for part in numbers
        ):
            raise ValueError(text)
        attempt, pool, index, batch, offset = map(int, numbers)
        return cls(attempt, pool, index, OutputStream(parts[_STREAM_PART]), batch, offset)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Raw bytes of one output file: whole lines, or a part of a line longer than 32 KiB."""

    data: bytes
    end: OutputPlace  # where a reader continues after this chunk
    is_marker: bool = False  # a line of the server in place of bytes that were dropped

    @property
    def task(self) -> str:
        return task_name(self.end.pool, self.end.index)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputQuery:
    """Which bytes of a job's output: those after `after`; else the last lines since `since_ns`."""

    after: OutputPlace | None = None
    since_ns: int | None = None  # inclusive
    attempt: int | None = None
    task: str | None = None
    last: int | None = None  # lines


def event_insert_id(job: str, event: Event) -> str:
    """The id that sorts an event before the lines of the same moment, in the order of the events."""
    return f"e{event.sequence:012d}-{job}"
