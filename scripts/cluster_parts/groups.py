"""The control groups of a cluster: one for each node, above all groups that its kubelet makes for pods.

With one kubelet on a machine that would be the root. Two of them would remove each other's pods there.
"""

import contextlib
import os
import time
from pathlib import Path

from scripts.cluster_parts.place import Addresses

ROOT = Path("/sys/fs/cgroup")


def trees() -> list[Path]:
    """One on a machine with the unified hierarchy, else one for each controller."""
    rows = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    kinds = {row[2] for row in rows if row[1].startswith(str(ROOT))}
    kind = "cgroup" if "cgroup" in kinds else "cgroup2"
    return [Path(row[1]) for row in rows if row[2] == kind]


def all_trees() -> list[Path]:
    """Beside those of controllers there may be a unified one without any: runtimes make groups there too."""
    rows = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    return [Path(row[1]) for row in rows if row[2] in ("cgroup", "cgroup2")]


def make(addresses: Addresses, node: str) -> None:
    for tree in trees():
        for group in (tree / addresses.group, tree / addresses.group / node):
            group.mkdir(exist_ok=True)
            _hand_down(group)


def _hand_down(group: Path) -> None:
    """A new group of CPUs is empty, and a new one of the unified hierarchy controls nothing."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        if (group / name).exists() and (group.parent / name).exists():
            (group / name).write_text((group.parent / name).read_text())
    offered = group / "cgroup.controllers"
    if offered.exists():
        for controller in offered.read_text().split():
            with contextlib.suppress(OSError):
                (group / "cgroup.subtree_control").write_text(f"+{controller}")


def remove(addresses: Addresses) -> None:
    """Their processes are gone; the kernel may take a moment longer than they."""
    deadline = time.monotonic() + 10
    for tree in all_trees():
        for folder, _, _ in os.walk(tree / addresses.group, topdown=False):
            while True:
                try:
                    Path(folder).rmdir()
                except FileNotFoundError:
                    break
                except OSError:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.05)
                else:
                    break
