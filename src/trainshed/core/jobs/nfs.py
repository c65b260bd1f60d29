"""Folders of NFS servers that a pool's replicas see below /mnt/nfs, as in Vertex AI. Pure.

`wire/` checks them with `faults`; the backends mount them. A mount point that begins with a slash is a path
of its own.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

ROOT = "/mnt/nfs"
MOST = 32  # of one pool

# These become options of a mount: they must not be able to add other options.
_SERVER = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|[0-9A-Fa-f:]*:[0-9A-Fa-f:.]+")
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_INNER = re.compile(r"(?!\.\.?$)[A-Za-z0-9._-]+")
_LONGEST = 255
TAKEN = ("/proc", "/sys", "/dev", "/.trainshed", "/trainshed", "/gcs", "/s3")


@dataclass(frozen=True, slots=True, kw_only=True)
class NfsMount:
    server: str
    path: str  # that it exports
    mount_point: str  # below ROOT, or a path
    read_only: bool = False

    @property
    def target(self) -> str:
        return self.mount_point if self.mount_point.startswith("/") else f"{ROOT}/{self.mount_point}"


def faults(mounts: Sequence[NfsMount]) -> Iterator[tuple[int, str, str]]:
    """Every fault: the index of the mount, its field, a sentence."""
    seen: set[str] = set()
    for number, mount in enumerate(mounts):
        if not mount.server:
            yield number, "server", "is required: the address of the NFS server."
        elif len(mount.server) > _LONGEST or not _SERVER.fullmatch(mount.server):
            yield number, "server", f"must be an IP address or a host's name, not {_quoted(mount.server)}."
        if fault := _path_fault(mount.path):
            yield number, "path", fault
        if fault := _point_fault(mount.mount_point):
            yield number, "mount_point", fault
        elif mount.target in seen:
            yield number, "mount_point", f"is given twice: {_quoted(mount.mount_point)}."
        seen.add(mount.target)


def _path_fault(path: str) -> str:
    if not path:
        return "is required: the folder that the server exports."
    if not path.startswith("/"):
        return f"must begin with a slash, as {_quoted(path)} does not."
    if any(ord(item) < 32 or item in ",\\\x7f" for item in path) or ".." in path.split("/"):
        return "must have no '..' part, comma, backslash or control character."
    return ""


def _point_fault(point: str) -> str:
    if not point:
        return f"is required: the name of the folder below {ROOT}."
    if point.startswith("/"):
        return folder_fault(point)
    if len(point) > _LONGEST or not all(_PART.fullmatch(part) for part in point.split("/")):
        return (
            f"must be the name of a folder below {ROOT}, of letters, digits, '.', '_' and '-', "
            f"or a path that begins with a slash, not {_quoted(point)}."
        )
    return ""


def folder_fault(path: str) -> str:
    """Why no folder can be mounted at that path of a replica; "" where one can."""
    if len(path) > _LONGEST or not all(_INNER.fullmatch(part) for part in path[1:].split("/")):
        return f"must be the path of a folder, of letters, digits, '.', '_' and '-', not {_quoted(path)}."
    if any(f"{path}/".startswith(f"{taken}/") for taken in TAKEN):
        return f"cannot be {_quoted(path)}: {', '.join(TAKEN)} have their own meaning."
    return ""


def _quoted(text: str) -> str:
    return f'"{text[:100]}"'
