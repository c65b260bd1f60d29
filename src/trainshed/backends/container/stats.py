"""What every container uses, and the stacks of its programs, read from outside.

The collector, people and the hang watch call it. It asks the kernel and never the engine: a sample costs a
few small files for each container. Cgroups may be v1, v2 or both; where the engine cannot make any (rootless
on v1), the processes that descend from the container's init are counted. The network leaves out loopback.
Nothing runs inside a container for this. Where this server may not read a process's memory, a stack holds
only what the kernel tells.
"""

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainshed.backends.container.limits import JobGroups
from trainshed.backends.container.run import ContainerRun, ContainerRuns
from trainshed.backends.machine import spy
from trainshed.backends.machine.cgroup import find
from trainshed.backends.machine.gpu import Gpus
from trainshed.backends.machine.memory_watch import MemoryWatch
from trainshed.backends.machine.proc import TICKS, RisingSum, cpu_of_group, io_of, memory_of, slurp, stat_of
from trainshed.backends.machine.processes import ProcessFamilies
from trainshed.backends.machine.stacks import ALL, Describer
from trainshed.core.jobs.replica import Sight
from trainshed.core.jobs.stacks import StackDump, ThreadStack
from trainshed.core.metrics import Measure, Usage
from trainshed.core.names import RunKey

MEASURES = frozenset(Measure)


@dataclass(frozen=True, slots=True)
class LiveContainer:
    """A container that is alive."""

    pid: int  # of its init, on this machine
    gpus: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ContainerCgroups:
    """The folders of a container's cgroups; empty where there is none."""

    cpu: str = ""
    memory: str = ""
    is_new: bool = False  # v2

    @property
    def members(self) -> str:
        return self.memory or self.cpu


@dataclass(slots=True)
class _TrackedContainer:
    """What is remembered of a container between looks."""

    pid: int
    groups: ContainerCgroups
    cpu: RisingSum = field(default_factory=RisingSum)
    read: RisingSum = field(default_factory=RisingSum)
    written: RisingSum = field(default_factory=RisingSum)
    received: RisingSum = field(default_factory=RisingSum)
    sent: RisingSum = field(default_factory=RisingSum)


class ContainerStats:
    """Implements `core.ports.Stats`: it looks in a thread, one look at a time.

    It kills runs that share a memory limit which neither the engine nor a cgroup enforces, and exceed it.
    """

    def __init__(
        self,
        runs: ContainerRuns,
        groups: JobGroups,
        kill: Callable[[ContainerRun], Coroutine[Any, Any, None]],
    ) -> None:
        self._runs, self._groups, self._sampler = runs, groups, ContainerSampler()
        self._gpus: dict[RunKey, tuple[str, ...]] = {}
        self._looking = asyncio.Lock()
        self._memory = MemoryWatch[ContainerRun](self.sample, kill)

    async def sample(self) -> Mapping[RunKey, Usage]:
        runs = [run for some in self._runs.values() for run in some.values()]
        alive = [run for run in runs if run.sight is Sight.RUNNING]
        async with self._looking:
            usages = await asyncio.to_thread(self._look, alive) if alive else dict[RunKey, Usage]()
        # The engine enforces the limit of a run that has its own.
        shared = [run for run in runs if run.memory and run.memory.shared and not self._groups.holds(run)]
        used = {key: usage.memory for key, usage in usages.items() if usage.memory is not None}
        self._memory.take(shared, used)
        return usages

    async def close(self) -> None:
        await self._memory.close()
        async with self._looking:
            self._sampler.close()

    def _look(self, runs: list[ContainerRun]) -> Mapping[RunKey, Usage]:
        self._gpus = {run.key: self._gpus.get(run.key) or devices(run.folder) for run in runs}
        containers = {
            run.key: LiveContainer(pid, self._gpus[run.key]) for run in runs if (pid := run.init_pid())
        }
        return self._sampler.sample(containers)


