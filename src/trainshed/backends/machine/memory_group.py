"""Makes, limits, reads and removes cgroups that limit memory.

Backends call it. It knows both versions of cgroups: in version 2 a group with the memory controller, in
version 1 a folder of the memory hierarchy. Whether a group can be limited is tried, never guessed:
permissions are not enough. It never moves a process and never waits.
"""

import contextlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from trainshed.backends.machine import cgroup
from trainshed.backends.machine.proc import slurp

_KILLS = re.compile(rb"^oom_kill (\d+)$", re.M)
_FULL = 0.98  # of a limit: the kernel charges many pages at once
_REACHED = re.compile(rb"^oom (\d+)$", re.M)


@dataclass(frozen=True, slots=True)
class MemoryTree:
    """A place below which groups with a memory limit can be made."""

    base: str
    is_v2: bool

    def make(self, *names: str) -> str | None:
        """The group with that path below the base; None where it cannot be made."""
        folder = self.base
        try:
            os.makedirs(folder, exist_ok=True)  # an empty base may have been tidied away by somebody
            for name in names:
                if self.is_v2 and not pass_memory_on(folder):
                    return None
                folder = f"{folder}/{name}"
                os.makedirs(folder, exist_ok=True)
        except OSError:
            return None
        return folder


def found_below(own: Path | None, label: str) -> MemoryTree | None:
    """Below the group of this process where memory is limited there, else beside it; None where nowhere.

    A group of version 2 that holds processes passes no controller on, so the place is then beside it.
    """
    for parent in (own, own.parent) if own is not None else ():
        if b"memory" in slurp(f"{parent}/cgroup.subtree_control").split() and os.access(parent, os.W_OK):
            return MemoryTree(f"{parent}/{label}", is_v2=True)
    old = cgroup.locate("memory")
    if old is not None and (old / "memory.limit_in_bytes").exists() and os.access(old, os.W_OK):
        return MemoryTree(f"{old}/{label}", is_v2=False)
    return None


def pass_memory_on(group: str) -> bool:
    """Let the groups below this one, of version 2, limit memory."""
    if b"memory" in slurp(f"{group}/cgroup.subtree_control").split():
        return True
    return put(group, "cgroup.subtree_control", "+memory")


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


def put(group: str, name: str, text: str) -> bool:
    try:
        handle = os.open(f"{group}/{name}", os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.write(handle, text.encode())
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def discard(group: str, base: str = "") -> None:
    """Remove the group and those above it that it leaves empty, up to the base."""
    with contextlib.suppress(OSError):
        while group != base:
            os.rmdir(group)
            group = os.path.dirname(group)
            if not base or not group.startswith(base):
                return
