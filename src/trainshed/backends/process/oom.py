"""Tells from the kernel's counters whether a process was killed for want of memory.

The supervisor calls it when a run has ended. The run's cgroup knows exactly, where it has a memory
controller. Otherwise only the machine's counter is left, which tells that some process was killed, not which.
It never guesses: what cannot be read is None.
"""

import os
import time
from collections import deque

from trainshed.backends.machine.memory_group import oom_kills
from trainshed.backends.machine.run import OUT_OF_MEMORY

_VMSTAT = "/proc/vmstat"
_FRESH = 0.25  # seconds a count is good for: many runs started at once need it once
_APART, _KEPT = 5.0, 4  # seconds between counts, and how many are kept: the oldest is what "recent" means
_MARK = b"\noom_kill "


def kills() -> int | None:
    """How many processes of this machine were killed for memory since it was started."""
    try:
        with open(_VMSTAT, "rb", buffering=0) as file:
            return _count(file.read())
    except OSError:
        return None


class Kills:
    """The machine's counter as it was a short while ago: a kill of last week explains no death of today."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque(maxlen=_KEPT)
        self._fresh: tuple[float, int | None] = (float("-inf"), None)

    def now(self) -> int | None:
        """The count, as it is or was a moment ago."""
        at = time.monotonic()
        if at - self._fresh[0] > _FRESH:
            self._fresh = (at, kills())
        return self._fresh[1]

    def look(self) -> None:
        """Count now and then: to be called whenever runs are looked at, however often that is."""
        now = time.monotonic()
        if self._seen and now - self._seen[-1][0] < _APART:
            return
        if (count := kills()) is not None:
            self._seen.append((now, count))

    def before(self, started: int | None) -> int | None:
        """The count from which a kill is recent, for a run that was started at that count."""
        # Only with all counts there is the oldest surely from before the kill: large programs die slowly.
        if started is None or len(self._seen) < _KEPT:
            return started
        return max(started, self._seen[0][1])


def killed_for_memory(before: int | None, group: str | None) -> str:
    """A sentence where a process was killed for memory since `before` was counted; empty where none was."""
    inside = oom_kills(group) if group is not None else None
    if inside:
        return OUT_OF_MEMORY
    if inside == 0 and os.path.exists(f"{group}/memory.events"):  # of version 1 a program may have left it
        return ""
    now = kills()
    if before is None or now is None or now <= before:
        return ""
    return "it was killed, and the kernel killed a process of this machine for want of memory while it ran"


def _count(text: bytes) -> int | None:
    _, mark, rest = (b"\n" + text).partition(_MARK)
    number = rest.partition(b"\n")[0]
    return int(number) if mark and number.isdigit() else None
