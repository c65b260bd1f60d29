"""LocalCopy: the server's copy of a folder that programs in pods see as /gcs, or of one that they begin in.

`file_exchange.py` calls it, in threads. Names come from programs, which may also put a link anywhere: every
folder on the way is opened by its name alone. A file is there whole or not at all: it is renamed from a
draft. Files that lie in a bucket as well are never written to. It talks to no pod.
"""

import contextlib
import os
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path
from stat import S_ISDIR, S_ISLNK, S_ISREG

from trainshed.backends.cluster.pod_files import FILE, FOLDER, LINK, Brought, PodEntry
from trainshed.disk.regular_file import open_folder_below

_MODE = 0o644  # at least: objects of buckets are closed to others, and a pod is all its own


class LocalCopy:
    def __init__(self, top: str, root: str) -> None:
        """`root` is the first name of its paths in a pod."""
        self.top, self.root = top, root

    def all(self) -> Iterator[Brought]:
        """Everything in it, each folder before what is in it."""
        waiting = [""]
        while waiting:
            inner = waiting.pop()
            place = open_folder_below(self.top, inner)
            try:
                for name in sorted(os.listdir(place)):  # noqa: PTH208 - by its descriptor
                    path = f"{inner}/{name}" if inner else name
                    if (item := self._look(place, name, path)) is not None:
                        yield item
                        if item.entry.kind == FOLDER:
                            waiting.append(path)
            finally:
                os.close(place)

    def find(self, path: str) -> Brought | None:
        """What is at a path of the pod; None where nothing is."""
        inner = self._inner(path)
        above, _, name = inner.rpartition("/")
        try:
            place = open_folder_below(self.top, above)
        except OSError:
            return None
        try:
            return self._look(place, name, inner)
        finally:
            os.close(place)

    def put(self, draft: str, entry: PodEntry) -> None:
        """Put a whole file there, with the time at which the program changed it."""
        os.chmod(draft, (entry.mode & 0o755) | _MODE)  # noqa: PTH101
        os.utime(draft, ns=(entry.changed_at, entry.changed_at))
        with self._folder(entry.path) as (place, name):
            self._clear(place, name, entry)
            os.rename(draft, name, dst_dir_fd=place)

    def make(self, entry: PodEntry) -> None:
        """A folder, or a link."""
        with self._folder(entry.path) as (place, name):
            self._clear(place, name, entry)
            if entry.kind == FOLDER:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, 0o755, dir_fd=place)
            else:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=place)
                os.symlink(entry.target, name, dir_fd=place)

    def remove(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            place, name = self._open(path)
            try:
                status = os.stat(name, dir_fd=place, follow_symlinks=False)
                if S_ISDIR(status.st_mode):
                    shutil.rmtree(name, dir_fd=place)
                else:
                    os.unlink(name, dir_fd=place)
            finally:
                os.close(place)

    @contextlib.contextmanager
    def _folder(self, path: str) -> Generator[tuple[int, str]]:
        """The folder of a path, which is made where it is missing."""
        above = self._inner(path).rpartition("/")[0]
        place = os.open(self.top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for name in filter(None, above.split("/")):
            outer = place
            try:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, 0o755, dir_fd=outer)
                flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
                place = os.open(name, flags, dir_fd=outer)
            finally:
                os.close(outer)
        try:
            yield place, path.rpartition("/")[2]
        finally:
            os.close(place)

    def _open(self, path: str) -> tuple[int, str]:
        above, _, name = self._inner(path).rpartition("/")
        return open_folder_below(self.top, above), name

    def _clear(self, place: int, name: str, entry: PodEntry) -> None:
        """Take away what is of another kind."""
        with contextlib.suppress(FileNotFoundError):
            status = os.stat(name, dir_fd=place, follow_symlinks=False)
            if S_ISDIR(status.st_mode) != (entry.kind == FOLDER):
                self.remove(entry.path)

    def _inner(self, path: str) -> str:
        return path.removeprefix(f"{self.root}/")

    def _look(self, place: int, name: str, inner: str) -> Brought | None:
        try:
            status = os.stat(name, dir_fd=place, follow_symlinks=False)
            kind = _kind(status.st_mode)
            target = os.readlink(name, dir_fd=place) if kind == LINK else ""
        except OSError:
            return None
        if not kind:
            return None
        entry = PodEntry(
            path=f"{self.root}/{inner}",
            kind=kind,
            mode=(status.st_mode & 0o777) | _MODE,
            size=status.st_size if kind == FILE else 0,
            changed_at=status.st_mtime_ns if kind == FILE else 0,
            target=target,
        )
        return Brought(entry, f"{self.top}/{inner}")


def _kind(mode: int) -> str:
    return FILE if S_ISREG(mode) else FOLDER if S_ISDIR(mode) else LINK if S_ISLNK(mode) else ""


def are_equal(here: PodEntry, there: PodEntry) -> bool:
    """Whether one is a copy of the other: of files by size and time. Some disks keep whole seconds only."""
    if here.kind != there.kind:
        return False
    if here.kind == LINK:
        return here.target == there.target
    if here.kind == FOLDER:
        return True
    times = {here.changed_at, there.changed_at}
    return here.size == there.size and (
        len(times) == 1 or (min(times) % 10**9 == 0 and max(times) // 10**9 == min(times) // 10**9)
    )


def cleared(folder: str) -> str:
    """The folder, empty."""
    shutil.rmtree(folder, ignore_errors=True)
    Path(folder).mkdir(mode=0o700, parents=True)
    return folder
