"""PodFiles: the files of one pod, by a connection to its init: what is there, how to fetch and to bring some.

`file_exchange.py` calls it, from one task. pod_files.h has the other end and says what each letter means.
Much is under way at once: neither many small files nor a large one waits for an answer each. Memory stays
flat: no more than a few pieces are held. It decides nothing, and trusts no path that comes from a pod.
"""

import asyncio
import os
import struct
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

from trainshed.backends.cluster.pod_connection import ChannelBroken, Streams
from trainshed.backends.cluster.pod_frames import Frame, frame, read_frame

T = TypeVar("T")
PIECE = 1 << 20  # bytes that are read from a disk, or written to one, at once
FILE, FOLDER, LINK = "f", "d", "l"
_ENTRY = struct.Struct(">cIQQqqHH")
_ASKED = 256  # files asked for at once
_UNANSWERED = 400  # orders after which it waits: an init that cannot send its answers reads no more
_FOLDER_MODE = 0o755


@dataclass(frozen=True, slots=True, kw_only=True)
class PodEntry:
    """A file, folder or link in a pod."""

    path: str  # below its root, which is the first name
    kind: str
    mode: int = 0o644
    size: int = 0
    changed_at: int = 0  # nanoseconds
    stamp: tuple[int, int, int] = (0, 0, 0)  # with the size another one after each change
    target: str = ""  # of a link

    def is_same(self, other: "PodEntry") -> bool:
        """Whether nothing happened to it between the two."""
        return (self.kind, self.size, self.stamp) == (other.kind, other.size, other.stamp)


@dataclass(frozen=True, slots=True)
class Refused:
    """What an init could not do, and why."""

    path: str
    number: int

    @property
    def words(self) -> str:
        return f"{os.fsencode(self.path).decode(errors='replace')}: {os.strerror(self.number)}"


@dataclass(frozen=True, slots=True)
class Brought:
    """A file, folder or link to be made in a pod; a file from one of the server's."""

    entry: PodEntry
    source: str = ""


Fetched = PodEntry | bytes | Refused  # the file as it was before, its bytes, the file as it was after


class PodFiles:
    def __init__(self, streams: Streams) -> None:
        self._reader, self._writer = streams
        self._nudges = 0
        self.sent = 0  # bytes of files

    async def look(
        self, roots: str, known: int = 0, *, wait: bool = False
    ) -> tuple[int, list[PodEntry] | None]:
        """What is below these roots and a number for it; None where that is the number `known`.

        With `wait` it answers when something has changed, or after `nudge`.
        """
        self._say(b"L", known.to_bytes(8) + bytes((wait,)) + roots.encode())
        entries: list[PodEntry] = []
        while (answer := await self._hear())[0] != b"=":
            _expect(answer, b"l")
            entries += _entries(answer[1])
        number = int.from_bytes(answer[1])
        while self._nudges:
            _expect(await self._hear(), b".")
            self._nudges -= 1
        return number, None if number == known else entries

    def nudge(self) -> None:
        """Have a list that waits come at once."""
        if not self._nudges:
            self._nudges += 1
            self._say(b"S")

    async def fetch(self, paths: Sequence[str]) -> AsyncIterator[Fetched]:
        """The files, in their order: each as an entry, its bytes and an entry again, or as refused."""
        for some in _batches(paths, _ASKED):
            for path in some:
                self._say(b"G", bytes(8) + os.fsencode(path))
            left, is_open = len(some), False
            while left:
                kind, data = await self._hear()
                if kind == b"d":
                    yield data
                elif kind == b"!":
                    left, is_open = left - 1, False
                    yield _refused(data)
                else:
                    _expect((kind, data), b"h")
                    left, is_open = left - is_open, not is_open
                    yield next(_entries(data))

    async def bring(self, items: Iterable[Brought]) -> list[Refused]:
        """Make them all, in their order; those that could not be made."""
        refused: list[Refused] = []
        for some in _batches(items, _UNANSWERED):
            pieces = _pieces(some)
            while piece := await asyncio.to_thread(next, pieces, b""):
                self.sent += len(piece)
                self._writer.write(piece)
                await self._writer.drain()
            refused += await self._settle()
        return refused

    async def remove(self, paths: Iterable[str]) -> list[Refused]:
        """Remove what is there, folders with all that is in them."""
        refused: list[Refused] = []
        for some in _batches(paths, _UNANSWERED):
            for path in some:
                self._say(b"X", os.fsencode(path))
            refused += await self._settle()
        return refused

    async def _settle(self) -> list[Refused]:
        self._say(b"S")
        refused: list[Refused] = []
        while (answer := await self._hear())[0] != b".":
            _expect(answer, b"!")
            refused.append(_refused(answer[1]))
        return refused

    def _say(self, letter: bytes, data: bytes = b"") -> None:
        self._writer.write(frame(letter, data))

    async def _hear(self) -> Frame:
        return await read_frame(self._reader)


def _batches(items: Iterable[T], most: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while some := list(islice(iterator, most)):
        yield some


def _expect(answer: Frame, letter: bytes) -> None:
    if answer[0] != letter:
        raise ChannelBroken(f"a frame {answer[0]!r} instead of {letter!r}")


def _entries(data: bytes) -> Iterator[PodEntry]:
    at = 0
    try:
        while at < len(data):
            kind, mode, inode, size, changed_at, status_at, length, further = _ENTRY.unpack_from(data, at)
            at += _ENTRY.size
            path = os.fsdecode(data[at : at + length])
            target = os.fsdecode(data[at + length : at + length + further])
            at += length + further
            if any(name in ("", ".", "..") for name in path.split("/")) or "\0" in path:
                raise ChannelBroken(f"{path!r} is no path")
            yield PodEntry(
                path=path,
                kind=kind.decode(errors="replace"),
                mode=mode,
                size=size,
                changed_at=changed_at,
                stamp=(inode, changed_at, status_at),
                target=target,
            )
    except struct.error as error:
        raise ChannelBroken("an entry that is cut off") from error


def _refused(data: bytes) -> Refused:
    return Refused(os.fsdecode(data[4:]), int.from_bytes(data[:4]))


def _pieces(items: Iterable[Brought]) -> Iterator[bytes]:
    """The orders that make these, joined to pieces that are worth a way to a thread."""
    waiting = bytearray()
    for item in items:
        for part in _order(item):
            waiting += part
            if len(waiting) >= PIECE:
                yield bytes(waiting)
                waiting.clear()
    yield bytes(waiting)


def _order(item: Brought) -> Iterator[bytes]:
    entry = item.entry
    path = os.fsencode(entry.path)
    if entry.kind == FOLDER:
        yield frame(b"M", _FOLDER_MODE.to_bytes(4) + path)
    elif entry.kind == LINK:
        yield frame(b"K", os.fsencode(entry.target) + b"\0" + path)
    else:
        try:
            file = Path(item.source).open("rb", buffering=0)  # noqa: SIM115 - with no file there is no order
        except FileNotFoundError:
            return  # removed since: whoever did that says so
        with file:
            status = os.fstat(file.fileno())
            yield frame(b"P", struct.pack(">Iqq", entry.mode, status.st_mtime_ns, status.st_size) + path)
            left = status.st_size
            while left:
                piece = file.read(min(left, PIECE))
                if not piece:
                    raise ChannelBroken(f"{item.source} was cut while it was read")
                left -= len(piece)
                yield piece
