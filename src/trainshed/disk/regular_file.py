"""Opens files that a job made or could have replaced: regular files only, and without waiting.

Adapters call it. A job may put a FIFO, a device, a socket or a link at any path it can reach. An open of a
FIFO waits for its other end, and a device may be read for ever. Here each of them is an OSError at once. A
link counts as another file, so it is refused too; the folders above the file may be links, but for
open_below.
"""

import errno
import os
from stat import S_ISREG
from typing import TypeAlias

FilePath: TypeAlias = str | os.PathLike[str]

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NO_WAIT = os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY


def open_regular(
    path: FilePath, flags: int = os.O_RDONLY, mode: int = 0o600, *, dir_fd: int | None = None
) -> int:
    """A descriptor of the file, which the caller closes. OSError where it is not a regular file."""
    # Cut only once it is known what it is: O_TRUNC would do it before.
    handle = os.open(path, (flags & ~os.O_TRUNC) | _NO_WAIT, mode, dir_fd=dir_fd)
    try:
        if not S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "Not a regular file", str(path))
        if flags & os.O_TRUNC:
            os.ftruncate(handle, 0)
    except OSError:
        os.close(handle)
        raise
    return handle


def open_below(top: FilePath, inner: str) -> int:
    """A descriptor of the regular file at that path below a folder; OSError where a link leads there."""
    above, _, name = inner.rpartition("/")
    place = open_folder_below(top, above)
    try:
        return open_regular(name, dir_fd=place)
    finally:
        os.close(place)


def open_folder_below(top: FilePath, inner: str) -> int:
    """A descriptor of the folder at that path below another; OSError where a link leads there."""
    place = os.open(top, _FOLDER)
    for name in filter(None, inner.split("/")):
        above = place
        try:
            place = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=above)
        finally:
            os.close(above)
    return place


def read_regular(path: FilePath, most: int, offset: int = 0) -> bytes:
    """The bytes from `offset` on, `most` of them at most."""
    handle = open_regular(path)
    try:
        return os.pread(handle, most, offset)
    finally:
        os.close(handle)


def write_regular(path: FilePath, content: bytes, flags: int = os.O_TRUNC, mode: int = 0o600) -> None:
    """Write the content over the file, or behind it with O_APPEND. OSError where not all of it fits."""
    handle = open_regular(path, os.O_WRONLY | os.O_CREAT | flags, mode)
    try:
        if os.write(handle, content) != len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    finally:
        os.close(handle)
