"""What is mounted where for this process, and how it is unmounted.

Backends call it. It never looks into a mount: the server of a network share may not answer.
"""

import ctypes
import os
import re
from collections.abc import Iterator
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)
_DETACH = 2  # it leaves the tree at once, also where somebody still uses it


def unmounted(place: str) -> bool:
    """Whether nothing is mounted at the path, after an attempt to unmount what was there."""
    return all(_libc.umount2(os.fsencode(place), _DETACH) == 0 for point in _points() if point == place)


def _points() -> Iterator[str]:
    lines = Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines()
    return (unescaped(line.split()[4]) for line in lines)


def unescaped(path: str) -> str:
    """mountinfo writes a blank as \\040."""
    return re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), path)
