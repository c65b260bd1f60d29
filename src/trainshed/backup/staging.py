"""Staging: a folder in which files of a home get second names, so that they stay while they are copied.

Linking takes seconds where copying takes hours: meanwhile jobs are deleted, and logs with them. A file that
is only appended to goes on growing under its second name; one that is replaced stays as it was. The folder is
locked while its process lives; `begin` removes those that a killed one left behind.
"""

import fcntl
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from trainshed.backup.contents import STAGING
from trainshed.buckets.index_snapshot import share


class Staging:
    """A context: its folder is in `parent`, and on the same disk."""

    def __init__(self, parent: Path) -> None:
        self._parent = parent
        self.folder = parent / f"{STAGING}{secrets.token_hex(4)}"
        self.passed_over: set[str] = set()  # links, sockets, and what may not be read
        self._lock = -1

    def __enter__(self) -> "Staging":
        return self

    def begin(self) -> None:
        """Make the folder. Not in `__enter__`: Ctrl-C there would keep `__exit__` from being called."""
        for left in self._parent.glob(f"{STAGING}*"):
            _remove_unless_used(left)
        self.folder.mkdir(0o700)
        self._lock = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)

    def link(self, home: Path, path: str) -> None:
        """Link what is there under this path, a whole folder too. A second call adds what is new."""
        with suppress(FileNotFoundError, NotADirectoryError):
            source = (home / path).resolve(strict=True)  # the top may be a link to another disk
            self._link(source, self.folder / path, source.stat())

    def files(self) -> Iterator[tuple[str, Path]]:
        """Path and place of all that was linked. A folder comes after what is in it.

        Of two names the longer comes first: what a log's index knows is then in the log, which is read later.
        """
        return self._walk(self.folder, "")

    def _walk(self, folder: Path, above: str) -> Iterator[tuple[str, Path]]:
        for name in sorted(os.listdir(folder), reverse=True):
            place = folder / name
            if place.is_dir():
                yield from self._walk(place, f"{above}{name}/")
            yield f"{above}{name}", place

    def _link(self, source: Path, target: Path, status: os.stat_result) -> None:
        kind = stat.S_IFMT(status.st_mode)
        if kind not in (stat.S_IFREG, stat.S_IFDIR) or not os.access(source, os.R_OK):
            self.passed_over.add(str(source))
        elif kind == stat.S_IFREG:
            target.parent.mkdir(0o700, parents=True, exist_ok=True)
            share(source, target)
        else:
            target.mkdir(0o700, parents=True, exist_ok=True)
            with os.scandir(source) as entries:
                for entry in entries:
                    with suppress(FileNotFoundError, NotADirectoryError):  # a job was deleted
                        below = entry.stat(follow_symlinks=False)
                        self._link(Path(entry.path), target / entry.name, below)
            # By its mode a folder of logs says whether the job is over.
            target.chmod(status.st_mode & 0o1777 | 0o700)
            os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


def _remove_unless_used(folder: Path) -> None:
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(handle)
