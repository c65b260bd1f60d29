"""What every pod uses, told by its init.

The collector calls it. Each pod has one connection to its service `stats` (pod_stats.h), held as long as
somebody keeps asking; a question is one byte, and nothing is started in the pod for it. A pod that does not
answer in time is left out of that sample, and the others wait less for it the next time. The network's
numbers include the output that the init sends here.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import replace

from trainshed.backends.cluster.pod_connection import ChannelBroken
from trainshed.backends.cluster.pod_doors import PodDoors
from trainshed.backends.cluster.run import PodRun
from trainshed.backends.machine.proc import RisingSum
from trainshed.core.metrics import GpuUse, Usage
from trainshed.core.names import RunKey

_PATIENCE, _IMPATIENCE = 5.0, 0.3  # seconds for an answer: the first time, and after one that did not come
_AGAIN = 10.0  # seconds after which a pod that could not be reached is tried again
_IDLE = 30.0  # seconds without a question after which the connection is closed
_MOST_LINES = 100
_MEBIBYTE = 1 << 20


class PodGauge:
    """The connection for the numbers of one run."""

    def __init__(self, doors: PodDoors, run: PodRun) -> None:
        self._doors, self._run = doors, run
        self._sums = [RisingSum() for _ in range(5)]
        self._asked = asyncio.Event()
        self._answer: asyncio.Future[Usage | None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_late = False
        self._not_before = float("-inf")  # of the event loop's time

    async def ask(self) -> Usage | None:
        """What the run uses now; None where its pod does not tell in time."""
        loop = asyncio.get_running_loop()
        if loop.time() < self._not_before:
            return None
        self._answer = loop.create_future()
        self._asked.set()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._hold())
        usage = None
        with contextlib.suppress(TimeoutError):
            usage = await asyncio.wait_for(self._answer, _IMPATIENCE if self._is_late else _PATIENCE)
        self._is_late = usage is None
        return usage

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _hold(self) -> None:
        try:
            purpose = "stats gpus" if self._run.gpus else "stats"
            async with self._doors.connect(self._run, purpose) as (reader, writer):
                while True:
                    await asyncio.wait_for(self._asked.wait(), _IDLE)
                    self._asked.clear()
                    writer.write(b"\n")
                    self._tell(self._rising(parse_usage(await _answer(reader))))
        except TimeoutError:
            return  # nobody asks any more
        except (ChannelBroken, ValueError):
            self._not_before = asyncio.get_running_loop().time() + _AGAIN
        finally:
            self._tell(None)

    def _tell(self, usage: Usage | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(usage)

    def _rising(self, usage: Usage) -> Usage:
        names = ("cpu_seconds", "read_bytes", "written_bytes", "received_bytes", "sent_bytes")
        values = [total.take(getattr(usage, name)) for name, total in zip(names, self._sums, strict=True)]
        cpu, *counts = values
        return replace(usage, cpu_seconds=cpu, **dict(zip(names[1:], map(int, counts), strict=True)))


class PodStats:
    """Implements `core.stats_port.Stats`: it asks all pods at once, one sample at a time."""

    def __init__(self, doors: PodDoors) -> None:
        self._doors = doors
        self._gauges: dict[RunKey, PodGauge] = {}
        self._looking = asyncio.Lock()

    async def sample(self) -> Mapping[RunKey, Usage]:
        async with self._looking:
            running = {run.key: run for run in self._doors.running()}
            ended = [self._gauges.pop(key) for key in self._gauges.keys() - running.keys()]
            await asyncio.gather(*(gauge.close() for gauge in ended))
            for key, run in running.items():
                if key not in self._gauges:
                    self._gauges[key] = PodGauge(self._doors, run)
            usages = await asyncio.gather(*(self._gauges[key].ask() for key in running))
        return {key: usage for key, usage in zip(running, usages, strict=True) if usage is not None}

    async def close(self) -> None:
        await asyncio.gather(*(gauge.close() for gauge in self._gauges.values()))


async def _answer(reader: asyncio.StreamReader) -> list[str]:
    lines: list[str] = []
    while len(lines) < _MOST_LINES:
        line = await reader.readline()
        if not line.endswith(b"\n"):
            raise ChannelBroken("it ended in the middle of an answer")
        if line == b"end\n":
            return lines
        lines.append(line.decode(errors="replace"))
    raise ChannelBroken("its answer does not end")


def parse_usage(lines: list[str]) -> Usage:
    """An answer of the service, as pod_stats.h writes it. Pure. ValueError where it is something else."""
    numbers: dict[str, list[int]] = {}
    gpus: list[GpuUse] = []
    for line in lines:
        word, _, rest = line.strip().partition(" ")
        if word == "gpu":
            gpus += _gpu(rest)
        else:
            numbers[word] = [int(number) for number in rest.split()]
    (taken,), (cpu,), (memory,) = (numbers.get(word, [0]) for word in ("at", "cpu", "memory"))
    read, written = numbers.get("disk", [0, 0])
    received, sent = numbers.get("network", [0, 0])
    processes, threads = numbers.get("processes", [0, 0])
    return Usage(
        taken=taken / 1e9,
        cpu_seconds=cpu / 1e9,
        memory=memory,
        read_bytes=read,
        written_bytes=written,
        received_bytes=received,
        sent_bytes=sent,
        processes=processes,
        threads=threads,
        gpus=tuple(gpus),
    )


def _gpu(text: str) -> list[GpuUse]:
    """A line of nvidia-smi; nothing where the device does not tell: it writes [N/A] then."""
    fields = [field.strip() for field in text.split(",")]
    if len(fields) != 4 or not all(field.isdigit() for field in fields):
        return []
    device, percent, used, size = fields
    use = GpuUse(
        device=device,
        share=int(percent) / 100,
        memory=int(used) * _MEBIBYTE,
        memory_size=int(size) * _MEBIBYTE,
    )
    return [use]
