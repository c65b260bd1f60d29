"""One output file of one replica: how far it has been dated, and what of it is gone.

The program appends to the file by itself; this side only looks at its size and writes down when it had
grown how far (`Index`). Not for two threads, but `drop` may be read by any: it is replaced, never changed.

A program may empty its own output (`echo text > /dev/stderr` does). Then the file is stretched to its old
length again, so that offsets stay true, what was written meanwhile is appended, and a marker says what is
gone.
"""

import os
from dataclasses import dataclass
from stat import S_ISREG

from trainshed.core.logs import OutputStream
from trainshed.core.names import ReplicaName
from trainshed.disk.regular_file import open_regular, read_regular
from trainshed.logs import drop as drops
from trainshed.logs.drop import Drop
from trainshed.logs.index import Index

_SALVAGE = 1024 * 1024  # bytes at most that are saved from an emptied file
_SUFFIX = {OutputStream.STDOUT: "out", OutputStream.STDERR: "err"}


def make(path: str) -> bool:
    """Make an empty file there; False where there is one already. What is not a file goes first."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))
    except FileExistsError:
        if S_ISREG(os.lstat(path).st_mode):
            return False
        os.unlink(path)
        return make(path)
    return True


def path_of(folder: str, name: ReplicaName, stream: OutputStream) -> str:
    return f"{folder}/{name.attempt}.{name.pool}-{name.index}.{_SUFFIX[stream]}"


@dataclass(frozen=True, slots=True)
class ReadableRange:
    """What of a file may be read: a promise that holds while the file grows on."""

    file: "LogFile"
    count: int  # records of the index
    end: int  # bytes dated
    latest: int  # no line is later than this
    is_closed: bool


class LogFile:
    def __init__(self, path: str, name: ReplicaName, stream: OutputStream, is_new: bool = False) -> None:
        self.path = path
        self.name = name
        self.stream = stream
        self.index = Index(f"{path}.idx", is_new)
        self.drop = None if is_new else drops.load(f"{path}.drop")

    @property
    def kept(self) -> int:
        """Bytes dated and not dropped."""
        return self.index.last.end - (self.drop.size if self.drop else 0)

    def view(self) -> ReadableRange:
        index = self.index
        return ReadableRange(self, index.count, index.last.end, index.bound, index.is_closed)

    def is_intact(self) -> bool:
        """Whether file and index are regular files still: a job may have removed or replaced them."""
        try:
            return all(S_ISREG(os.lstat(path).st_mode) for path in (self.path, self.index.path))
        except OSError:
            return False

    def grown(self) -> tuple[int, int] | None:
        """(modification time, size) where there are bytes not dated yet."""
        try:
            status = os.lstat(self.path)
        except FileNotFoundError:
            return None
        if not S_ISREG(status.st_mode):
            return None  # a job put something else there: what it prints now goes nowhere we could read
        if status.st_size < self.index.last.end:
            status = self._stretch()
        return (status.st_mtime_ns, status.st_size) if status.st_size > self.index.last.end else None

    def stamp(self, modified_ns: int, size: int, now_ns: int, floor_ns: int) -> None:
        """Date the bytes up to size: by the time they were written, but later than all dated before."""
        length = size - self.index.last.end
        floor_ns = max(floor_ns, self.index.bound)
        # The last byte was there at `modified`; a time in the future would only be a clock that was set back.
        self.index.append(max(floor_ns + 1, min(modified_ns, now_ns) - length), size)

    def close(self, now_ns: int, floor_ns: int) -> None:
        """Date a last line without newline. All bytes must be dated."""
        end = self.index.last.end
        if end and not self.index.is_closed and self.read(end - 1, 1) != b"\n":
            self.index.append(max(floor_ns + 1, self.index.bound + 1, now_ns), end)

    def set_drop(self, drop: Drop) -> None:
        drops.save(f"{self.path}.drop", drop)
        self.drop = drop

    def read(self, offset: int, length: int) -> bytes:
        return read_regular(self.path, length, offset)

    def _stretch(self) -> os.stat_result:
        end = self.index.last.end
        self.set_drop(Drop(0, end, 0))
        descriptor = open_regular(self.path, os.O_RDWR | os.O_APPEND)
        try:
            os.ftruncate(descriptor, end)
            written = os.pread(descriptor, min(end, _SALVAGE), 0).rstrip(b"\0")
            os.write(descriptor, written)
            return os.fstat(descriptor)
        finally:
            os.close(descriptor)
