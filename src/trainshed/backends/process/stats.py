"""Samples what every run uses, in one pass: its processes, their CPU, memory, disk and network, its GPUs.

The collector asks ProcessStats, which samples in a thread, one sample at a time. The processes of a run are
those in its cgroup, where it has one, else those that descend from its keeper, which adopts what double-forks
away. Pages a program shares with its children by fork count in each until written; files and shared memory
count once, by the process that maps most of them. A process is asked for its parent once in its life, so the
cost does not grow with what else the machine runs.
"""

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainshed.backends.machine.gpu import Gpus
from trainshed.backends.machine.memory_watch import MemoryWatch, excess
from trainshed.backends.machine.proc import (
    TICKS,
    RisingSum,
    cpu_of_group,
    io_of,
    memory_of,
    proportional_of,
    slurp,
    stat_of,
)
from trainshed.backends.machine.process_group import count
from trainshed.backends.machine.process_watch import ProcessWatch
from trainshed.backends.machine.processes import Identity, ProcessFamilies
from trainshed.backends.machine.run import MOST_LAUNCH
from trainshed.backends.process.run import ProcessRun, ProcessRuns
from trainshed.backends.process.traffic import Carried, Counts, Traffic, sockets_of
from trainshed.core.jobs.replica import Sight
from trainshed.core.metrics import Measure, Usage
from trainshed.core.names import RunKey
from trainshed.disk.regular_file import read_regular

_MEASURES = frozenset({Measure.CPU, Measure.MEMORY, Measure.DISK, Measure.GPU})


@dataclass(slots=True)
class _TrackedRun:
    """What is remembered of a run between looks."""

    keeper: Identity | None = None
    gpus: tuple[str, ...] | None = None
    cpu: RisingSum = field(default_factory=RisingSum)
    read: RisingSum = field(default_factory=RisingSum)
    written: RisingSum = field(default_factory=RisingSum)
    carried: Carried = field(default_factory=Carried)


class ProcessSampler:
    def __init__(self, gpus: Gpus | None = None, proc: str = "/proc") -> None:
        self._gpus = gpus or Gpus()
        self._traffic = Traffic()
        self._proc = proc
        self._tracked: dict[RunKey, _TrackedRun] = {}
        self._families = ProcessFamilies(proc)
        self._pids: dict[RunKey, list[int]] = {}  # as of the last look

    @property
    def sees_network(self) -> bool:
        return self._traffic.works

    def sample(self, runs: Iterable[ProcessRun]) -> dict[RunKey, Usage]:
        chosen = list(runs)
        known = {run.key: self._tracked.get(run.key) or _TrackedRun() for run in chosen}
        self._tracked = known
        heads: set[int] = set()
        grouped: dict[RunKey, list[int]] = {}
        for run in chosen:
            tracked = known[run.key]
            if tracked.keeper is None:
                record = run.read()
                tracked.keeper = record.keeper if record else None
            if tracked.gpus is None:
                tracked.gpus = devices(run.path)
            if run.group is not None and (members := slurp(f"{run.group}/cgroup.procs")):
                grouped[run.key] = [int(pid) for pid in members.split()]
            elif tracked.keeper is not None:
                heads.add(tracked.keeper.pid)
        families = self._families.look(heads) if heads else {}
        counts = self._counts() if chosen else None
        result: dict[RunKey, Usage] = {}
        self._pids = {}
        for run in chosen:
            tracked, group = known[run.key], run.group if run.key in grouped else None
            pids = grouped.get(run.key)
            if pids is None:
                pids = families.get(tracked.keeper.pid, []) if tracked.keeper else []
            if counts is not None:
                tracked.carried.add(counts, sockets_of(pids, self._proc))
            result[run.key] = self._use(tracked, pids, group, run.groups.processes)
            self._pids[run.key] = pids
        return result

    def proportional(self, key: RunKey) -> int:
        """What a run of the last look has in memory, pages that its processes share counted once. Dear."""
        total = 0
        for pid in self._pids.get(key, ()):
            exact = proportional_of(slurp(f"{self._proc}/{pid}/smaps_rollup"))
            if exact is None:  # somebody else's now, or gone
                everything, some = memory_of(slurp(f"{self._proc}/{pid}/statm"))
                exact = everything - some
            total += exact
        return total

    def _counts(self) -> Counts | None:
        """None where the kernel does not tell, now or ever: what was carried before stays."""
        try:
            return self._traffic.look() if self._traffic.works else None
        except OSError:
            return None

    def close(self) -> None:
        self._gpus.close()

    def _use(
        self, tracked: _TrackedRun, pids: list[int], group: str | None, counting_group: str | None
    ) -> Usage:
        taken = time.monotonic()
        seconds = cpu_of_group(slurp(f"{group}/cpu.stat")) if group is not None else None
        tasks = count(counting_group) if counting_group is not None else None
        ticks = own = shared = read = written = threads = 0
        # Parents first: what ends meanwhile is missed once, and never counted twice.
        if tracked.keeper is not None:
            # What it holds of its own is nothing; what it has reaped is the run's.
            if stat := stat_of(slurp(f"{self._proc}/{tracked.keeper.pid}/stat")):
                ticks += stat.reaped if stat.start == tracked.keeper.start else 0
            if io := io_of(slurp(f"{self._proc}/{tracked.keeper.pid}/io")):
                read, written = io.read, io.written
        for pid in pids:
            folder = f"{self._proc}/{pid}"
            if (seconds is None or tasks is None) and (stat := stat_of(slurp(f"{folder}/stat"))):
                ticks, threads = ticks + stat.ticks, threads + stat.threads
            everything, some = memory_of(slurp(f"{folder}/statm"))
            own, shared = own + everything - some, max(shared, some)
            if io := io_of(slurp(f"{folder}/io")):
                read, written = read + io.read, written + io.written
        return Usage(
            taken=taken,
            cpu_seconds=tracked.cpu.take(seconds if seconds is not None else ticks / TICKS),
            memory=own + shared,
            read_bytes=int(tracked.read.take(read)),
            written_bytes=int(tracked.written.take(written)),
            received_bytes=tracked.carried.received if self._traffic.works else None,
            sent_bytes=tracked.carried.sent if self._traffic.works else None,
            processes=len(pids),
            threads=tasks if tasks is not None else threads,
            gpus=self._gpus.use(tracked.gpus or ()),
        )


