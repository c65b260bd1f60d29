"""One run and the files of its directory: prepared, claimed by a keeper, ended.

    launch.json   what was asked for, with the cgroups it got
    ready         spaces, until a keeper claims the run by renaming it ...
    record        ... to this, and writes itself, the program and the end into it
    term          exists once SIGTERM has been sent
    over-memory   that it was ended for want of memory, in words (memory_watch.py)
    over-processes, refused-processes   that it had too many processes or was refused one, in words

Every step is a rename or a link, which need no room on a full disk and happen once. One server at a time
works on a home. It never signals anything and never waits.
"""

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from trainshed.backends.machine.process_group import refusals
from trainshed.backends.machine.run import (
    MOST_LAUNCH,
    OVER_MEMORY,
    OVER_PROCESSES,
    KnownRun,
    as_limit,
    as_plain,
    note_of,
)
from trainshed.backends.process.net import NO_GROUPS, RunGroups, RunTrace
from trainshed.backends.process.record import BLANK, ProcessRecord, moment, parse
from trainshed.core.jobs.limits import too_many_processes
from trainshed.core.jobs.replica import Handle
from trainshed.core.names import RunKey
from trainshed.disk.regular_file import open_regular, read_regular, write_regular

REFUSED_PROCESSES = "refused-processes"
MOST_RECORD = 64 * 1024  # bytes: far above what a keeper writes


@dataclass(slots=True, eq=False)
class ProcessRun(KnownRun):
    groups: RunGroups = NO_GROUPS
    refused: str = ""  # that the kernel refused it a process, in words
    oom_kills: int | None = None  # of the whole machine, when this server began to watch the run

    @property
    def handle(self) -> Handle:
        return {"run": self.folder}

    @property
    def group(self) -> str | None:
        return self.groups.own

    def refused_processes(self) -> str:
        """Its cgroup, which knows, goes with its end: so it is written down once it is known."""
        group = self.groups.processes
        if not self.refused and group is not None and refusals(group):
            self.refused = too_many_processes(self.most_processes)
            self.leave_note(REFUSED_PROCESSES, self.refused)
        return self.refused

    @property
    def path(self) -> Path:
        return Path(self.folder)

    # The files

    def prepare(self, request: dict[str, object]) -> None:
        """Write everything a keeper needs; `ready` last and whole, so that a half-made run is no run."""
        _write(
            f"{self.folder}/launch.json",
            json.dumps(
                {
                    **request,
                    "group": self.groups.own,
                    "memory_group": self.groups.memory,
                    "process_group": self.groups.processes,
                    "most_processes": self.most_processes,
                    "memory": as_plain(self.memory),
                    "hold": self.holds,
                }
            ).encode(),
        )
        _write(f"{self.folder}/.ready", BLANK)
        os.rename(f"{self.folder}/.ready", f"{self.folder}/ready")

    def prepared(self) -> bool:
        return os.path.exists(f"{self.folder}/ready")

    def claim(self) -> bool:
        """Take the run from any keeper still to come. False where one has it."""
        try:
            os.rename(f"{self.folder}/ready", f"{self.folder}/record")
        except OSError:
            return False
        return True

    def read(self) -> ProcessRecord | None:
        """What the keeper wrote; None where no keeper has claimed the run."""
        try:
            return parse(read_regular(f"{self.folder}/record", MOST_RECORD))
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            return ProcessRecord()  # unreadable: claimed, and nothing known

    def write_end(self, code: int, at_ns: int) -> None:
        write_regular(f"{self.folder}/record", f"exit {code} {at_ns}\n".encode(), 0)

    def note_asked(self) -> None:
        """SIGTERM has been sent: a later server must not send it again."""
        # On a disk without links or room it is remembered as long as this server lives.
        with contextlib.suppress(OSError):
            os.link(f"{self.folder}/launch.json", f"{self.folder}/term")

    def changed_at(self, name: str) -> datetime | None:
        try:
            return moment(os.stat(f"{self.folder}/{name}").st_mtime_ns)
        except OSError:
            return None

    def trace(self, record: ProcessRecord | None) -> RunTrace:
        known = record or ProcessRecord()
        return RunTrace(run=self.folder, group=self.group, keeper=known.keeper, program=known.program)


ProcessRuns = Mapping[str, Mapping[RunKey, ProcessRun]]  # by job


def _write(path: str, content: bytes) -> None:
    handle = open_regular(path, os.O_WRONLY | os.O_CREAT)
    try:
        if os.write(handle, content) != len(content):
            raise OSError(28, "No space left on device", path)
        if os.fstat(handle).st_size > len(content):  # of an earlier try, or a folder used again
            os.ftruncate(handle, len(content))
    finally:
        os.close(handle)


def reload(key: RunKey, path: Path) -> ProcessRun:
    """A run as an earlier server left it."""
    run = ProcessRun(key, str(path), asked=(path / "term").exists())
    try:
        launch = json.loads(read_regular(path / "launch.json", MOST_LAUNCH))
    except (OSError, ValueError):
        return run  # killed while it was being prepared: to be prepared again
    names = (launch.get(name) for name in ("group", "memory_group", "process_group"))
    run.groups = RunGroups(*(name if isinstance(name, str) else None for name in names))
    most = launch.get("most_processes")
    run.most_processes = most if isinstance(most, int) else 0
    run.over_processes, run.refused = note_of(path, OVER_PROCESSES), note_of(path, REFUSED_PROCESSES)
    run.memory, run.over_memory = as_limit(launch.get("memory")), note_of(path, OVER_MEMORY)
    run.holds = bool(launch.get("hold"))
    return run
