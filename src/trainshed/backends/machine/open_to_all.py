"""Lets another user than the server's read and change what is below a folder that is itself closed.

The backends of this machine call it for views of buckets and for code, before a program sees them: nothing
there is of a program's making yet. It never follows a link.
"""

import contextlib
import os
from pathlib import Path
from stat import S_IMODE, S_ISDIR

ANYBODY, _ALL = 0o666, 0o777


def open_to_all(top: Path, owner: tuple[int, int] | None) -> None:
    """Open the folder and all below it; a given owner gets it all, where we may chown.

    A file with a second name is an object of a bucket, which stays the server's.
    """
    _open(str(top), _ALL, owner)
    for folder, folders, names in os.walk(top):
        for name in folders:
            _open(f"{folder}/{name}", _ALL, owner)
        for name in names:
            _open(f"{folder}/{name}", ANYBODY, owner)


def _open(path: str, mode: int, owner: tuple[int, int] | None) -> None:
    place = Path(path)
    if place.is_symlink():
        return
    status = place.stat()
    place.chmod(S_IMODE(status.st_mode) | mode)
    if owner is not None and (S_ISDIR(status.st_mode) or status.st_nlink == 1):
        with contextlib.suppress(PermissionError):
            os.chown(path, *owner)
