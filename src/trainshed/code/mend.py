"""Mends a copy that a power cut may have cut short: a file of which only a beginning is left is put anew.

Copies are not synced, because every start would wait for it. So each says under which boot of the machine
it was made, and one of an earlier boot is looked through before it is used again: an empty program would end
well, having done nothing. What a replica wrote stays, also over a file of the folder; a file it deleted or
cut before the machine went down comes back. It never follows a link that a replica may have left there.
"""

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from stat import S_ISREG

from trainshed.core.supplies.code import File, FolderManifest, Mode
from trainshed.disk.regular_file import open_regular, read_regular, write_regular

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

Put = Callable[[File, str, int], None]  # a file, its name, the folder it goes to
Read = Callable[[str], Iterator[bytes]]  # what has this hash


def sign(folder: str) -> None:
    """Note that the copy was made, or looked through, since the machine came up."""
    mark = f"{folder}.boot"
    with contextlib.suppress(FileNotFoundError):
        if not S_ISREG(os.lstat(mark).st_mode):
            os.unlink(mark)  # of the replica's making
    write_regular(mark, _boot().encode())


def is_signed(folder: str) -> bool:
    try:
        return read_regular(f"{folder}.boot", 1024) == _boot().encode()
    except OSError:
        return False


def mend(manifest: FolderManifest, folder: str, put: Put, read: Read) -> None:
    root = os.open(folder, _FOLDER)
    try:
        for file in manifest.files:
            *parents, name = file.path.split("/")
            place = _walk(root, parents)
            if place is None:
                continue
            try:
                if _is_lost(file, name, place, read):
                    put(file, name, place)
            finally:
                os.close(place)
    finally:
        os.close(root)


def _walk(root: int, parents: list[str]) -> int | None:
    """Open the folder at that path, making what is missing; None if the replica has something else there."""
    place = os.dup(root)
    for name in parents:
        try:
            try:
                inner = os.open(name, _FOLDER, dir_fd=place)
            except FileNotFoundError:
                os.mkdir(name, 0o755, dir_fd=place)
                inner = os.open(name, _FOLDER, dir_fd=place)
        except OSError:
            return None
        finally:
            os.close(place)
        place = inner
    return place


def _is_lost(file: File, name: str, place: int, read: Read) -> bool:
    """Whether the file is not there, or only its beginning; in the latter case that is taken away."""
    try:
        info = os.stat(name, dir_fd=place, follow_symlinks=False)
    except FileNotFoundError:
        return True
    if not S_ISREG(info.st_mode) or file.mode is Mode.LINK or info.st_size >= file.size:
        return False
    handle = open_regular(name, dir_fd=place)
    try:
        for chunk in read(file.sha256):
            if not chunk.startswith(os.read(handle, len(chunk))):
                return False
    finally:
        os.close(handle)
    os.unlink(name, dir_fd=place)
    return True


@functools.cache
def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
