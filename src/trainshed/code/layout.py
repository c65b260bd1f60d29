"""Lays a folder out: a copy of its own for one replica, whole or not at all.

It may assume that the manifest keeps the rules of `core.supplies.code`, so that no path of it leads through a
link; it makes the links last all the same. It never writes outside of the folder it makes and never shares a
file with the blobs: what a replica does to its copy is its own business.
"""

import os
import shutil
from collections.abc import Callable

from trainshed.code.blobs import Blobs
from trainshed.code.mend import is_signed, mend, sign
from trainshed.core.supplies.code import File, FolderManifest, Mode

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def is_laid_out(folder: str) -> bool:
    """Whether there is a copy that can be used as it is."""
    return is_signed(folder) and os.path.lexists(folder)


class Layout:
    """One copy in the making.

    Raises Damaged where a content is not there, OSError where the disk does not let us, InterruptedError
    when it is over meanwhile, because nobody wants it any more or the server ends.
    """

    def __init__(self, blobs: Blobs, manifest: FolderManifest, is_over: Callable[[], bool]) -> None:
        self._blobs = blobs
        self._manifest = manifest
        self._is_over = is_over

    def make(self, folder: str) -> None:
        # An empty one is a place somebody made for it: no copy, and a rename can take it.
        if os.path.lexists(folder) and os.listdir(folder):
            mend(self._manifest, folder, self._put, self._blobs.read)
        else:
            self._make_anew(folder)
        sign(folder)

    def _make_anew(self, folder: str) -> None:
        draft = f"{folder}.new"
        if os.path.lexists(draft):
            shutil.rmtree(draft)  # left by a server that was killed
        os.makedirs(draft, 0o700)
        try:
            # Paths relative to a handle: below a long home an allowed path could be too long otherwise.
            root = os.open(draft, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                self._fill(root)
            finally:
                os.close(root)
            os.rename(draft, folder)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise

    def _fill(self, root: int) -> None:
        made = {""}
        links: list[File] = []
        for file in self._manifest.files:
            _make_way(file.path.rpartition("/")[0], made, root)
            if file.mode is Mode.LINK:
                links.append(file)
            else:
                self._put(file, file.path, root)
        for file in links:
            self._put(file, file.path, root)

    def _put(self, file: File, path: str, place: int) -> None:
        if self._is_over():
            raise InterruptedError
        if file.mode is Mode.LINK:
            os.symlink(b"".join(self._blobs.read(file.sha256)), path.encode(), dir_fd=place)
            return
        handle = os.open(path.encode(), _NEW, 0o600, dir_fd=place)
        try:
            for chunk in self._blobs.read(file.sha256):
                if self._is_over():
                    raise InterruptedError
                rest = memoryview(chunk)
                while rest:
                    rest = rest[os.write(handle, rest) :]
            os.fchmod(handle, file.mode.permissions)
        finally:
            os.close(handle)


def _make_way(folder: str, made: set[str], root: int) -> None:
    if folder in made:
        return
    _make_way(folder.rpartition("/")[0], made, root)
    os.mkdir(folder.encode(), 0o755, dir_fd=root)
    made.add(folder)
