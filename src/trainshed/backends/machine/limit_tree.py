"""Makes and removes the cgroups in which the kernel limits what runs use, with one controller each.

Backends call it. It knows both versions of cgroups: in version 2 a group that has the controller, in
version 1 a folder of the controller's own hierarchy. Whether a group can be limited is tried, never guessed:
permissions are not enough. It never moves a process and never waits.
"""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from trainshed.backends.machine import cgroup
from trainshed.backends.machine.proc import slurp


@dataclass(frozen=True, slots=True)
class LimitTree:
    """A place below which groups can be made that the controller limits."""

    base: str
    is_v2: bool
    controller: str

    def make(self, *names: str) -> str | None:
        """The group with that path below the base; None where it cannot be made."""
        folder = self.base
        try:
            os.makedirs(folder, exist_ok=True)  # an empty base may have been tidied away by somebody
            for name in names:
                if self.is_v2 and not pass_on(folder, self.controller):
                    return None
                folder = f"{folder}/{name}"
                os.makedirs(folder, exist_ok=True)
        except OSError:
            return None
        return folder


def found_below(own: Path | None, label: str, controller: str) -> LimitTree | None:
    """Below the group of this process where the controller limits there, else beside it; None where nowhere.

    A group of version 2 that holds processes passes no controller on, so the place is then beside it.
    """
    for parent in (own, own.parent) if own is not None else ():
        if passes_on(str(parent), controller) and os.access(parent, os.W_OK):
            return LimitTree(f"{parent}/{label}", is_v2=True, controller=controller)
    old = cgroup.locate(controller)
    if old is not None and os.access(old, os.W_OK):
        return LimitTree(f"{old}/{label}", is_v2=False, controller=controller)
    return None


def passes_on(group: str, controller: str) -> bool:
    """Whether the groups below this one, of version 2, have the controller."""
    return controller.encode() in slurp(f"{group}/cgroup.subtree_control").split()


def pass_on(group: str, controller: str) -> bool:
    """Let the groups below this one, of version 2, have the controller."""
    return passes_on(group, controller) or put(group, "cgroup.subtree_control", f"+{controller}")


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
