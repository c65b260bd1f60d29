"""Finds every process of a run, and signals them; makes and removes the cgroups of runs.

There are four ways to find a process of a run, and each misses some: the cgroup (where one may be made),
descent from the keeper (it adopts what double-forks away), the program's session, the mark in the
environment. It reads /proc, many small files: call it in a thread. It never signals a pid without having just
seen the same start time, and never the keeper unless asked.
"""

import contextlib
import hashlib
import os
import signal
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from trainshed.backends.machine import cgroup, memory_group, process_group
from trainshed.backends.machine.limit_tree import LimitTree, discard, found_below, passes_on
from trainshed.backends.machine.process_group import ProcessCeiling
from trainshed.backends.machine.processes import Identity, Process, look, send
from trainshed.backends.process.render import MARK
from trainshed.core.jobs.limits import MemoryLimit
from trainshed.core.names import RunKey

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
    pids = _descendants(table, trace.keeper)
    if not pids:
        # While the keeper lives all descend from it. Without it only the other traces are left.
        pids = _descendants(table, trace.program) | _session(table, trace.program)
        pids |= _marked(table, trace.run)
    pids |= members(trace.group)
    pids -= {os.getpid()}
    if trace.keeper is not None:
        pids -= {trace.keeper.pid}
    caught = (table.get(pid) or look(pid) for pid in pids)
    return tuple(process for process in caught if process is not None and not process.dead)


def _descendants(table: dict[int, Process], ancestor: Identity | None) -> set[int]:
    head = table.get(ancestor.pid) if ancestor else None
    if head is None or ancestor is None or head.dead or head.start != ancestor.start:
        return set()
    children: dict[int, list[int]] = {}
    for process in table.values():
        children.setdefault(process.parent, []).append(process.pid)
    result, queue = {head.pid}, [head.pid]
    while queue:
        for child in children.get(queue.pop(), ()):
            if child not in result:
                result.add(child)
                queue.append(child)
    return result


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
    result: set[int] = set()
    for pid in table:
        try:
            if mark in b"\0" + Path(f"/proc/{pid}/environ").read_bytes() + b"\0":
                result.add(pid)
        except OSError:
            continue  # gone, or somebody else's
    return result


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


@dataclass(frozen=True, slots=True)
class RunGroups:
    """The cgroups of one run. One group may do for all; None: there is none."""

    own: str | None = None  # of version 2: all of its processes
    memory: str | None = None  # that limits its memory; None where the memory watch does
    processes: str | None = None  # that limits how many they are; None where the process watch does

    @property
    def all(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(group for group in (self.own, self.memory, self.processes) if group))

    @property
    def joined(self) -> tuple[str, ...]:
        """Those that a process has to join by itself: it is born in its own."""
        return tuple(group for group in self.all if group != self.own)


NO_GROUPS = RunGroups()


class RunCgroups:
    """The cgroups of runs, below this server's own group; none where the system does not let us.

    Memory and processes are limited in the same groups where version 2 can, else in groups of version 1
    beside them. Runs that share one limit of memory are below a group of their job's.
    """

    def __init__(self, home: Path, ceiling: ProcessCeiling) -> None:
        self.ceiling = ceiling
        self._label = label(home)
        self._base: str | None = None
        self._memory: LimitTree | None = None
        self._processes: LimitTree | None = None

    def open(self) -> None:
        own = cgroup.locate()
        trees = [found_below(own, self._label, part.CONTROLLER) for part in (memory_group, process_group)]
        places = [tree.base for tree in trees if tree is not None and tree.is_v2]
        if own is not None:
            places.append(f"{own}/{self._label}")
        self._base = next((base for base in dict.fromkeys(places) if self._try(base)), None)
        # A run has one group of version 2: a controller that only another place has is no use.
        self._memory, self._processes = (
            None if tree is not None and tree.is_v2 and tree.base != self._base else tree for tree in trees
        )

    def _try(self, base: str) -> bool:
        try:
            os.makedirs(base, exist_ok=True)
        except OSError:
            return False
        if any(passes_on(base, part.CONTROLLER) for part in (memory_group, process_group)):
            return True  # by an earlier server: a group that passes a controller on takes no process itself
        # Permissions are not enough (delegation, threaded groups): let a process try.
        tried = subprocess.run(
            ["/bin/sh", "-c", 'echo 0 >"$1/cgroup.procs"', "sh", base], check=False, capture_output=True
        )
        if tried.returncode != 0:
            discard(base)
        return tried.returncode == 0

    @property
    def limits(self) -> tuple[str, ...]:
        """What the kernel limits in these groups; the rest is watched by the server."""
        trees = {"memory": self._memory, "processes": self._processes}
        return tuple(name for name, tree in trees.items() if tree is not None)

    def close(self) -> None:
        for base in self._bases():
            discard(base)  # stays while a run lives in it

    def make(self, key: RunKey, limit: MemoryLimit | None, processes: int) -> RunGroups:
        """The run's groups, with its limits; `processes` is 0 where they are not limited."""
        tree = self._memory
        memory = self._limited(tree, key, limit) if tree is not None and limit is not None else None
        own = memory if tree is not None and tree.is_v2 else None
        if own is None and self._base is not None:
            own = f"{self._base}/{key}"
            try:
                os.makedirs(own, exist_ok=True)  # an empty base may have been tidied away by somebody
            except OSError:
                own = None
        return RunGroups(own, memory, self._counted(own, key, processes))

    def _limited(self, tree: LimitTree, key: RunKey, limit: MemoryLimit) -> str | None:
        names = (key.name.job, str(key)) if limit.shared else (str(key),)
        group = tree.make(*names)
        if group is None:
            return None
        holder = os.path.dirname(group) if limit.shared else group
        if memory_group.limit_memory(holder, limit.most):
            return group
        discard(group, tree.base)
        return None

    def _counted(self, own: str | None, key: RunKey, most: int) -> str | None:
        """The group that limits the processes of the run; None where none can, or none is to."""
        tree = self._processes
        if tree is None or not most or (tree.is_v2 and own is None):
            return None
        names = own.removeprefix(f"{tree.base}/").split("/") if tree.is_v2 and own else (str(key),)
        group = tree.make(*names)
        if group is None or process_group.limit_processes(group, most):
            return group
        if not tree.is_v2:
            discard(group, tree.base)
        return None

    def tidy(self, known: Iterable[str]) -> None:
        """Remove groups of no known run: a server was killed between making and noting them."""
        used = set(known)
        for base in self._bases():
            for folder, _, _ in os.walk(base, topdown=False):
                if folder not in used and folder != base:
                    discard(folder)

    def discard(self, groups: RunGroups) -> None:
        for group in groups.all:
            discard(group, next((base for base in self._bases() if group.startswith(base)), ""))

    def _bases(self) -> tuple[str, ...]:
        trees = (tree.base for tree in (self._memory, self._processes) if tree is not None)
        return tuple(dict.fromkeys(base for base in (self._base, *trees) if base is not None))
