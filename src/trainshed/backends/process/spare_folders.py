"""Keeps the folders of ended jobs for the next jobs.

The backend calls it. Making and removing eight files and folders is most of what a short job costs on disk;
ext4 even looks through everything removed in the last minute before it makes anything new. So the folder of a
job of one replica is not removed but emptied, cleared, and renamed into place for a later job.

Nothing of the old job may be alive. A folder is cleared before it is kept, and kept only if everything in it
is ours and as we made it: a job never sees what another wrote, and never gets wider permissions. Spare
folders belong to one server: the next one starts without.
"""

import os
import shutil
from pathlib import Path
from stat import S_IMODE, S_ISDIR, S_ISREG

MOST = 64
RUN = "0/0-0/0"  # of the first run of a first replica: the only one there is in a folder that can be kept
_FILES = ["launch.json", "record"]
_FOLDERS = {
    "": ["0"],
    "0": ["0-0"],
    "0/0-0": ["0", "tmp", "work"],
    "0/0-0/work": [],
    "0/0-0/tmp": [],
    RUN: _FILES,
}


class SpareFolders:
    def __init__(self, home: Path) -> None:
        self._home = home
        self._kept: list[str] = []
        self._made = 0

    def open(self) -> None:
        shutil.rmtree(self._home, ignore_errors=True)
        self._home.mkdir(mode=0o700)
        self._kept.clear()

    def take(self, run: str) -> bool:
        """Put a job's folders there, given that of its first run. False where there is none for it."""
        if not self._kept or not run.endswith(f"/{RUN}"):
            return False
        try:
            os.rename(self._kept[-1], run.removesuffix(f"/{RUN}"))
        except OSError:
            return False  # the place is taken
        self._kept.pop()
        return True

    def keep(self, folder: str) -> bool:
        """Clear and keep the folder of an ended job; False, and nothing lost, where it has to be removed."""
        if len(self._kept) >= MOST:
            return False
        try:
            if not _is_plain(folder):
                return False
            _clear(f"{folder}/{RUN}")
            self._made += 1
            spare = f"{self._home}/{self._made}"
            os.rename(folder, spare)
        except OSError:
            return False
        self._kept.append(spare)
        return True


def strip(folder: str) -> bool:
    """Remove what the job had and wrote where it may write; whether that went well. Takes its time."""
    replica = f"{folder}/{RUN}".rpartition("/")[0]
    try:
        for name in os.listdir(replica):
            place = f"{replica}/{name}"
            if name not in _FOLDERS["0/0-0"]:
                os.unlink(place)
            elif name != "0" and os.listdir(place):
                shutil.rmtree(place)
                os.mkdir(place, 0o700)
    except OSError:
        return False
    return True


def _is_plain(folder: str) -> bool:
    """Whether there is exactly what we made, with the rights we gave it."""
    for name, content in _FOLDERS.items():
        place = f"{folder}/{name}"
        status = os.lstat(place)
        if not S_ISDIR(status.st_mode) or S_IMODE(status.st_mode) != 0o700 or status.st_uid != os.getuid():
            return False
        if sorted(os.listdir(place)) != content:
            return False
    for name in _FILES:
        status = os.lstat(f"{folder}/{RUN}/{name}")
        if not S_ISREG(status.st_mode) or S_IMODE(status.st_mode) != 0o600 or status.st_nlink != 1:
            return False
    return True


def _clear(run: str) -> None:
    """Leave nothing in it that could be taken for a launch or a record, or read by the next program."""
    # Written over, not cut: ext4 writes a file that was cut to nothing to the disk at once, and waits.
    for name in _FILES:
        handle = os.open(f"{run}/{name}", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.pwrite(handle, b" " * os.fstat(handle).st_size, 0)
        finally:
            os.close(handle)
    os.rename(f"{run}/record", f"{run}/.ready")
