"""How much of the disk under the logs is kept free of output, and how much output has to go for that.

The log store asks when a log has grown. Programs write into their files themselves, so nobody can make them
wait: space is made instead, from the middle of the log that grows, before the disk is full. So no job fills
the disk by what it prints. What others write there may still fill it. It never raises.
"""

import os
import time
from pathlib import Path

RESERVE = 64 << 20  # bytes
_PART = 10  # of a small disk: one tenth
LEAST = 64 << 10  # bytes of a job's output that stay
_EVERY = 0.02  # seconds between two looks at the disk


class DiskReserve:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._looked_at = float("-inf")

    def free(self) -> int | None:
        """The bytes that can still be written there, 0 where no file can be made; None where not known."""
        disk = self._disk()
        return None if disk is None else _free(disk)

    def missing(self) -> int:
        """How many bytes are to be freed now; 0 where there is room, and between two looks."""
        now = time.monotonic()
        if now - self._looked_at < _EVERY:
            return 0
        self._looked_at = now
        disk = self._disk()
        if disk is None:
            return 0
        return max(0, min(RESERVE, disk.f_blocks * disk.f_frsize // _PART) - _free(disk))

    def _disk(self) -> os.statvfs_result | None:
        try:
            return os.statvfs(self._folder)
        except OSError:
            return None


def _free(disk: os.statvfs_result) -> int:
    if disk.f_files and not disk.f_ffree:
        return 0
    return (disk.f_bfree if os.geteuid() == 0 else disk.f_bavail) * disk.f_frsize
