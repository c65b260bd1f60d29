"""Files as they are copied: read once in pieces, hashed on the way, their holes kept.

Logs have holes, where their middle was dropped: a copy of these bytes would be larger than the log.
"""

import hashlib
import os
import tarfile
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Protocol

from trainshed.core.errors import Conflict

PIECE = 1 << 20
_ZEROS = bytes(PIECE)
Extent = tuple[int, int]  # where bytes begin, and how many there are
Watch = Callable[[bytes], None]


def _unwatched(piece: bytes) -> None:
    pass


class Readable(Protocol):
    """A file that is read once, from the beginning."""

    size: int

    def data(self) -> Iterator[tuple[int, bytes]]:
        """The bytes with where each piece begins; between pieces, and after the last, there are zeros."""
        ...

    @property
    def sha256(self) -> str:
        """Of all bytes, once all were read."""
        ...


class OpenedFile:
    """A file of the disk, its first `size` bytes; all that it has now by default. Close it.

    `watch` is given all its bytes, those of holes too.
    """

    def __init__(self, path: str | Path, size: int | None = None, watch: Watch = _unwatched) -> None:
        self._path = path
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        self.status = os.fstat(self._file)
        self.size = self.status.st_size if size is None else size
        self._digest = hashlib.sha256()
        self._watch = watch

    def close(self) -> None:
        os.close(self._file)

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def extents(self) -> list[Extent]:
        """Where the file has bytes. One extent if there is no hole."""
        if self.status.st_blocks * 512 >= self.status.st_size:
            return [(0, self.size)] if self.size else []
        extents: list[Extent] = []
        at = 0
        with suppress(OSError):  # ENXIO: only a hole is left
            while at < self.size:
                first = os.lseek(self._file, at, os.SEEK_DATA)
                at = min(self.size, os.lseek(self._file, first, os.SEEK_HOLE))
                if first < self.size:
                    extents.append((first, at - first))
        return extents

    def data(self) -> Iterator[tuple[int, bytes]]:
        return self.read(self.extents())

    def read(self, extents: list[Extent]) -> Iterator[tuple[int, bytes]]:
        at = 0
        for first, length in extents:
            self._skip(first - at)
            at = first
            while at < first + length:
                piece = os.pread(self._file, min(PIECE, first + length - at), at)
                if not piece:
                    raise Conflict(f"{self._path} became shorter while it was copied. Try again.")
                self._digest.update(piece)
                self._watch(piece)
                yield at, piece
                at += len(piece)
        self._skip(self.size - at)

    def _skip(self, length: int) -> None:
        while length > 0:
            zeros = _ZEROS[:length]
            self._digest.update(zeros)
            self._watch(zeros)
            length -= len(zeros)


class TarMember:
    """A file inside a tar file that is being read."""

    def __init__(self, tar: tarfile.TarFile, member: tarfile.TarInfo, watch: Watch = _unwatched) -> None:
        file = tar.extractfile(member)
        assert file is not None, "it is a file"
        self._file = file
        self._has_holes = member.issparse()
        self.size = member.size
        self._digest = hashlib.sha256()
        self._watch = watch

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def data(self) -> Iterator[tuple[int, bytes]]:
        at = 0
        with closing(self._file):
            while piece := self._file.read(PIECE):
                self._digest.update(piece)
                self._watch(piece)
                if not self._has_holes or piece.count(0) < len(piece):
                    yield at, piece
                at += len(piece)
        if at != self.size:
            raise tarfile.ReadError("unexpected end of data")


def write_file(path: str, source: Readable, mode: int, modified: int) -> None:
    """Make the file, with the folders above it; FileExistsError where there is one."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        file = os.open(path, flags, 0o600)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        file = os.open(path, flags, 0o600)
    try:
        for at, piece in source.data():
            written = 0
            while written < len(piece):
                written += os.pwrite(file, memoryview(piece)[written:], at + written)
        os.ftruncate(file, source.size)
        os.fchmod(file, mode)
        os.utime(file, (modified, modified))
    finally:
        os.close(file)


def exhaust(source: Readable) -> None:
    """Read the whole file, for its hash."""
    for _ in source.data():
        pass
