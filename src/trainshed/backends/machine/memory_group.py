"""Limits the memory of a cgroup (limit_tree.py makes it), and reads what the kernel counted there.

Backends call it, for groups of either version. It never moves a process and never waits.
"""

import re

from trainshed.backends.machine.limit_tree import put
from trainshed.backends.machine.proc import slurp

CONTROLLER = "memory"

_KILLS = re.compile(rb"^oom_kill (\d+)$", re.M)
_FULL = 0.98  # of a limit: the kernel charges many pages at once
_REACHED = re.compile(rb"^oom (\d+)$", re.M)


def limit_memory(group: str, most: int) -> bool:
    """Limit all processes of the group to so many bytes, without swap; whether that worked."""
    if put(group, "memory.max", str(most)):
        put(group, "memory.swap.max", "0")  # not there where the machine has no swap
        return True
    # Version 1 wants the second limit never below the first, so one that grows is written before it as well.
    put(group, "memory.memsw.limit_in_bytes", str(most))
    if not put(group, "memory.limit_in_bytes", str(most)):
        return False
    put(group, "memory.memsw.limit_in_bytes", str(most))
    return True


def oom_kills(group: str) -> int | None:
    """How many of its processes the kernel killed for want of memory; None where it does not say."""
    for name in ("memory.events", "memory.oom_control"):
        if match := _KILLS.search(slurp(f"{group}/{name}")):
            return int(match[1])
    return None


def reached_limit(group: str) -> bool:
    """Whether the group wanted more than its limit. Otherwise the machine itself was short of memory."""
    if match := _REACHED.search(slurp(f"{group}/memory.events")):
        return int(match[1]) > 0
    # Version 1 counts no failures where swap is limited too.
    peak, most = (slurp(f"{group}/memory.{n}").strip() for n in ("max_usage_in_bytes", "limit_in_bytes"))
    return peak.isdigit() and most.isdigit() and int(peak) >= int(most) * _FULL
