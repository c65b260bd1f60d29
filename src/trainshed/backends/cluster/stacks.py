"""The stacks of all processes of a pod: Python's by py-spy, which is brought there, others by the kernel.

People and the hang watch call it. The pod's init lists its processes and runs our own py-spy beside the
program (pod_stacks.h), so the image needs nothing for it. py-spy has the program's rights and no more: where
the node's kernel lets no process look into another, the fault of a dump says so. It never stops, slows or
changes a program.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trainshed.backends.cluster.pod import RUN_FOLDER
from trainshed.backends.cluster.pod_connection import ChannelBroken
from trainshed.backends.cluster.pod_doors import PodDoors
from trainshed.backends.cluster.pod_frames import read_frames
from trainshed.backends.cluster.run import PodRun
from trainshed.backends.cluster.shell import PodTerminal
from trainshed.backends.machine import spy
from trainshed.backends.machine.stacks import ALL, NO_TIME, describe_texts, few
from trainshed.core.jobs.replica import Sight
from trainshed.core.jobs.stacks import MOST_PROCESSES, ProcessStack, StackDump, ThreadStack
from trainshed.core.names import RunKey

_MOST_TEXT = 16 << 20  # bytes that py-spy may print
_ONE = 8.0  # seconds for one process: py-spy has the CPUs of the pod, which may be few
_AT_ONCE = 8  # pods that are looked at together
_PROGRAM = "py-spy"
_NOT_HERE = "Its Python stacks are not told: py-spy is not installed beside the server."
_FORBIDDEN = "The kernel of its node may forbid it (kernel.yama.ptrace_scope)."


@dataclass(frozen=True, slots=True)
class PodProcess:
    """A process of a pod."""

    stack: ProcessStack  # without threads
    is_python: bool


class PodStacks:
    """Implements `core.stats_port.Stacks`."""

    def __init__(self, doors: PodDoors) -> None:
        self._doors = doors
        self._looking = asyncio.Lock()
        self._some = asyncio.Semaphore(_AT_ONCE)

    async def stacks(self, keys: Sequence[RunKey]) -> Mapping[RunKey, StackDump]:
        async with self._looking:
            asked_for = [self._doors.find(key, Sight.RUNNING) for key in dict.fromkeys(keys)]
            runs = [run for run in asked_for if run is not None]
            deadline = asyncio.get_running_loop().time() + ALL
            dumps = await asyncio.gather(*(self._dump(run, deadline) for run in runs))
        return {run.key: dump for run, dump in zip(runs, dumps, strict=True) if run.alive}

    async def _dump(self, run: PodRun, deadline: float) -> StackDump:
        seen: list[ProcessStack] = []
        faults: list[str] = []
        try:
            async with self._some, asyncio.timeout_at(deadline):
                processes = await self._processes(run)
                seen += [process.stack for process in processes[:MOST_PROCESSES]]
                if len(processes) > MOST_PROCESSES:
                    faults.append(f"{len(processes) - MOST_PROCESSES} more processes are not shown.")
                await self._look(run, processes[:MOST_PROCESSES], seen, faults)
        except TimeoutError:
            faults.append(NO_TIME)
        except ChannelBroken as broken:
            faults.append(f"Its pod cannot be reached: {broken}.")
        return StackDump(processes=tuple(seen), fault=few(faults))

    async def _look(
        self, run: PodRun, processes: list[PodProcess], seen: list[ProcessStack], faults: list[str]
    ) -> None:
        """Add the threads of Python's processes to what was seen of them."""
        if not any(process.is_python for process in processes):
            return
        program = spy.find_spy()
        if program is None:
            faults.append(_NOT_HERE)
            return
        await self._bring(run, program)
        for number, process in enumerate(processes):
            if process.is_python:
                threads, fault = await self._spy_on(run, process.stack.pid)
                seen[number] = replace(process.stack, threads=threads)
                faults += [fault] if fault else []

    async def _processes(self, run: PodRun) -> list[PodProcess]:
        result: list[PodProcess] = []
        async with self._doors.connect(run, "processes") as (reader, _):
            async for letter, data in read_frames(reader):
                if letter != b"p":
                    raise ChannelBroken("it does not tell its processes")
                if (process := parse_process(data)) is not None:
                    result.append(process)
        return sorted(result, key=lambda process: process.stack.pid)

    async def _bring(self, run: PodRun, program: str) -> None:
        """Once for each pod and server: it stays in the pod's own folder."""
        if run.has_spy:
            return
        data = await asyncio.to_thread(Path(program).read_bytes)
        async with self._doors.connect(run, f"keep {_PROGRAM} {len(data)}") as (reader, writer):
            writer.write(data)
            await writer.drain()
            if await reader.readline() != b"kept\n":
                raise ChannelBroken("it cannot keep py-spy, which reads the stacks")
        run.has_spy = True

    async def _spy_on(self, run: PodRun, pid: int) -> tuple[tuple[ThreadStack, ...], str]:
        # py-spy reads memory that moves meanwhile: it may fail once and not twice.
        for last in (False, True):
            command = (f"{RUN_FOLDER}/{_PROGRAM}", *spy.DUMP, str(pid))
            terminal = PodTerminal(self._doors, run, command, None)
            try:
                async with asyncio.timeout(_ONE):
                    await terminal.opened()
                    text = await _all_of(terminal)
                    code = await terminal.wait()
            except TimeoutError:
                return (), f"py-spy did not tell the stacks of process {pid} within {_ONE:g} s."
            finally:
                await terminal.close()
            if code == 0 or last:
                break
        threads, fault = spy.read_dump(code, text[max(text.find(b"["), 0) :], text, pid, pid)
        return threads, f"{fault} {_FORBIDDEN}" if "ermission denied" in fault else fault


async def _all_of(terminal: PodTerminal) -> bytes:
    text = b""
    while len(text) < _MOST_TEXT and (piece := await terminal.read()):
        text += piece
    return text


def parse_process(frame: bytes) -> PodProcess | None:
    """A frame of the service `processes`; None where the process was gone. Pure."""
    head, stat, wchan, cmdline = (*frame.split(b"\0", 3), b"", b"", b"")[:4]
    pid, _, is_python = head.partition(b" ")
    stack = describe_texts(int(pid), stat, wchan, cmdline)
    return None if stack is None else PodProcess(stack, is_python == b"1")
