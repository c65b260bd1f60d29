"""Reads what this machine does, whoever does it: CPUs, memory, the disk of a folder, GPUs.

`service/nodes.py` asks for it, when somebody looks at the machines; nothing is read at other times. The
parsing is pure. What cannot be read is left out, never an error.
"""

import asyncio
import os
import time
from collections.abc import Mapping
from pathlib import Path

from trainshed.backends.machine.gpu import Gpus
from trainshed.backends.machine.node import LocalNode
from trainshed.backends.machine.proc import TICKS, slurp
from trainshed.core.queue.fleet import Node
from trainshed.core.queue.node_use import NodeUse, PartInUse

FRESH = 1.0  # seconds for which a look is good enough for whoever asks next
SHORT = 0.2  # seconds between two looks at the counters of the CPUs, where the last look is too old
OLD = 10.0  # seconds after which a look is no longer a beginning for "just now"


class LocalNodeStats:
    def __init__(self, node: LocalNode, folder: Path, gpus: Gpus | None = None) -> None:
        self._node, self._folder, self._gpus = node, folder, gpus or Gpus()
        self._looking = asyncio.Lock()
        self._taken = float("-inf")  # monotonic: when `_last` was made
        self._last: Mapping[str, NodeUse] = {}
        self._idle: tuple[float, float] = (float("-inf"), 0.0)  # when, and the idle seconds of all CPUs then

    async def use(self) -> Mapping[str, NodeUse]:
        async with self._looking:
            if time.monotonic() - self._taken > FRESH:
                (node,) = await self._node.nodes()
                if time.monotonic() - self._idle[0] > OLD:
                    self._idle = (time.monotonic(), idle_seconds(slurp("/proc/stat")) or 0.0)
                    await asyncio.sleep(SHORT)
                self._last = {node.name: await asyncio.to_thread(self._look, node)}
                self._taken = time.monotonic()
        return self._last

    def _look(self, node: Node) -> NodeUse:
        return NodeUse(
            cpus=self._busy_cpus(),
            memory=memory_in_use(slurp("/proc/meminfo")),
            disk=_disk_in_use(self._folder),
            gpus=self._gpus.use(node.gpus),
        )

    def _busy_cpus(self) -> PartInUse | None:
        text, now = slurp("/proc/stat"), time.monotonic()
        idle, count = idle_seconds(text), cpu_count(text)
        if idle is None:
            return None
        (before, idle_before), self._idle = self._idle, (now, idle)
        share = (idle - idle_before) / (now - before) if now > before else 0.0
        return PartInUse(used=min(max(count - share, 0.0), float(count)), size=float(count))


def idle_seconds(text: bytes) -> float | None:
    """The seconds that all CPUs together did nothing since the start, by /proc/stat; None if unreadable."""
    fields = text.partition(b"\n")[0].split()
    return (int(fields[4]) + int(fields[5])) / TICKS if len(fields) > 5 and fields[0] == b"cpu" else None


def cpu_count(text: bytes) -> int:
    return sum(line[:3] == b"cpu" and line[3:4].isdigit() for line in text.splitlines())


def memory_in_use(text: bytes) -> PartInUse | None:
    """What programs and the kernel need, by /proc/meminfo: caches that can be given back do not count."""
    sizes = {line.partition(b":")[0]: line.split()[1] for line in text.splitlines() if len(line.split()) > 1}
    if b"MemTotal" not in sizes or b"MemAvailable" not in sizes:
        return None
    total, available = (int(sizes[name]) * 1024 for name in (b"MemTotal", b"MemAvailable"))
    return PartInUse(used=total - available, size=total)


def _disk_in_use(folder: Path) -> PartInUse | None:
    try:
        disk = os.statvfs(folder)
    except OSError:
        return None
    # As `df` counts: what only root may fill is no part of it.
    used = (disk.f_blocks - disk.f_bfree) * disk.f_frsize
    return PartInUse(used=used, size=used + disk.f_bavail * disk.f_frsize)
