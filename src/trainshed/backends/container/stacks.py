"""Where the programs in containers are: from outside, as those of the machine's own processes.

Nothing runs inside a container for it. Where nobody here may look into a process, only the kernel's account
of it is told.
"""

import asyncio
import time
from collections.abc import Iterable, Mapping

from trainshed.backends.container.run import ContainerRun
from trainshed.backends.container.stats import members
from trainshed.backends.machine import spy
from trainshed.backends.machine.stacks import ALL, Describer
from trainshed.core.names import RunKey
from trainshed.core.replica import Sight
from trainshed.core.stacks import StackDump, ThreadStack


class ContainerStacks:
    """Stacks of the runs of a backend: looked at in a thread, one look at a time."""

    def __init__(self) -> None:
        self._describer = Describer()
        self._looking = asyncio.Lock()

    def close(self) -> None:
        self._describer.close()

    async def dump(self, runs: Iterable[ContainerRun]) -> Mapping[RunKey, StackDump]:
        async with self._looking:
            alive = [run for run in runs if run.sight is Sight.RUNNING]
            return await asyncio.to_thread(self._dump, alive) if alive else {}

    def _dump(self, runs: list[ContainerRun]) -> dict[RunKey, StackDump]:
        deadline = time.monotonic() + ALL
        result: dict[RunKey, StackDump] = {}
        for run in runs:
            if pid := run.holder():
                result[run.key] = self._describer.describe_all(members(pid), self._look, deadline)
        return result

    def _look(self, pid: int, patience: float) -> tuple[tuple[ThreadStack, ...], str]:
        if self._describer.spy is None:
            return (), "Its Python stacks are not told: py-spy is not here, or may not look into processes."
        return spy.spy_on(self._describer.spy, pid, patience)
