"""Limits how many processes a cgroup has (limit_tree.py makes it), and reads what the kernel counted there.

Backends call it, for groups of either version. The kernel counts every thread as well. Over the limit it
refuses a new one (EAGAIN) and ends nobody. This module never moves a process and never waits.
"""

import os
import re
from dataclasses import dataclass

from trainshed.backends.machine.limit_tree import put
from trainshed.backends.machine.proc import slurp
from trainshed.core.jobs.limits import SharedRoom, process_limit
from trainshed.core.queue.fleet import Placement

CONTROLLER = "pids"
_REFUSED = re.compile(rb"^max (\d+)$", re.M)


@dataclass(frozen=True, slots=True)
class ProcessCeiling:
    """How many processes and threads each replica may have on this machine."""

    most: int | None = None  # what the server's setting says; 0: no limit; None: it says nothing

    def of(self, place: Placement, room: SharedRoom | None) -> int:
        """For one replica; 0: no limit."""
        if self.most is not None:
            return self.most
        return process_limit(place, room, machine_cpus=os.cpu_count() or 1, machine_room=_room())


def limit_processes(group: str, most: int) -> bool:
    """Limit the group to so many processes and threads; whether that worked."""
    return put(group, "pids.max", str(most))


def refusals(group: str) -> int:
    """How often the kernel refused the group a process or a thread."""
    match = _REFUSED.search(slurp(f"{group}/pids.events"))
    return int(match[1]) if match else 0


def count(group: str) -> int | None:
    """How many processes and threads are in the group; None where the kernel does not say."""
    text = slurp(f"{group}/pids.current").strip()
    return int(text) if text.isdigit() else None


def _room() -> int:
    """How many processes and threads this machine can have; 0 where it does not say."""
    texts = [slurp(f"/proc/sys/kernel/{name}").strip() for name in ("pid_max", "threads-max")]
    return min((int(text) for text in texts if text.isdigit()), default=0)
