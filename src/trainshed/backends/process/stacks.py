"""Reads the stacks of all processes of runs: by looking into them or, where that is not allowed, by asking.

People and the hang watch ask ProcessStacks, which looks in a thread. It takes one run after the other, within
a time for all of them; `close` ends it early. It never stops, slows or changes a program.
"""

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from trainshed.backends.machine import spy
from trainshed.backends.machine.proc import slurp
from trainshed.backends.machine.processes import Process
from trainshed.backends.machine.stacks import ALL, NO_TIME, Describer
from trainshed.backends.process import ask, net
from trainshed.backends.process.run import ProcessRun, ProcessRuns
from trainshed.core.jobs.replica import Sight
from trainshed.core.jobs.stacks import StackDump, ThreadStack
from trainshed.core.names import RunKey


class ProcessStacks:
    """Implements `core.ports.Stacks` for the runs of a backend."""

    def __init__(self, runs: ProcessRuns) -> None:
        self._runs, self._dumper = runs, Dumper()
        self._dumping = asyncio.Lock()

    @property
    def asks(self) -> bool:
        """Whether a program has to tell its stacks itself, because nobody here may look into it."""
        return self._dumper.spy is None

    async def stacks(self, keys: Sequence[RunKey]) -> Mapping[RunKey, StackDump]:
        runs = [run for key in keys if (run := self._runs.get(key.name.job, {}).get(key)) is not None]
        async with self._dumping:
            alive = [run for run in runs if run.sight is Sight.RUNNING]
            return await asyncio.to_thread(self._dumper.dump, alive) if alive else {}

    def close(self) -> None:
        self._dumper.close()


class Dumper(Describer):
    def dump(self, runs: Iterable[ProcessRun]) -> dict[RunKey, StackDump]:
        deadline = time.monotonic() + ALL
        return {run.key: self._dump(run, deadline) for run in runs}

    def _dump(self, run: ProcessRun, deadline: float) -> StackDump:
        def look(pid: int, patience: float) -> tuple[tuple[ThreadStack, ...], str]:
            threads, fault = self._threads(caught[pid], run, patience)
            return tuple(_inside(thread, run.path.parent / "work") for thread in threads), fault

        if self.is_over(deadline):
            return StackDump(fault=NO_TIME)
        oldest_first = sorted(
            net.catch(run.trace(run.read())), key=lambda process: (process.start, process.pid)
        )
        caught = {process.pid: process for process in oldest_first}
        return self.describe_all(list(caught), look, deadline)

    def _threads(
        self, process: Process, run: ProcessRun, patience: float
    ) -> tuple[tuple[ThreadStack, ...], str]:
        if self.spy is None:
            threads, fault = ask.ask(process, run.path, patience)
            return tuple(
                replace(thread, waits=_waits(process.pid)) if thread.is_main else thread for thread in threads
            ), fault
        return spy.spy_on(self.spy, process.pid, patience)


def _inside(thread: ThreadStack, work: Path) -> ThreadStack:
    """Files of the working directory by their place in it: each replica has a copy of the same ones."""
    given, real = f"{work}/", f"{work.resolve()}/"
    frames = (
        replace(frame, file=frame.file.removeprefix(given).removeprefix(real)) for frame in thread.frames
    )
    return replace(thread, frames=tuple(frames))


def _waits(pid: int) -> bool:
    stat = slurp(f"/proc/{pid}/stat")
    return stat[stat.rfind(b")") + 2 :][:1] in (b"S", b"D")
