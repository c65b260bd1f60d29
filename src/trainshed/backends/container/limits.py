"""Limits that the engine does not enforce itself: what a job's replicas share, and the disk of a run.

The backend and the starter call it. `JobGroups` makes one cgroup above all containers of a job, where the
engine makes cgroups itself (driver cgroupfs) and this server may too; elsewhere machine/memory_watch.py
watches their sum. A group goes with its job's containers; what a killed server left is found by its name.
`DiskWatch` measures the container's own file system, its scratch and its job's folder, but no buckets and
no NFS. A run whose size could not be read is not ended.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import Awaitable, Callable, Collection, Iterable
from pathlib import Path
from typing import Any

from trainshed.backends.container.engine import Engine
from trainshed.backends.container.run import ContainerRun
from trainshed.backends.machine import cgroup, memory_group
from trainshed.backends.machine.limit_tree import put
from trainshed.backends.machine.proc import slurp
from trainshed.backends.machine.run import note_of
from trainshed.background_tasks import BackgroundTasks
from trainshed.core.errors import TrainshedError
from trainshed.core.jobs.limits import SharedRoom
from trainshed.disk.regular_file import write_regular

DRIVER = "cgroupfs"
_PERIOD = 100_000  # microseconds
_log = logging.getLogger(__name__)

LIMIT = "disk"  # the file of a run that says how many bytes it may fill
GIB = 1 << 30
_FAST = GIB  # bytes a second
_SHORTEST, _LONGEST = 2.0, 60.0  # seconds between two looks
_AT_ONCE = 2


class JobGroups:
    def __init__(self, home: str, driver: str) -> None:
        """`home` is the id of the home; `driver` is the engine's cgroup driver."""
        self._name = f"trainshed-{home}"
        self._memory, self._cpu = _roots() if driver == DRIVER else (None, None)
        self._all = cgroup.mounted() if self._memory is not None else ()  # engines make them in all

    def make(self, job: str, room: SharedRoom | None) -> str:
        """The cgroup parent of the job's containers; empty where none can be made."""
        if room is None or self._memory is None or self._cpu is None:
            return ""
        parent = f"/{self._name}/{job}"
        try:
            for root in {self._memory, self._cpu}:
                base = root / self._name
                base.mkdir(exist_ok=True)
                if self._is_v2:
                    put(str(base), "cgroup.subtree_control", "+memory +cpu")
                (base / job).mkdir(exist_ok=True)
        except OSError:
            return ""
        limited = True
        if room.memory:
            limited = memory_group.limit_memory(f"{self._memory}{parent}", room.memory)
        if room.cpus:
            limited = self._limit_cpus(f"{self._cpu}{parent}", room.cpus) and limited
        if limited:
            return parent
        self.remove(job)
        return ""

    def holds(self, run: ContainerRun) -> bool:
        """Whether the run really is in the group: an engine may see other cgroups than this server."""
        pid = run.init_pid() if run.group else None
        return bool(pid) and f"{run.group}/".encode() in slurp(f"/proc/{pid}/cgroup")

    def remove(self, job: str) -> bool:
        """Whether nothing is left of it: a container's monitor may still be ending."""
        for root in self._all:
            own = root / self._name / job
            # Engines leave groups of container monitors. A group that is not empty cannot be removed.
            below = [Path(folder) for folder, _, _ in os.walk(own, topdown=False)]
            for folder in (*below, own.parent):
                with contextlib.suppress(OSError):
                    folder.rmdir()
        return not any((root / self._name / job).exists() for root in self._all)

    def sweep(self, jobs: Callable[[], Collection[str]]) -> None:
        """Remove what an earlier server left of jobs that are no more."""
        for root in self._all:
            for folder in (root / self._name).glob("*/"):
                if folder.name not in jobs():
                    self.remove(folder.name)

    @property
    def _is_v2(self) -> bool:
        return self._memory == self._cpu

    def _limit_cpus(self, group: str, cpus: float) -> bool:
        quota = round(max(cpus, 0.01) * _PERIOD)
        if self._is_v2:
            return put(group, "cpu.max", f"{quota} {_PERIOD}")
        return put(group, "cpu.cfs_quota_us", str(quota))


def _roots() -> tuple[Path | None, Path | None]:
    """The folders of the topmost groups that limit memory and CPUs: one folder in version 2."""
    mounts = slurp("/proc/self/mountinfo").decode(errors="replace")
    old = [cgroup.find(mounts, f"1:{name}:/\n", name) for name in ("memory", "cpu")]
    if all(old):
        return old[0], old[1]
    new = cgroup.find(mounts, "0::/\n")
    return new, new


class DiskWatch:
    def __init__(self, engine: Engine, kill: Callable[[ContainerRun], Awaitable[None]]) -> None:
        self._engine, self._kill = engine, kill
        self._background = BackgroundTasks()
        self._looking = asyncio.Semaphore(_AT_ONCE)

    def watch(self, run: ContainerRun) -> None:
        """Watch a run that has a limit, until it is gone."""
        try:
            limit = int(note_of(Path(run.folder), LIMIT))
        except ValueError:
            return
        self._background.run(self._hold(run, limit))

    async def close(self) -> None:
        await self._background.close()

    async def _hold(self, run: ContainerRun, limit: int) -> None:
        upper, used = "", 0
        while not await _gone(run, min(max((limit - used) / _FAST, _SHORTEST), _LONGEST)):
            try:
                async with self._looking:
                    upper = upper or await self._upper(run)
                    used = await self._used(run, upper)
                if used > limit and not run.gone.is_set():
                    await self._end(run, used, limit)
            except TrainshedError as error:
                _log.debug("the disk use of %s could not be read: %s", run.key, error.message)

    async def _end(self, run: ContainerRun, used: int, limit: int) -> None:
        run.full = f"it filled {used / GIB:.3f} GiB of disk, and its diskSpec allows {limit / GIB:.3g} GiB"
        with contextlib.suppress(OSError):
            write_regular(f"{run.folder}/full", run.full.encode())
        await self._kill(run)

    async def _upper(self, run: ContainerRun) -> str:
        """The folder with the container's own writes; empty where this server cannot see it."""
        inspected: dict[str, Any] = await self._engine.ask("GET", f"/containers/{run.container}/json")
        driver: dict[str, Any] = inspected.get("GraphDriver") or {}
        data: dict[str, Any] = driver.get("Data") or {}
        upper = str(data.get("UpperDir") or "")
        return upper if upper and os.access(upper, os.R_OK | os.X_OK) else ""

    async def _used(self, run: ContainerRun, upper: str) -> int:
        folder = Path(run.folder)
        own = await asyncio.to_thread(filled, [str(folder / "tmp"), str(folder.parent / "work"), upper])
        if upper:
            return own
        inspected: dict[str, Any] = await self._engine.ask(
            "GET", f"/containers/{run.container}/json", {"size": True}
        )
        return own + int(inspected.get("SizeRw") or 0)


def filled(folders: Iterable[str]) -> int:
    """The bytes that files below these folders take on the disk. Blocks."""
    total, waiting = 0, [folder for folder in folders if folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    with contextlib.suppress(OSError):
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append(entry.path)
                        else:
                            total += entry.stat(follow_symlinks=False).st_blocks * 512
        except OSError:
            continue  # removed meanwhile
    return total


async def _gone(run: ContainerRun, seconds: float) -> bool:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(run.gone.wait(), seconds)
    return run.gone.is_set()