def devices(folder: str) -> tuple[str, ...]:
    """The GPUs of a run, by its launch.json."""
    try:
        body: Any = json.loads(slurp(f"{folder}/launch.json"))["body"]
        env = dict(str(line).split("=", 1) for line in body["Env"])
    except (ValueError, LookupError, TypeError):
        return ()
    return tuple(name for name in env.get("NVIDIA_VISIBLE_DEVICES", "").split(",") if name.isdigit())


class ContainerSampler:
    def __init__(self, gpus: Gpus | None = None, proc: str = "/proc") -> None:
        self._gpus = gpus or Gpus()
        self._proc = proc
        self._mounts = ""
        self._tracked: dict[RunKey, _TrackedContainer] = {}
        self._families = ProcessFamilies(proc)

    def close(self) -> None:
        self._gpus.close()

    def sample(self, containers: Mapping[RunKey, LiveContainer]) -> dict[RunKey, Usage]:
        known: dict[RunKey, _TrackedContainer] = {}
        for key, container in containers.items():
            tracked = self._tracked.get(key)
            if tracked is None or tracked.pid != container.pid:
                groups = slurp(f"{self._proc}/{container.pid}/cgroup")
                if not groups:
                    continue  # it has ended meanwhile
                tracked = _TrackedContainer(
                    container.pid, groups_of(self._mounted(), groups.decode(errors="replace"))
                )
            known[key] = tracked
        self._tracked = known
        pids = self._members(known)
        result: dict[RunKey, Usage] = {}
        for key, tracked in known.items():
            if stat_of(slurp(f"{self._proc}/{tracked.pid}/stat")) is not None:
                result[key] = self._use(tracked, pids[key], containers[key].gpus)
        return result

    def _mounted(self) -> str:
        if not self._mounts:
            self._mounts = slurp(f"{self._proc}/self/mountinfo").decode(errors="replace")
        return self._mounts

    def _members(self, known: Mapping[RunKey, _TrackedContainer]) -> dict[RunKey, list[int]]:
        pids: dict[RunKey, list[int]] = {}
        for key, tracked in known.items():
            folder = tracked.groups.members
            if folder and (text := slurp(f"{folder}/cgroup.procs")):
                pids[key] = [int(pid) for pid in text.split()]
        heads = {tracked.pid for key, tracked in known.items() if key not in pids}
        families = self._families.look(heads) if heads else {}
        for key, tracked in known.items():
            if key not in pids:
                pids[key] = [tracked.pid, *families.get(tracked.pid, [])]
        return pids

    def _use(self, tracked: _TrackedContainer, pids: list[int], gpus: tuple[str, ...]) -> Usage:
        taken, groups = time.monotonic(), tracked.groups
        seconds, memory = cpu_in(groups), memory_in(groups)
        ticks = own = shared = read = written = threads = 0
        # The init first: its counters include children that ended, so none is counted twice.
        for pid in sorted(pids, key=lambda pid: pid != tracked.pid):
            folder = f"{self._proc}/{pid}"
            if stat := stat_of(slurp(f"{folder}/stat")):
                ticks, threads = ticks + stat.ticks, threads + stat.threads
            if memory is None:
                everything, some = memory_of(slurp(f"{folder}/statm"))
                own, shared = own + everything - some, max(shared, some)
            if io := io_of(slurp(f"{folder}/io")):
                read, written = read + io.read, written + io.written
        received, sent = carried(slurp(f"{self._proc}/{tracked.pid}/net/dev"))
        return Usage(
            taken=taken,
            cpu_seconds=tracked.cpu.take(seconds if seconds is not None else ticks / TICKS),
            memory=memory if memory is not None else own + shared,
            read_bytes=int(tracked.read.take(read)),
            written_bytes=int(tracked.written.take(written)),
            received_bytes=int(tracked.received.take(received)),
            sent_bytes=int(tracked.sent.take(sent)),
            processes=max(0, len(pids) - 1),  # without our init
            threads=max(0, threads - 1),
            gpus=self._gpus.use(gpus),
        )


