"""Where a backup is written: a tar file, or a folder. It has its name only when it is whole and on the disk.

Until then it is a hidden name beside; leaving the context without `finish` removes that. Nobody but its owner
may read it: the token is in it.
"""

import os
import shutil
import tarfile
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from trainshed.backup.files import Extent, OpenedFile, write_file
from trainshed.core.errors import AlreadyExists
from trainshed.disk.folder_sync import sync_folder

HOME, MANIFEST = "home", "manifest.jsonl"
_PACKED = (".gz", ".tgz", ".bz2", ".xz", ".zst", ".zip")


class BackupTarget(Protocol):
    def __enter__(self) -> "BackupTarget": ...

    def begin(self) -> None:
        """Make the hidden name. Not in `__enter__`: Ctrl-C there would keep `__exit__` from being called."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def add(self, path: str, file: OpenedFile, mode: int, modified: int) -> None:
        """Write a file of the home."""
        ...

    def add_folder(self, path: str, mode: int, modified: int) -> None:
        """Give a folder its mode. All that is in it has been added."""
        ...

    def finish(self, manifest: Path) -> None:
        """Add the manifest, and give the backup its name."""
        ...


def is_packed(path: Path) -> bool:
    """Whether the name promises what a backup is not: compressed."""
    return path.name.endswith(_PACKED)


def make_target(path: Path) -> BackupTarget:
    """A tar file if it is called so, else a folder."""
    return TarTarget(path) if path.name.endswith(".tar") else FolderTarget(path)


class _Draft:
    """The hidden name, and the real one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.draft = path.with_name(f".{path.name}.{os.getpid()}.part")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.draft.is_dir():
            shutil.rmtree(self.draft, ignore_errors=True)
        else:
            self.draft.unlink(missing_ok=True)

    def rename(self) -> None:
        if os.path.lexists(self.path):
            raise AlreadyExists(f"There is a {self.path} already: choose another name.")
        self.draft.rename(self.path)
        sync_folder(str(self.path.parent))


class TarTarget(_Draft):
    """tar's PAX format; files with holes as GNU tar writes them (sparse format 1.0)."""

    def begin(self) -> None:
        self.draft.unlink(missing_ok=True)  # of a process of the same number, killed
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._file = open(os.open(self.draft, flags, 0o600), "wb", 0)  # noqa: SIM115 - `finish` closes it

    def add(self, path: str, file: OpenedFile, mode: int, modified: int) -> None:
        self._member(f"{HOME}/{path}", file, mode, modified)

    def add_folder(self, path: str, mode: int, modified: int) -> None:
        entry = _entry(f"{HOME}/{path}", mode, modified)
        entry.type = tarfile.DIRTYPE
        self._write(_head(entry))

    def finish(self, manifest: Path) -> None:
        with closing(OpenedFile(manifest)) as file:
            self._member(MANIFEST, file, 0o600, int(file.status.st_mtime))
        self._write(bytes(2 * tarfile.BLOCKSIZE))
        os.fsync(self._file.fileno())
        self._file.close()
        self.rename()

    def _member(self, name: str, file: OpenedFile, mode: int, modified: int) -> None:
        entry, extents = _entry(name, mode, modified), file.extents()
        size, holes = sum(length for _, length in extents), b""
        if size < file.size:
            holes = _map(extents)
            entry.pax_headers = {
                "GNU.sparse.major": "1",
                "GNU.sparse.minor": "0",
                "GNU.sparse.name": name,
                "GNU.sparse.realsize": str(file.size),
            }
            folder, _, base = name.rpartition("/")
            entry.name = f"{folder}/GNUSparseFile.0/{base}"
        entry.size = len(holes) + size
        self._write(_head(entry) + holes)
        for _, piece in file.read(extents):
            self._write(piece)
        self._write(bytes(-size % tarfile.BLOCKSIZE))

    def _write(self, piece: bytes) -> None:
        written = 0
        while written < len(piece):
            written += self._file.write(memoryview(piece)[written:])


class FolderTarget(_Draft):
    def begin(self) -> None:
        shutil.rmtree(self.draft, ignore_errors=True)  # of a process of the same number, killed
        (self.draft / HOME).mkdir(0o700, parents=True)
        self.draft.chmod(0o700)

    def add(self, path: str, file: OpenedFile, mode: int, modified: int) -> None:
        write_file(f"{self.draft}/{HOME}/{path}", file, mode, modified)

    def add_folder(self, path: str, mode: int, modified: int) -> None:
        folder = f"{self.draft}/{HOME}/{path}"
        os.makedirs(folder, 0o700, exist_ok=True)
        os.chmod(folder, mode)
        os.utime(folder, (modified, modified))

    def finish(self, manifest: Path) -> None:
        with closing(OpenedFile(manifest)) as file:
            write_file(str(self.draft / MANIFEST), file, 0o600, int(file.status.st_mtime))
        os.sync()  # of thousands of files, all at once
        self.rename()


def _entry(name: str, mode: int, modified: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.mode, entry.mtime = mode, modified
    return entry


def _head(entry: tarfile.TarInfo) -> bytes:
    return entry.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


def _map(extents: list[Extent]) -> bytes:
    numbers = [len(extents), *(number for extent in extents for number in extent)]
    text = "".join(f"{number}\n" for number in numbers).encode()
    return text + bytes(-len(text) % tarfile.BLOCKSIZE)
