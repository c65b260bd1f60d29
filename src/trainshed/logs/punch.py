"""Frees the middle of a file and leaves its size and all offsets unchanged (a hole).

`quota.py` calls it. If the file system cannot do it, the answer is False and the file is unchanged.
"""

import ctypes
import os

from trainshed.disk.regular_file import open_regular

_KEEP_SIZE = 1
_PUNCH_HOLE = 2
PAGE = 4096

_libc = ctypes.CDLL(None, use_errno=True)
_fallocate = getattr(_libc, "fallocate64", None) or getattr(_libc, "fallocate", None)
if _fallocate is not None:
    _fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)


def punch(path: str, start: int, stop: int) -> bool:
    """Free the whole pages between the two offsets; they read as zeros then. False where it cannot be."""
    start = -(-start // PAGE) * PAGE
    stop = stop // PAGE * PAGE
    if stop <= start:
        return True
    if _fallocate is None:
        return False
    descriptor = open_regular(path, os.O_WRONLY)
    try:
        return _fallocate(descriptor, _PUNCH_HOLE | _KEEP_SIZE, start, stop - start) == 0
    finally:
        os.close(descriptor)