def members(pid: int, proc: str = "/proc") -> list[int]:
    """The processes of the container with this init, without the init."""
    text = slurp(f"{proc}/self/mountinfo").decode(errors="replace")
    folder = groups_of(text, slurp(f"{proc}/{pid}/cgroup").decode(errors="replace")).members
    listed = slurp(f"{folder}/cgroup.procs") if folder else b""
    pids = [int(part) for part in listed.split()] if listed else ProcessFamilies(proc).look({pid})[pid]
    return sorted(item for item in pids if item != pid)


def groups_of(mounts: str, groups: str) -> ContainerCgroups:
    """The folders of a process's cgroups, by /proc/self/mountinfo and /proc/PID/cgroup. Pure.

    The root group is not a container's.
    """
    old = {name: _deep(mounts, groups, name) for name in ("cpuacct", "memory")}
    if old["cpuacct"] or old["memory"]:
        return ContainerCgroups(cpu=old["cpuacct"], memory=old["memory"])
    new = _deep(mounts, groups, "")
    return ContainerCgroups(cpu=new, memory=new, is_new=True)


def _deep(mounts: str, groups: str, controller: str) -> str:
    for line in groups.splitlines():
        number, controllers, path = line.split(":", 2)
        named = controller in controllers.split(",") if controller else number == "0"
        if named and path not in ("", "/"):
            return str(find(mounts, groups, controller) or "")
    return ""


def cpu_in(groups: ContainerCgroups) -> float | None:
    """CPU seconds of all processes that ever ran in it."""
    if not groups.cpu:
        return None
    if groups.is_new:
        return cpu_of_group(slurp(f"{groups.cpu}/cpu.stat"))
    text = slurp(f"{groups.cpu}/cpuacct.usage").strip()
    return int(text) / 1e9 if text.isdigit() else None


def memory_in(groups: ContainerCgroups) -> int | None:
    """Bytes in use, without the inactive file cache, which the kernel frees when memory is short."""
    if not groups.memory:
        return None
    name, line = (
        ("memory.current", b"inactive_file ")
        if groups.is_new
        else ("memory.usage_in_bytes", b"total_inactive_file ")
    )
    text = slurp(f"{groups.memory}/{name}").strip()
    if not text.isdigit():
        return None
    idle = 0
    for item in slurp(f"{groups.memory}/memory.stat").splitlines():
        if item.startswith(line):
            idle = int(item[len(line) :])
    return max(0, int(text) - idle)


def carried(text: bytes) -> tuple[int, int]:
    """Bytes received and sent by /proc/PID/net/dev, loopback left out. Pure."""
    received = sent = 0
    for line in text.splitlines()[2:]:
        name, _, numbers = line.partition(b":")
        fields = numbers.split()
        if name.strip() != b"lo" and len(fields) >= 9:
            received, sent = received + int(fields[0]), sent + int(fields[8])
    return received, sent


class ContainerStacks:
    """Implements `core.ports.Stacks`: it looks in a thread, one look at a time."""

    def __init__(self, runs: ContainerRuns) -> None:
        self._runs, self._describer = runs, Describer()
        self._looking = asyncio.Lock()

    def close(self) -> None:
        self._describer.close()

    async def stacks(self, keys: Sequence[RunKey]) -> Mapping[RunKey, StackDump]:
        runs = [self._runs.get(key.name.job, {}).get(key) for key in keys]
        async with self._looking:
            alive = [run for run in runs if run is not None and run.sight is Sight.RUNNING]
            return await asyncio.to_thread(self._dump, alive) if alive else {}

    def _dump(self, runs: list[ContainerRun]) -> dict[RunKey, StackDump]:
        deadline = time.monotonic() + ALL
        result: dict[RunKey, StackDump] = {}
        for run in runs:
            if pid := run.init_pid():
                result[run.key] = self._describer.describe_all(members(pid), self._look, deadline)
        return result

    def _look(self, pid: int, patience: float) -> tuple[tuple[ThreadStack, ...], str]:
        if self._describer.spy is None:
            return (), "Its Python stacks are not told: py-spy is not here, or may not look into processes."
        return spy.spy_on(self._describer.spy, pid, patience)
