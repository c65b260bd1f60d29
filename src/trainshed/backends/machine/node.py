"""Surveys what this machine offers: CPUs, memory and GPUs, as far as this process may use them.

Backends call it. It reads /proc. It never counts what a cgroup withholds, and needs no NVIDIA driver.
"""

import asyncio
import ctypes
import importlib
import logging
import os
from pathlib import Path

from trainshed.backends.machine import cgroup
from trainshed.backends.machine.process_group import ProcessCeiling
from trainshed.core.queue.fleet import Node

_HOST = "127.0.0.1"  # where replicas find each other: all of them are here
_log = logging.getLogger(__name__)


class LocalNode:
    """This machine as the one node of a backend, looked at once; as large as is said, or as it is."""

    def __init__(
        self, cpus: float | None = None, memory: int | None = None, ceiling: ProcessCeiling | None = None
    ) -> None:
        self._size = (cpus, memory)
        self.ceiling = ceiling or ProcessCeiling()
        self._node: Node | None = None

    async def nodes(self) -> tuple[Node, ...]:
        if self._node is None:
            self._node = await asyncio.to_thread(_survey, *self._size)
        return (self._node,)


def _survey(cpus: float | None, memory: int | None) -> Node:
    gpus, kind = _gpus()
    return Node(
        name="local",
        host=_HOST,
        cpus=cpus if cpus is not None else _cpus(),
        memory=memory if memory is not None else _memory(),
        gpus=gpus,
        gpu_kind=kind,
    )


def _cpus() -> float:
    usable = float(len(os.sched_getaffinity(0)))
    granted = map(quota, cgroup.limits("cpu", "cpu.cfs_quota_us", "cpu.max"))
    return min([usable, *(g for g in granted if g is not None)])


def quota(text: str) -> float | None:
    """CPUs granted by a quota: "150000 100000" (v2) or "150000" per 100 ms (v1); None for no limit."""
    match text.split():
        case [share, *rest] if share.isdigit():
            return int(share) / int(rest[0] if rest else 100_000)
        case _:
            return None


def _memory() -> int:
    total = 0
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemTotal:"):
            total = int(line.split()[1]) * 1024
    granted = cgroup.limits("memory", "memory.limit_in_bytes", "memory.max")
    return min([total, *(int(g) for g in granted if g.isdigit())])


def _gpus() -> tuple[tuple[str, ...], str]:
    """Device numbers in NVML's order, which is CUDA's where CUDA_DEVICE_ORDER=PCI_BUS_ID, and their name."""
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
        nvml = importlib.import_module("pynvml")
    except (OSError, ImportError):
        return (), ""
    try:
        nvml.nvmlInit()
        try:
            count = int(nvml.nvmlDeviceGetCount())
            name = nvml.nvmlDeviceGetName(nvml.nvmlDeviceGetHandleByIndex(0)) if count else ""
        finally:
            nvml.nvmlShutdown()
    except nvml.NVMLError as error:
        _log.warning("the NVIDIA driver does not answer, no GPU is offered: %s", error)
        return (), ""
    return tuple(str(i) for i in range(count)), name.decode() if isinstance(name, bytes) else str(name)
