"""Makes a home of a backup, or only checks that it could be made.

Everything is written into a hidden folder of the new home and compared with the manifest. Only then it takes
its place. A server refuses a home in which that folder still is (`serving.make_home`).
"""

import os
import shutil
import signal
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from trainshed.backup.errors import DamagedBackup
from trainshed.backup.files import Readable, exhaust, write_file
from trainshed.backup.home_use import server_of
from trainshed.backup.manifest import SavedEntry
from trainshed.backup.progress import CopyProgress
from trainshed.backup.source import BackupReader
from trainshed.cli.words import size as size_words
from trainshed.core.errors import Conflict, Exhausted
from trainshed.disk.folder_sync import sync_folder
from trainshed.settings.table import RESTORING

_OF_THE_DISK = frozenset({"lost+found"})  # in a home that is a disk of its own


@dataclass(slots=True)
class RestoredHome:
    home: str  # empty: the backup was only checked
    files: int = 0
    bytes: int = 0
    made: str = ""  # when the backup was
    left_out: list[str] = field(default_factory=list[str])  # what is not in it, in sentences


class Restore:
    """`home` is None to check the backup only."""

    def __init__(self, backup: Path, home: Path | None) -> None:
        self._backup, self._home = backup, home.absolute() if home is not None else None
        self._result = RestoredHome(str(self._home or ""))

    def run(self) -> RestoredHome:
        if self._home is not None:
            check_free(self._home)
        plain = BackupReader(self._backup, lambda _: None)
        needed, about = plain.needed(), plain.about()
        self._result.made = str(about.get("made", ""))
        self._result.left_out = cast(list[str], about.get("left_out", []))
        progress = CopyProgress("restored" if self._home else "checked", needed)
        reader = BackupReader(self._backup, lambda piece: progress.add(len(piece)))
        if self._home is None:
            self._read(reader, None)
            return self._result
        is_new = not self._home.exists()
        draft = self._home / RESTORING
        try:
            self._home.mkdir(0o700, parents=True, exist_ok=True)
            _check_room(self._home, needed)
            draft.mkdir(0o700)
            self._read(reader, draft)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            if is_new and self._home.exists():
                self._home.rmdir()
            raise
        _put_in_place(self._home, draft)
        return self._result

    def _read(self, reader: BackupReader, folder: Path | None) -> None:
        """Read all, into the folder if there is one; DamagedBackup if anything is not as it was saved."""
        with reader.translated(), closing(reader.entries()) as entries:
            for entry, source in entries:
                self._result.files += 1
                self._result.bytes += entry.size or 0
                if source is not None:
                    self._take(entry, source, folder)
                elif folder is not None:
                    _make_folder(f"{folder}/{entry.path}", entry)

    def _take(self, entry: SavedEntry, source: Readable, folder: Path | None) -> None:
        if source.size == entry.size:
            if folder is None:
                exhaust(source)
            else:
                write_file(f"{folder}/{entry.path}", source, entry.mode, entry.modified)
            if source.sha256 == entry.sha256:
                return
        raise DamagedBackup(self._backup, f"{entry.path} does not have the bytes that were saved")


def check_free(home: Path) -> None:
    """Conflict unless nothing is in the home and no server uses it."""
    if pid := server_of(home):
        raise Conflict(f"A server (pid {pid}) uses {home}. Stop it first, or choose another home.")
    if home.exists():
        names = set(os.listdir(home)) if home.is_dir() else {home.name}
        if RESTORING in names:
            raise Conflict(f"A restore into {home} was broken off. Remove {home}, then restore again.")
        if names - _OF_THE_DISK:
            raise Conflict(f"{home} is not empty: choose another home, or move what is there away.")


def _check_room(home: Path, needed: int) -> None:
    free = shutil.disk_usage(home).free
    if free < needed:
        raise Exhausted(
            f"The backup has {size_words(needed)}, and the disk of {home} has {size_words(free)}. "
            "Make room, or choose another home."
        )


def _make_folder(path: str, entry: SavedEntry) -> None:
    os.makedirs(path, 0o700, exist_ok=True)
    os.chmod(path, entry.mode)
    os.utime(path, (entry.modified, entry.modified))


def _put_in_place(home: Path, draft: Path) -> None:
    """Rename all. If that breaks off, the draft stays, and with it nobody takes the home for a whole one."""
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    os.sync()  # of thousands of files, all at once
    for name in sorted(os.listdir(draft)):
        (draft / name).rename(home / name)
    sync_folder(str(home))
    draft.rmdir()
    home.chmod(0o700)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM))
