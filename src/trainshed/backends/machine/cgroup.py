"""Finds where this process is in the cgroup trees, from what the kernel says.

Backends call it. It assumes nothing about mounts: v2 alone, v1 alone, both side by side, or a container that
shows only its own part. The parsing is pure. It never makes or changes a group (process/net.py does).
"""

from pathlib import Path

from trainshed.backends.machine.mount_table import unescaped


def locate(controller: str = "") -> Path | None:
    """The directory of this process's group: of a v1 controller where named, else of v2."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text()
        groups = Path("/proc/self/cgroup").read_text()
    except OSError:
        return None
    return find(mounts, groups, controller)


def find(mounts: str, groups: str, controller: str = "") -> Path | None:
    own = _own(groups, controller)
    if own is None:
        return None
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or len(kind) < 3:
            continue
        wanted = (
            kind[0] == "cgroup" and controller in kind[2].split(",") if controller else kind[0] == "cgroup2"
        )
        if not wanted:
            continue
        root, point = unescaped(fields[3]), unescaped(fields[4])
        # A container may show the mount's root as its own group, or a path from outside that is not mounted.
        inside = own.removeprefix(root) if root != "/" and own.startswith(root) else own
        path = Path(point + "/" + inside.strip("/")) if inside.strip("/") else Path(point)
        return path if ".." not in path.parts else Path(point)
    return None


def mounted() -> tuple[Path, ...]:
    """Where hierarchies of cgroups are mounted, of either version."""
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return ()
    kinds = ((line.partition(" - ")[2].split(None, 1)[0], line.split()[4]) for line in lines if " - " in line)
    return tuple(Path(unescaped(point)) for kind, point in kinds if kind in ("cgroup", "cgroup2"))


def _own(groups: str, controller: str) -> str | None:
    for line in groups.splitlines():
        number, controllers, path = line.split(":", 2)
        if (controller and controller in controllers.split(",")) or (not controller and number == "0"):
            return path
    return None


def limits(controller: str, old: str, new: str) -> list[str]:
    """What the limit files of this group and those above it say: `new` under v2, `old` under v1."""
    result: list[str] = []
    for group, name in ((locate(), new), (locate(controller), old)):
        for folder in (group, *group.parents) if group else ():
            try:
                result.append((folder / name).read_text().strip())
            except OSError:
                continue
    return result
