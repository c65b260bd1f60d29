"""Finds every process of a run, by every trace one can leave, and signals them.

Four nets, each with holes the others cover: the cgroup (where one may be made), descent from the keeper (it
adopts what double-forks away), the program's session, the mark in the environment. It may assume /proc. It
never signals a pid it has not just seen with the same start time, and never the keeper unless asked.
All of it reads many small files: call it from a thread.
"""

import contextlib
import hashlib
import os
import signal
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from trainshed.backends.machine import cgroup
from trainshed.backends.machine.processes import Identity, Process, look, send
from trainshed.backends.process.render import MARK

_STOP_ROUNDS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTrace:
    """What to look for."""

    run: str
    group: str | None
    keeper: Identity | None
    program: Identity | None


def _survey() -> dict[int, Process]:
    seen = (look(int(entry.name)) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return {process.pid: process for process in seen if process is not None}


def catch(trace: RunTrace) -> tuple[Process, ...]:
    """Every living process of the run but its keeper."""
    table = _survey()
    found = _descendants(table, trace.keeper)
    if not found:
        # While the keeper lives all descend from it; without it the other traces have to do.
        found = _descendants(table, trace.program) | _session(table, trace.program)
        found |= _marked(table, trace.run)
    found |= members(trace.group)
    found -= {os.getpid()}
    if trace.keeper is not None:
        found -= {trace.keeper.pid}
    caught = (table.get(pid) or look(pid) for pid in found)
    return tuple(process for process in caught if process is not None and not process.dead)


def _descendants(table: dict[int, Process], ancestor: Identity | None) -> set[int]:
    head = table.get(ancestor.pid) if ancestor else None
    if head is None or ancestor is None or head.dead or head.start != ancestor.start:
        return set()
    children: dict[int, list[int]] = {}
    for process in table.values():
        children.setdefault(process.parent, []).append(process.pid)
    found, queue = {head.pid}, [head.pid]
    while queue:
        for child in children.get(queue.pop(), ()):
            if child not in found:
                found.add(child)
                queue.append(child)
    return found


def _session(table: dict[int, Process], program: Identity | None) -> set[int]:
    """Those in the session the program leads. The kernel keeps its number while one member lives."""
    if program is None:
        return set()
    leader = table.get(program.pid)
    if leader is not None and leader.start != program.start:
        return set()
    return {p.pid for p in table.values() if p.session == program.pid and p.start >= program.start}


def _marked(table: dict[int, Process], run: str) -> set[int]:
    mark = f"\0{MARK}={run}\0".encode()
    found: set[int] = set()
    for pid in table:
        try:
            if mark in b"\0" + Path(f"/proc/{pid}/environ").read_bytes() + b"\0":
                found.add(pid)
        except OSError:
            continue  # gone, or somebody else's
    return found


def members(group: str | None) -> set[int]:
    if group is None:
        return set()
    try:
        return {int(line) for line in Path(group, "cgroup.procs").read_text().split()}
    except OSError:
        return set()


def ask(trace: RunTrace) -> None:
    """SIGTERM to all of the run but its keeper."""
    for process in catch(trace):
        send(process, signal.SIGTERM)


def kill(trace: RunTrace, *, freeze: bool) -> int:
    """SIGKILL to all of the run but its keeper; how many there were.

    With freeze they are stopped first, until a look finds none that is not: what forks faster than it is
    killed would win otherwise.
    """
    if trace.group is not None:
        with contextlib.suppress(OSError):
            Path(trace.group, "cgroup.kill").write_text("1")
    caught = catch(trace)
    stopped: set[Process] = set()
    for _ in range(_STOP_ROUNDS if freeze else 0):
        fresh = [process for process in caught if process not in stopped]
        if not fresh:
            break
        for process in fresh:
            send(process, signal.SIGSTOP)
        stopped.update(fresh)
        caught = catch(trace)
    for process in stopped.union(caught):
        send(process, signal.SIGKILL)
    return len(caught)


def label(home: Path) -> str:
    """The name of the group above the runs of a home: two homes on one machine never meet."""
    return "trainshed-" + hashlib.sha256(os.fsencode(home)).hexdigest()[:12]


class RunCgroups:
    """The cgroups of runs, below this server's own group; none where the system does not let us."""

    def __init__(self, home: Path) -> None:
        self._label = label(home)
        self._base: str | None = None

    def open(self) -> None:
        own = cgroup.locate()
        if own is None:
            return
        base = own / self._label
        try:
            base.mkdir(exist_ok=True)
        except OSError:
            return
        # Permissions do not tell the whole story (delegation, threaded groups): let a process try.
        tried = subprocess.run(
            ["/bin/sh", "-c", 'echo 0 >"$1/cgroup.procs"', "sh", str(base)], check=False, capture_output=True
        )
        if tried.returncode == 0:
            self._base = str(base)
        else:
            self._discard(str(base))

    def close(self) -> None:
        if self._base is not None:
            self._discard(self._base)  # stays while a run lives in it

    def make(self, name: str) -> str | None:
        if self._base is None:
            return None
        group = f"{self._base}/{name}"
        try:
            os.makedirs(group, exist_ok=True)  # an empty base may have been tidied away by somebody
        except OSError:
            return None
        return group

    def tidy(self, known: Iterable[str | None]) -> None:
        """Remove what no run knows of: a server was killed before it had written down that it made it."""
        if self._base is None:
            return
        with os.scandir(self._base) as entries:
            made = {entry.path for entry in entries if entry.is_dir()}
        self.discard(made.difference(known))

    def discard(self, groups: Iterable[str | None]) -> None:
        for group in groups:
            if group is not None:
                self._discard(group)

    def _discard(self, group: str) -> None:
        with contextlib.suppress(OSError):
            os.rmdir(group)
