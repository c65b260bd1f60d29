"""StagedTar: a tar file that somebody sends, kept as a whole until it is known what is in it.

`service/image_uploads.py` calls it. The file has no name: it is gone with the server, however that ends. It
takes no more than the disk has room for, and reading its headers takes bounded memory. Who passes on what is
in it writes headers of their own, so that nobody behind reads them otherwise.
"""

import asyncio
import gzip
import os
import tarfile
import tempfile
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from trainshed.core.errors import Exhausted, Invalid, Unavailable, Violation

RESERVE = 1 << 30  # bytes of the disk that stay free
_BATCH = 4 << 20
_PIECE = 256 * 1024
_MOST_HEADER = 1 << 20  # bytes of what stands before the content of one file: long names and the like
_GZIP = b"\x1f\x8b"
_OTHERS = (b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd")


@dataclass(frozen=True, slots=True)
class TarEntry:
    """What a header says. `tar` writes it again."""

    path: str  # without "." and ".." in it
    header: tarfile.TarInfo
    at: int  # where its content begins

    @property
    def size(self) -> int:
        return self.header.size

    @property
    def is_file(self) -> bool:
        return self.header.isreg()

    @property
    def link(self) -> str:
        """Where a link leads; empty for what is none."""
        to = self.header.linkname
        if self.header.issym() and not to.startswith("/"):
            return normal(f"{self.path}/../{to}")
        return normal(to) if self.header.issym() or self.header.islnk() else ""


class StagedTar:
    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def entries(self) -> Iterator[TarEntry]:
        """What is in it, in order. Invalid where it is no tar file, or is not whole."""
        source: Any = _HeaderFile(self._file)
        try:
            with tarfile.open(fileobj=source, mode="r:") as tar:
                kept: list[tarfile.TarInfo] = vars(tar)["members"]
                while (header := tar.next()) is not None:
                    kept.clear()  # it would keep them all
                    source.renew()
                    if header.size < 0:
                        raise tarfile.ReadError("a size in it is below 0")
                    if not (header.isreg() or header.isdir() or header.issym() or header.islnk()):
                        raise _wrong(f"has {header.name[:200]}, which is no file, folder or link")
                    if header.issparse():
                        raise _wrong(f"has {header.name[:200]} with holes in it: send it without them")
                    yield TarEntry(normal(header.name), header, header.offset_data)
                end = tar.offset
        except (tarfile.TarError, ValueError, OverflowError, RecursionError) as error:
            raise _wrong(f"is no tar file that can be read: {error}") from error
        if self.read(end, tarfile.BLOCKSIZE).strip(b"\0"):
            raise _wrong("is no tar file that can be read: it has no end")

    def read(self, at: int, size: int) -> bytes:
        return os.pread(self._file.fileno(), size, at)

    def content(self, entry: TarEntry) -> Iterator[bytes]:
        at, end = entry.at, entry.at + entry.size
        while at < end and (piece := self.read(at, min(_PIECE, end - at))):
            at += len(piece)
            yield piece


def text_entry(path: str, text: bytes) -> Iterator[bytes]:
    """A file with that text, as a part of a tar file."""
    header = tarfile.TarInfo(path)
    header.size = len(text)
    return _written(header, (text,))


def entry_again(tar: StagedTar, entry: TarEntry, path: str = "") -> Iterator[bytes]:
    """The entry as a part of another tar file, under that path or its own."""
    old = entry.header
    header = tarfile.TarInfo(path or old.name)
    header.type = tarfile.REGTYPE if entry.is_file else old.type
    header.linkname, header.mode, header.mtime = old.linkname, old.mode, int(old.mtime)
    header.uid, header.gid, header.uname, header.gname = old.uid, old.gid, old.uname, old.gname
    header.size = old.size if entry.is_file else 0
    return _written(header, tar.content(entry) if entry.is_file else ())


def tar_end() -> bytes:
    return bytes(2 * tarfile.BLOCKSIZE)


def normal(path: str) -> str:
    """The path from the top of the archive; nothing leads out of it."""
    return os.path.normpath(f"/{path}").lstrip("/")


def _written(header: tarfile.TarInfo, content: Iterable[bytes]) -> Iterator[bytes]:
    yield header.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
    yield from content
    yield bytes(-header.size % tarfile.BLOCKSIZE)


@asynccontextmanager
async def staged_tar(chunks: AsyncIterator[bytes], folder: Path) -> AsyncGenerator[StagedTar]:
    """All that is sent, unpacked where it is packed. Raises Exhausted where the disk has no room for it."""
    with _file_in(folder) as file:
        batch, size = list[bytes](), 0
        async for chunk in chunks:
            batch.append(chunk)
            size += len(chunk)
            if size >= _BATCH:
                await asyncio.to_thread(_keep, file, batch)
                batch, size = [], 0
        await asyncio.to_thread(_keep, file, batch)
        begin = os.pread(file.fileno(), 8, 0)
        if begin.startswith(_OTHERS):
            raise _wrong("is packed in a way that is not taken: send it as it is, or packed by gzip")
        if not begin.startswith(_GZIP):
            yield StagedTar(file)
            return
        with _file_in(folder) as plain:
            await asyncio.to_thread(_unpack, file, plain)
            file.truncate(0)
            yield StagedTar(plain)


async def in_batches(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """The same bytes, read in threads."""

    def some() -> bytes:
        batch, size = list[bytes](), 0
        for piece in pieces:
            batch.append(piece)
            size += len(piece)
            if size >= _PIECE:
                break
        return b"".join(batch)

    while batch := await asyncio.to_thread(some):
        yield batch


def _file_in(folder: Path) -> IO[bytes]:
    try:
        return tempfile.TemporaryFile(dir=folder)
    except OSError as error:
        raise _unkept(error) from error


def _keep(file: IO[bytes], batch: Iterable[bytes]) -> None:
    data = b"".join(batch)
    try:
        disk = os.fstatvfs(file.fileno())
        if disk.f_bavail * disk.f_frsize < len(data) + RESERVE:
            raise Exhausted("The disk of the server has no room for what is sent.")
        file.write(data)
        file.flush()
    except OSError as error:
        raise _unkept(error) from error


def _unpack(packed: IO[bytes], plain: IO[bytes]) -> None:
    packed.seek(0)
    try:
        with gzip.open(packed) as file:
            while data := file.read(_BATCH):
                _keep(plain, (data,))
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise _wrong(f"cannot be unpacked: {error}") from error


class _HeaderFile:
    """The file as the reader of headers sees it, which reads no more than a header may take."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._at, self._left = file, 0, _MOST_HEADER

    def tell(self) -> int:
        return self._at

    def seek(self, at: int) -> None:
        self._at = at

    def renew(self) -> None:
        self._left = _MOST_HEADER

    def read(self, size: int) -> bytes:
        self._left -= size
        if size < 0 or self._left < 0:
            raise tarfile.ReadError("a name in it is too long")
        data = os.pread(self._file.fileno(), size, self._at)
        self._at += len(data)
        return data


def _wrong(what: str) -> Invalid:
    return Invalid((Violation("", f"What was sent {what}."),))


def _unkept(error: OSError) -> Unavailable:
    return Unavailable(f"What is sent cannot be kept on the server's disk: {error.strerror or error}.")
