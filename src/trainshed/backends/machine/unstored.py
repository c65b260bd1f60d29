"""Puts aside what programs wrote and no bucket would take, when the view that holds it goes.

    unstored/JOB/LABEL/BUCKET/NAME   as programs wrote it, until the job is deleted
    unstored/JOB/.LABEL              the whole view, on its way there

mounts.py calls it, in threads. It moves a view away at once and whole, and never throws away what was
written.
"""

import contextlib
import json
import os
import shutil
from pathlib import Path
from stat import S_ISCHR

from trainshed.backends.machine import written
from trainshed.disk.regular_file import read_regular

MARK = "keep"  # in a view: what was written there is to be put aside
_LAYERS = ("upper", "plain")


class Unstored:
    def __init__(self, root: Path) -> None:
        self._root = root
        self._jobs: set[str] = set()

    def open(self) -> None:
        """Find what an earlier server kept, and finish what it had begun."""
        with contextlib.suppress(FileNotFoundError):
            for job in list(self._root.iterdir()):
                for view in job.glob(".*"):
                    _unwrap(view, {})
                self._note(job.name)

    def mark(self, job: str, view: Path) -> str:
        """Have what was written in the view kept; the folder in which it will be found."""
        (view / MARK).touch(mode=0o600)
        return str(self._root / job)

    def take(self, job: str, view: Path) -> bool:
        """Put a view that is marked aside; whether it was."""
        if not (view / MARK).exists():
            return False
        stored = {f"{note.bucket}/{note.name}": note.stamp for note in written.notes(view.parent)}
        (self._root / job).mkdir(mode=0o700, parents=True, exist_ok=True)
        aside = self._root / job / f".{view.name}"
        view.rename(aside)
        _unwrap(aside, stored)
        self._note(job)
        return True

    def _note(self, job: str) -> None:
        try:
            (self._root / job).rmdir()  # all of it was stored after all
            self._jobs.discard(job)
        except OSError:
            self._jobs.add(job)

    def kept(self, job: str) -> str:
        return str(self._root / job) if job in self._jobs else ""

    def discard(self, job: str) -> None:
        self._jobs.discard(job)
        shutil.rmtree(self._root / job, ignore_errors=True)


def _unwrap(view: Path, stored: dict[str, str]) -> None:
    """Leave what was written and is not stored; the snapshot it was written over goes."""
    known = dict(stored)
    with contextlib.suppress(OSError, ValueError):
        known |= json.loads(read_regular(view / written.BASELINE, written.MOST_BASELINE))
    for layer in _LAYERS:
        top = view / layer
        if top.is_dir():
            _prune(top, known)
            if any(top.iterdir()):
                top.rename(view.with_name(view.name.removeprefix(".")))
    shutil.rmtree(view, ignore_errors=True)


def _prune(top: Path, known: dict[str, str]) -> None:
    """Remove what is known to be elsewhere, and the marks by which the overlay remembers removals."""
    for folder, _, names in os.walk(top, topdown=False):
        for path in (Path(folder, name) for name in names):
            status = path.lstat()
            inner = str(path.relative_to(top))
            if S_ISCHR(status.st_mode) or known.get(inner) == written.stamp_of(status):
                path.unlink()
        if folder != str(top):
            with contextlib.suppress(OSError):  # not empty
                Path(folder).rmdir()
