"""Reads a backup, a tar file or a folder: the entries of its manifest, each with its file.

`Restore` calls it. All that is wrong with the backup is raised as DamagedBackup, also after the last entry:
so nobody may use what was read before the iteration has ended. It reads each byte once and never writes.
"""

import tarfile
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO

from trainshed.backup.errors import DamagedBackup
from trainshed.backup.files import OpenedFile, Readable, TarMember, Watch
from trainshed.backup.manifest import ManifestReader, SavedEntry
from trainshed.backup.target import HOME, MANIFEST
from trainshed.core.errors import NotFound

ReadEntry = tuple[SavedEntry, Readable | None]  # None: a folder


class BackupReader:
    """`watch` is given all bytes of files."""

    def __init__(self, path: Path, watch: Watch) -> None:
        if not path.exists():
            raise NotFound(f"There is no backup {path}.")
        self._path, self._watch = path, watch

    def needed(self) -> int:
        """How many bytes its files have."""
        with self.translated(), self._manifest() as manifest:
            return sum(entry.size or 0 for entry in manifest)

    def about(self) -> dict[str, object]:
        with self.translated(), self._manifest() as manifest:
            return manifest.about

    def entries(self) -> Generator[ReadEntry]:
        """All of them, for a caller that has entered `translated`: he reads the files."""
        with self._manifest() as manifest:
            yield from self._in_folder(manifest) if self._path.is_dir() else self._in_tar(manifest)

    def _in_folder(self, manifest: ManifestReader) -> Iterator[ReadEntry]:
        for entry in manifest:
            if entry.size is None:
                yield entry, None
            else:
                try:
                    opened = OpenedFile(self._path / HOME / entry.path, watch=self._watch)
                except FileNotFoundError as error:
                    raise DamagedBackup(self._path, f"{entry.path} is not there") from error
                with closing(opened) as file:
                    yield entry, file

    def _in_tar(self, manifest: ManifestReader) -> Iterator[ReadEntry]:
        """The manifest has the order in which the files were written."""
        with _opened(self._path) as tar:
            members = _members(tar)
            for entry in manifest:
                member = next(members, None)
                if member is None or member.name != f"{HOME}/{entry.path}":
                    raise ValueError(f"{entry.path} is not where its manifest says")
                if entry.size is None:
                    yield entry, None
                elif member.isfile():
                    yield entry, TarMember(tar, member, self._watch)
                else:
                    raise ValueError(f"{entry.path} is not a file")

    @contextmanager
    def _manifest(self) -> Generator[ManifestReader]:
        with self._manifest_file() as file:
            yield ManifestReader(iter(file.readline, b""))

    @contextmanager
    def _manifest_file(self) -> Generator[IO[bytes]]:
        if self._path.is_dir():
            if not (self._path / MANIFEST).exists():
                raise ValueError(
                    f"it has no {MANIFEST}, and so is not whole, or is not a backup of Trainshed"
                )
            with (self._path / MANIFEST).open("rb") as file:
                yield file
            return
        with _opened(self._path) as tar:
            for member in _members(tar):
                if member.name == MANIFEST and (file := tar.extractfile(member)) is not None:
                    with file:
                        yield file
                    return
        raise ValueError(f"it has no {MANIFEST}, and so is cut off, or is not a backup of Trainshed")

    @contextmanager
    def translated(self) -> Generator[None]:
        """Raise what is wrong with the bytes of the backup as DamagedBackup."""
        try:
            yield
        except (ValueError, tarfile.TarError, EOFError) as error:
            raise DamagedBackup(self._path, str(error)) from error


def _opened(path: Path) -> tarfile.TarFile:
    return tarfile.open(path, "r:", encoding="utf-8", errors="surrogateescape")


def _members(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    while (member := tar.next()) is not None:
        tar.members = []  # pyright: ignore[reportAttributeAccessIssue] - it would keep all of them
        yield member
