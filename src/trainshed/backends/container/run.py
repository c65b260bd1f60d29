"""One run of a container: its folder, the record its init writes, and what the server remembers of it.

    launch.json   the container's name, and what it was made of
    record        spaces, until the init writes into it (init.c lists the lines)
    asked         exists once SIGTERM has been sent
    killed        exists once SIGKILL was about to be sent
    seen          exists once a server has seen the init
    unstarted     why the engine can never start it, as a sentence
    disk          the bytes it may fill, where limits.py watches them
    full          that it filled more, as a sentence

The backend and its parts call it; one server at a time works on a home. The engine gives a container's name
once, so the name is the lock. The init holds a file lock on the record while it lives. A program in the
container may write into the record too: lines that state no fact are skipped. This module never asks the
engine and never waits.
"""

import contextlib
import fcntl
import json
import os
import struct
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from trainshed.backends.machine.init_record import MOST_RECORD, InitRecord, parse_record
from trainshed.backends.machine.run import (
    MOST_LAUNCH,
    OVER_MEMORY,
    KnownRun,
    as_limit,
    as_plain,
    note_of,
)
from trainshed.core.jobs.limits import too_many_processes
from trainshed.core.jobs.replica import Handle
from trainshed.core.names import RunKey
from trainshed.disk.regular_file import open_regular, read_regular, write_regular

BLANK = b" " * MOST_RECORD
_LOCK = "hhqqi"  # struct flock of a 64-bit Linux
_ANYBODY = 0o666  # the image's user may be anybody; the folder above is closed to others


def lock_owner(path: str) -> int | None:
    """The pid that has the lock; None where it is free; 0 where the pid is not visible from here."""
    try:
        handle = open_regular(path)
    except OSError:
        return None
    try:
        asked = struct.pack(_LOCK, fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, pid = struct.unpack(_LOCK, fcntl.fcntl(handle, fcntl.F_GETLK, asked))
    except OSError:
        return None
    finally:
        os.close(handle)
    return None if kind == fcntl.F_UNLCK else max(pid, 0)


@dataclass(slots=True, eq=False)
class ContainerRun(KnownRun):
    container: str  # its name
    _: KW_ONLY
    has_limits: bool = True
    network: str = ""  # in which an earlier server began it
    group: str = ""  # the cgroup of its job (limits.py)
    killed: bool = False
    seen: bool = False  # this machine has seen its init: once that is not visible any more, it is dead
    refusals: int = 0  # of the engine, to start it

    @property
    def handle(self) -> Handle:
        return {"container": self.container, "run": self.folder}

    # The files

    @property
    def record(self) -> str:
        return f"{self.folder}/record"

    def prepare(self, body: Mapping[str, object], outputs: tuple[str, ...]) -> None:
        """Make all that an init needs; the record last and atomically, so that a half-made run is no run."""
        os.makedirs(self.folder, 0o700, exist_ok=True)
        self.describe(body)
        for path in outputs:
            handle = open_regular(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.fchmod(handle, _ANYBODY)
            os.close(handle)
        write_regular(f"{self.folder}/.record", BLANK)
        os.chmod(f"{self.folder}/.record", _ANYBODY)
        os.rename(f"{self.folder}/.record", self.record)

    def describe(self, body: Mapping[str, object]) -> None:
        """Write what its container is made of, which may differ from an earlier try."""
        launch = {
            "container": self.container,
            "hold": self.holds,
            "memory": as_plain(self.memory),
            "most_processes": self.most_processes,
            "group": self.group,
            "body": body,
        }
        write_regular(f"{self.folder}/.launch.json", json.dumps(launch).encode())
        os.rename(f"{self.folder}/.launch.json", f"{self.folder}/launch.json")

    def read(self) -> InitRecord | None:
        """What the init wrote; None where the run is not prepared."""
        try:
            return parse_record(read_regular(self.record, len(BLANK)))
        except FileNotFoundError:
            return None
        except OSError:
            return InitRecord()

    def refused_processes(self) -> str:
        record = self.read()
        if record is None or not record.refusals or self.most_processes <= 0:
            return ""
        return too_many_processes(self.most_processes)

    def init_pid(self) -> int | None:
        return lock_owner(self.record)

    def write_end(self, code: int, at: datetime) -> None:
        """Write an end as an init does, for a run that can never start."""
        at_ns = int(at.timestamp() * 1e9)
        write_regular(self.record, f"init - {at_ns}\nexit {code} {at_ns}\n".encode(), 0)

    def mark(self, name: str) -> None:
        # On a full disk it is remembered as long as this server lives.
        with contextlib.suppress(OSError):
            os.link(f"{self.folder}/launch.json", f"{self.folder}/{name}")

    def prepared_at(self) -> datetime | None:
        try:
            return datetime.fromtimestamp(os.stat(f"{self.folder}/launch.json").st_mtime, UTC)
        except OSError:
            return None


ContainerRuns = Mapping[str, Mapping[RunKey, ContainerRun]]  # by job


def reload(key: RunKey, path: Path) -> ContainerRun:
    """A run as an earlier server left it."""
    launch: dict[str, Any] = {}
    try:
        launch = json.loads(read_regular(path / "launch.json", MOST_LAUNCH))
        container, holds = str(launch["container"]), bool(launch.get("hold"))
        network = str(launch["body"]["HostConfig"]["NetworkMode"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        container, network, holds = "", "", False  # killed while it was being prepared: to be prepared again
    return ContainerRun(
        key,
        str(path),
        container,
        network=network,
        asked=(path / "asked").exists(),
        killed=(path / "killed").exists(),
        seen=(path / "seen").exists(),
        holds=holds,
        full=note_of(path, "full"),
        unstarted=note_of(path, "unstarted"),
        memory=as_limit(launch.get("memory")),
        over_memory=note_of(path, OVER_MEMORY),
        most_processes=int(launch.get("most_processes") or 0),
        group=str(launch.get("group") or ""),
    )