class ProcessStats:
    """Implements `core.ports.Stats` for the runs of a backend. It kills runs over their limits."""

    def __init__(self, runs: ProcessRuns, kill: Callable[[ProcessRun], Coroutine[Any, Any, None]]) -> None:
        self._runs, self._sampler = runs, ProcessSampler()
        self._sampling = asyncio.Lock()
        self._memory = MemoryWatch[ProcessRun](self.sample, kill)
        self._processes = ProcessWatch[ProcessRun](self.sample, kill)

    @property
    def measures(self) -> frozenset[Measure]:
        return _MEASURES | {Measure.NETWORK} if self._sampler.sees_network else _MEASURES

    async def sample(self) -> Mapping[RunKey, Usage]:
        runs = [run for some in self._runs.values() for run in some.values() if run.sight is Sight.RUNNING]
        if not runs:
            return {}
        async with self._sampling:
            usages, used = await asyncio.to_thread(measured, self._sampler, runs)
        self._memory.take(runs, used)
        uncounted = [run for run in runs if run.groups.processes is None]
        self._processes.take(uncounted, {key: usage.threads for key, usage in usages.items()})
        return usages

    async def close(self) -> None:
        await self._memory.close()
        await self._processes.close()
        async with self._sampling:
            self._sampler.close()


def measured(
    sampler: ProcessSampler, runs: Sequence[ProcessRun]
) -> tuple[Mapping[RunKey, Usage], Mapping[RunKey, int]]:
    """What all runs use, and the memory of those that no cgroup holds to theirs. For threads.

    Pages that a program shares with its children by fork are in the memory of each: where that seems too much
    the kernel is asked for the truth, which takes it a while, so nobody is ended for what was counted twice.
    """
    usages = sampler.sample(runs)
    watched = {run.key: run.memory for run in runs if run.memory is not None and run.groups.memory is None}
    used = {key: usage.memory for key, usage in usages.items() if key in watched and usage.memory is not None}
    limits = {key: limit for key, limit in watched.items() if key in used}
    jobs = {key.name.job for key in excess(limits, used)}
    return usages, used | {key: sampler.proportional(key) for key in used if key.name.job in jobs}


def devices(run: Path) -> tuple[str, ...]:
    """The GPUs a run was given, by what it was told of them."""
    try:
        request: Any = json.loads(read_regular(run / "launch.json", MOST_LAUNCH))
        names = str(request["env"].get("CUDA_VISIBLE_DEVICES", ""))
    except (OSError, ValueError, KeyError, AttributeError):
        return ()
    return tuple(name for name in names.split(",") if name.isdigit())
