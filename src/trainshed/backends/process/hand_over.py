"""Gives folders and files to the user of a job, and opens the way to them.

start.py calls it before the first program of a replica starts. What is below a folder is given away only
while no program could have put anything there: it could be a second name of somebody else's file. The folder
itself changes its owner last, so the next server begins again after a kill. It never follows a link.
"""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from stat import S_IMODE, S_ISDIR

from trainshed.backends.process.job_user import JobUser
from trainshed.disk.regular_file import open_regular

_WAY = 0o711  # others come through, and see no names


def open_folder(folder: Path) -> None:
    """Make the folder where it is missing, whatever the umask; the ones above it are there."""
    with contextlib.suppress(FileExistsError):
        folder.mkdir(0o700)
    if S_IMODE(folder.lstat().st_mode) != _WAY:
        folder.chmod(_WAY)


def open_way(run: Path) -> None:
    """Open the folders from that of the job to that of the replica, given that of a run."""
    for folder in (run.parents[2], run.parents[1], run.parent):
        open_folder(folder)


def is_given(folder: str, user: JobUser) -> bool:
    """Whether it was given to the user before: then it is the user's to change."""
    try:
        return os.lstat(folder).st_uid == user.uid
    except FileNotFoundError:
        return False


def give_folders(folders: Iterable[str], user: JobUser) -> None:
    for folder in folders:
        if not is_given(folder, user):
            for _, names, files, place in os.fwalk(folder):
                for name in (*names, *files):
                    _give(name, place, user)
            os.chown(folder, user.uid, user.gid, follow_symlinks=False)


def give_file(path: str, user: JobUser) -> None:
    """Make it where it is missing. Only in folders that are not the user's."""
    handle = open_regular(path, os.O_WRONLY | os.O_CREAT)
    try:
        os.fchown(handle, user.uid, user.gid)
    finally:
        os.close(handle)


def _give(name: str, place: int, user: JobUser) -> None:
    status = os.stat(name, dir_fd=place, follow_symlinks=False)
    if S_ISDIR(status.st_mode) or status.st_nlink == 1:
        os.chown(name, user.uid, user.gid, dir_fd=place, follow_symlinks=False)
