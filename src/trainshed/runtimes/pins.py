"""Which content each job's packages have, on the disk: fixed once, kept until the job is over. It blocks.

One small file a job, synced before anything is built of it, so that whatever dies when, all replicas of a job
and all runs of each get the same. Beside it the packages themselves, by hash. It may assume that one server
alone works on the folder, and that a job's id can be the name of a file.
"""

import contextlib
import json
import os
import shutil
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from trainshed.core.supplies.package import Package

KEPT = 3600.0  # seconds a package stays that no job has any more: the next one like it need not be fetched
COMING = 60.0  # ... where room is needed: one may just have come, and be pinned in a moment

Pinned = Mapping[str, Package]  # by address


@dataclass(frozen=True, slots=True)
class Pins:
    folder: Path

    def open(self) -> dict[str, Pinned]:
        """Everything pinned. What was on its way when a server was killed goes."""
        shutil.rmtree(self._coming, ignore_errors=True)
        for folder in (self._notes, self._files, self._coming):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        result: dict[str, Pinned] = {}
        for note in self._notes.iterdir():
            with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
                packages = [Package(**load) for load in json.loads(note.read_text())]
                result[note.name] = {package.uri: package for package in packages}
        return result

    def path(self, package: Package) -> Path:
        return self._files / package.sha256 / package.name

    def has(self, package: Package) -> bool:
        """Whether its file is there, by the look of it; its hash is compared before it is unpacked."""
        try:
            return self.path(package).stat().st_size == package.size
        except OSError:
            return False

    def coming(self) -> Path:
        """Where a package may be written that is on its way."""
        return self._coming / os.urandom(8).hex()

    def keep(self, package: Package, file: Path) -> None:
        path = self.path(package)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.replace(path)

    def discard(self, package: Package) -> None:
        self.path(package).unlink(missing_ok=True)

    def pin(self, job: str, pinned: Pinned) -> None:
        draft = self._coming / f"{job}.pins"
        with draft.open("w", encoding="utf-8") as file:
            json.dump([asdict(item) for item in pinned.values()], file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._notes / job)
        notes = os.open(self._notes, os.O_RDONLY)
        try:
            os.fsync(notes)
        finally:
            os.close(notes)

    def forget(self, jobs: Iterable[str]) -> None:
        for job in jobs:
            (self._notes / job).unlink(missing_ok=True)

    def tidy(self, wanted: frozenset[str], kept: float) -> None:
        """Remove what is not among these hashes, so many seconds after it was last used."""
        now = time.time()
        for folder in self._files.iterdir():
            with contextlib.suppress(OSError):
                if folder.name not in wanted and now - folder.stat().st_mtime > kept:
                    shutil.rmtree(folder, ignore_errors=True)

    def touch(self, package: Package) -> None:
        with contextlib.suppress(OSError):
            os.utime(self.path(package).parent)

    @property
    def tools(self) -> Path:
        return self.folder / "tools"

    @property
    def _notes(self) -> Path:
        return self.folder / "pins"

    @property
    def _files(self) -> Path:
        return self.folder / "files"

    @property
    def _coming(self) -> Path:
        return self.folder / "coming"
