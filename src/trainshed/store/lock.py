"""One server per home: an exclusive lock on a file, released by the kernel however the process ends."""

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path

from trainshed.core.errors import Unavailable

PATIENCE = 1.0  # seconds a server killed this moment may need to be gone


def owner_of(path: Path) -> str:
    """The pid of the process that has the lock; empty if none has. It never makes the file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return ""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _owner(descriptor)
    finally:
        os.close(descriptor)
    return ""


class FileLock:
    """Held from `take` to `release` or the end of the process. The file itself stays."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = -1

    def take(self, patience: float = PATIENCE) -> None:
        """Raise Unavailable, naming the owner's pid, where another process has it."""
        # Not inherited by replicas (close-on-exec): they outlive the server and must not keep the lock.
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        until = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() < until:
                    time.sleep(0.02)
                    continue
                owner = _owner(descriptor)
                os.close(descriptor)
                raise Unavailable(
                    f"Another server (pid {owner}) already uses {self._path.parent}. "
                    "Stop it first, or choose another home."
                ) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._file = descriptor

    def release(self) -> None:
        if self._file >= 0:
            with suppress(OSError):
                os.ftruncate(self._file, 0)
            os.close(self._file)
            self._file = -1


def _owner(descriptor: int) -> str:
    return os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
