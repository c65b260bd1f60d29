"""Has the system begin to write a file to the disk, so that a sync afterwards has little to wait for.

The intake of buckets calls `begin_writing` in its threads. `cli/carry.py` tells an `EarlyWriter` what it has
fetched. Where it fails nothing is lost: the system writes the bytes later, or a sync does.
"""

import contextlib
import functools
import os
import threading
from collections.abc import Callable
from typing import Any

AT_ONCE = 32 << 20  # bytes of a file that are begun together; a smaller file is left to the system

_WRITE = 2  # SYNC_FILE_RANGE_WRITE


def begin_writing(file: int, first: int, count: int) -> None:
    """Waits only where the disk has more to do than the system lets wait."""
    _writer()(file, first, count, _WRITE)


@functools.cache
def _writer() -> Callable[..., object]:
    """sync_file_range, where the system has it. Unlike posix_fadvise it keeps the bytes in memory too."""
    import ctypes

    write: Any = getattr(ctypes.CDLL(None), "sync_file_range", None)
    if write is None:
        return lambda *_: None
    write.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
    return write


class EarlyWriter:
    """Of one file that grows at its end. It begins in a thread: no slow disk holds up what still comes."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._size = self._begun = 0
        self._thread: threading.Thread | None = None

    def add(self, count: int) -> None:
        """So many bytes more are in the file."""
        self._size += count
        if self._size - self._begun < AT_ONCE or (self._thread is not None and self._thread.is_alive()):
            return
        first, self._begun = self._begun, self._size
        with contextlib.suppress(OSError, RuntimeError):  # no more descriptors or threads
            words = os.dup(self._file), first, self._size - first
            self._thread = threading.Thread(target=_begin, args=words, name="early-write", daemon=True)
            self._thread.start()


def _begin(file: int, first: int, count: int) -> None:
    try:
        begin_writing(file, first, count)
    finally:
        os.close(file)
