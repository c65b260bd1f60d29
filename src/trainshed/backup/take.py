"""Takes a backup of a home, while a server works on it or without one.

The order makes the copy consistent. The jobs' database is copied first, as of one commit; the buckets after
it, as of one commit of their index; all other files have second names before and after. So what a job in the
copy refers to is in the copy too: its code, its logs, what it stored. Only then the copying begins, which may
take long and reads nothing that could vanish.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from trainshed import __version__
from trainshed.backup.contents import BUCKETS, DATABASE, S3, SECRET_KEY, top_paths
from trainshed.backup.files import OpenedFile
from trainshed.backup.home_use import lock_owner, server_of
from trainshed.backup.manifest import ManifestWriter, SavedEntry
from trainshed.backup.progress import CopyProgress
from trainshed.backup.staging import Staging
from trainshed.backup.target import BackupTarget, is_packed, make_target
from trainshed.buckets.index_guard import IndexGuard
from trainshed.buckets.index_snapshot import BucketSnapshot, SnapshotFile
from trainshed.buckets.sums import Sums
from trainshed.cli.words import size as size_words
from trainshed.core.errors import AlreadyExists, Conflict, Exhausted, NotFound, Unavailable
from trainshed.settings.table import Settings
from trainshed.store.snapshot import copy_jobs

_SPARE = 16 << 20  # bytes beyond the files themselves: heads, the manifest
_OUTSIDE = ("config", "runtimes", "buckets", "registry_auth", "wheels")  # settings that name files


@dataclass(slots=True)
class TakenBackup:
    """What a backup has, and what it has not."""

    path: str
    files: int = 0
    bytes: int = 0
    jobs: int | None = None  # None: they are in another database
    buckets: int = 0
    objects: int = 0
    damaged: list[str] = field(default_factory=list[str])  # objects that were so before
    left_out: list[str] = field(default_factory=list[str])  # sentences


class BackupTaker:
    def __init__(self, settings: Settings, path: Path) -> None:
        self._settings, self._home = settings, settings.home.absolute()
        self._path = path.absolute()
        self._result = TakenBackup(str(self._path))

    def take(self) -> TakenBackup:
        self._check()
        has_buckets = IndexGuard(self._home / BUCKETS).check()
        server = server_of(self._home)
        with ExitStack() as stack:
            staged = stack.enter_context(Staging(self._home))
            staged.begin()
            buckets: BucketSnapshot | None = None
            if has_buckets:
                root = self._home / BUCKETS
                objects = stack.enter_context(Staging(root / ".trainshed"))
                objects.begin()
                buckets = BucketSnapshot(root, objects.folder)
            self._stage(staged, buckets, with_s3=not server)
            self._note_left_out(staged, server)
            self._write(staged, buckets)
        return self._result

    def _check(self) -> None:
        home, path = self._home, self._path
        if not home.is_dir():
            raise NotFound(f"There is no home {home}: name it with --home.")
        if is_packed(path):
            raise Conflict(f"{path} would be a compressed file: name a .tar, or a folder, and pack it later.")
        if path.exists() or path.is_symlink():
            raise AlreadyExists(f"There is a {path} already: choose another name.")
        if not path.parent.is_dir():
            raise NotFound(f"There is no folder {path.parent}: make it first.")
        if path.parent.resolve().is_relative_to(home.resolve()):
            raise Conflict(f"{path} is inside the home {home}: a backup belongs elsewhere.")

    def _stage(self, staged: Staging, buckets: BucketSnapshot | None, *, with_s3: bool) -> None:
        """Fix what the backup has, in this order."""
        self._link(staged, with_s3)
        self._copy_jobs(staged.folder / DATABASE)
        if buckets is not None:
            buckets.take()
        self._link(staged, with_s3)  # what has come since
        staged.link(self._home, SECRET_KEY)

    def _link(self, staged: Staging, with_s3: bool) -> None:
        for path in top_paths(self._home, with_s3=with_s3):
            staged.link(self._home, path)

    def _copy_jobs(self, into: Path) -> None:
        database = self._home / DATABASE
        if self._settings.database is not None:
            return
        if database.exists():
            self._result.jobs = copy_jobs(database, into)
        elif Path(f"{database}.created").exists():
            raise Unavailable(f"The database {database} is gone, and it was there before: put it back first.")

    def _note_left_out(self, staged: Staging, server: str) -> None:
        notes, settings = self._result.left_out, self._settings
        if settings.database is not None:
            notes.append(
                "The jobs are in another database (the setting `database`), which is not in the backup. Dump "
                "it too, with pg_dump, right before each backup."
            )
        elif server and not lock_owner(self._home):
            notes.append(
                f"The server (pid {server}) keeps its jobs in another database, which is not in the backup. "
                "Dump it too, with pg_dump, right before each backup."
            )
        if server and (self._home / S3).exists():
            notes.append(
                f"The objects of the S3 store beside the server ({self._home / S3}) are not in the backup: "
                "stop the server to have them in it, or copy its buckets."
            )
        for name in _OUTSIDE:
            path: Path | None = getattr(settings, name)
            if path is not None and not path.resolve().is_relative_to(self._home.resolve()):
                notes.append(f"{path}, which the setting `{name}` names, is not in the home.")
        if passed_over := sorted(filter(os.path.lexists, staged.passed_over)):  # others were deleted since
            few = ", ".join(passed_over[:3]) + (", …" if len(passed_over) > 3 else "")
            notes.append(f"Links, sockets and what may not be read are not in the backup: {few}.")

    def _write(self, staged: Staging, buckets: BucketSnapshot | None) -> None:
        total = room = 0
        for _, path in staged.files():
            status = path.stat()
            total, room = total + status.st_size, room + status.st_blocks * 512  # logs have holes
        if buckets is not None:
            size = buckets.copy.stat().st_size + sum(file.size for file in buckets.files())
            total, room = total + size, room + size
        free = shutil.disk_usage(self._path.parent).free
        if free < room + _SPARE:
            raise Exhausted(
                f"The backup needs {size_words(room + _SPARE)}, and the disk of {self._path.parent} has "
                f"{size_words(free)}. Make room, or choose another place."
            )
        progress = CopyProgress("copied", total)
        about = {
            "trainshed": __version__,
            "home": str(self._home),
            "made": datetime.now(UTC).isoformat(timespec="seconds"),
            "left_out": self._result.left_out,
        }
        manifest_path = staged.folder.with_name(f"{staged.folder.name}.manifest")
        try:
            with make_target(self._path) as target:
                target.begin()
                with manifest_path.open("xb") as file:
                    manifest = ManifestWriter(file, about)
                    for entry in self._entries(staged, buckets, target, progress):
                        manifest.add(entry)
                    manifest.end()
                target.finish(manifest_path)
        finally:
            manifest_path.unlink(missing_ok=True)
        self._result.files, self._result.bytes = manifest.entries, manifest.bytes

    def _entries(
        self, staged: Staging, buckets: BucketSnapshot | None, target: BackupTarget, progress: CopyProgress
    ) -> Iterator[SavedEntry]:
        """Write all, one after the other."""
        for path, place in staged.files():
            if place.is_dir():
                status = place.stat()
                entry = SavedEntry(path=path, mode=status.st_mode & 0o1777, modified=int(status.st_mtime))
                target.add_folder(path, entry.mode, entry.modified)
                yield entry
            else:
                with closing(OpenedFile(place, watch=lambda piece: progress.add(len(piece)))) as file:
                    yield _saved(target, path, file)
        if buckets is not None:
            yield from self._bucket_entries(buckets, target, progress)

    def _bucket_entries(
        self, buckets: BucketSnapshot, target: BackupTarget, progress: CopyProgress
    ) -> Iterator[SavedEntry]:
        with closing(OpenedFile(buckets.copy)) as file:
            yield _saved(target, f"{BUCKETS}/.trainshed/index.db", file)
        for saved in buckets.files():
            entry = self._object(saved, target, progress)
            if entry is not None:
                yield entry
        for name in buckets.buckets():
            self._result.buckets += 1
            path = f"{BUCKETS}/{name}"
            entry = SavedEntry(path=path, mode=0o700, modified=int(datetime.now(UTC).timestamp()))
            target.add_folder(path, entry.mode, entry.modified)
            yield entry

    def _object(self, saved: SnapshotFile, target: BackupTarget, progress: CopyProgress) -> SavedEntry | None:
        sums = Sums()

        def watch(piece: bytes) -> None:
            progress.add(len(piece))
            sums.feed((piece,))

        try:
            size = None if saved.crc32c else saved.size  # an object that is cut is copied as it is
            opened = OpenedFile(saved.source, size, watch)
        except OSError as error:
            self._result.damaged.append(
                f"{saved.address or saved.path}: its file cannot be read: {error.strerror}"
            )
            return None
        with closing(opened) as file:
            entry = _saved(target, f"{BUCKETS}/{saved.path}", file)
        if saved.crc32c:
            self._result.objects += 1
            if sums.crc32c != saved.crc32c:
                self._result.damaged.append(f"{saved.address}: its bytes are not those that were stored")
        return entry


def _saved(target: BackupTarget, path: str, file: OpenedFile) -> SavedEntry:
    mode, modified = file.status.st_mode & 0o1777, int(file.status.st_mtime)
    target.add(path, file, mode, modified)
    return SavedEntry(path=path, mode=mode, modified=modified, size=file.size, sha256=file.sha256)
