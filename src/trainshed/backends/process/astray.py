"""Saves what a program wrote into the machine's own /gcs because nothing could be mounted there.

views.py calls it, in threads. What appears in /gcs while a job runs counts as the job's: it becomes part of
the job's view. So it is stored or, where no bucket takes it, fails the job and is kept. Two such jobs at a
time both get it. It never changes what is in /gcs, and never looks into a file system that is mounted there.
"""

import contextlib
import os
import shutil
from pathlib import Path

from trainshed.core.view import ROOT
from trainshed.disk.regular_file import open_regular

_MARK = "astray"  # a file in a view: what is newer in /gcs is the job's


def is_open() -> bool:
    """Whether a program could write into the machine's own /gcs, or make it."""
    place = Path(ROOT)
    return os.access(place if place.exists() else place.parent, os.W_OK)


def mark(view: Path) -> None:
    """Count what changes in /gcs from now on as the job's. A second call changes nothing."""
    if is_open():
        with contextlib.suppress(FileExistsError):
            (view / _MARK).touch(mode=0o600, exist_ok=False)


def rescue(view: Path) -> None:
    """Add to the view what was written into /gcs since it was marked: as a link, else as a copy."""
    try:
        since = (view / _MARK).stat().st_mtime_ns
        if Path(ROOT).lstat().st_dev != Path(ROOT).parent.stat().st_dev:
            return
    except OSError:
        return
    for folder, _, names in os.walk(ROOT):
        for name in names:
            source = Path(folder, name)
            with contextlib.suppress(OSError):  # gone meanwhile, or half written: the next scan tries again
                status = source.lstat()
                if status.st_ctime_ns >= since and not source.is_symlink():
                    _share(source, view / "plain" / source.relative_to(ROOT), status)


def _share(source: Path, target: Path, status: os.stat_result) -> None:
    with contextlib.suppress(FileNotFoundError):
        there = target.stat()
        # By both times: a copy keeps the time of change of what it was copied from, which may be long ago.
        newer = there.st_mtime_ns >= status.st_mtime_ns and there.st_ctime_ns >= status.st_ctime_ns
        if newer or os.path.samestat(there, status):
            return
        target.unlink()
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:  # another disk
        with os.fdopen(open_regular(source), "rb") as original, target.open("xb") as copy:
            shutil.copyfileobj(original, copy)
        shutil.copystat(source, target)
