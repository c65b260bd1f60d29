"""One cgroup above all containers of a job that was cut to fit: it holds the job to what its replicas share.

It can be made where the engine makes cgroups itself (the driver cgroupfs) and this server may too. Elsewhere
each container may use all that is shared, and a watch looks at their sum (machine/memory_watch.py). A group
goes with its job's containers; what a killed server left is found by its name.
"""

import contextlib
import os
from collections.abc import Callable, Collection
from pathlib import Path

from trainshed.backends.container.run import ContainerRun
from trainshed.backends.machine import cgroup, memory_group
from trainshed.backends.machine.memory_group import put
from trainshed.backends.machine.proc import slurp
from trainshed.core.limits import SharedRoom

DRIVER = "cgroupfs"
_PERIOD = 100_000  # microseconds


class JobGroups:
    def __init__(self, home: str, driver: str) -> None:
        """`home` is the id by which containers are known; `driver` what the engine calls its own."""
        self._name = f"trainshed-{home}"
        self._memory, self._cpu = _roots() if driver == DRIVER else (None, None)
        self._all = cgroup.mounted() if self._memory is not None else ()  # an engine makes them everywhere

    def make(self, job: str, room: SharedRoom | None) -> str:
        """The parent for the job's containers, as the engine is told; empty where there is none to be had."""
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
        held = True
        if room.memory:
            held = memory_group.limit_memory(f"{self._memory}{parent}", room.memory)
        if room.cpus:
            held = self._limit_cpus(f"{self._cpu}{parent}", room.cpus) and held
        if held:
            return parent
        self.remove(job)
        return ""

    def holds(self, run: ContainerRun) -> bool:
        """Whether the group really is above the run: an engine may see other cgroups than this server."""
        pid = run.holder() if run.group else None
        return bool(pid) and f"{run.group}/".encode() in slurp(f"/proc/{pid}/cgroup")

    def remove(self, job: str) -> bool:
        """Whether nothing is left of it: what watched over a container may still be ending."""
        for root in self._all:
            own = root / self._name / job
            # Engines leave groups of what watched over a container. One that is not empty cannot be removed.
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
