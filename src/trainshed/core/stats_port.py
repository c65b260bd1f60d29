"""The ports to what runs and machines do: abilities of a backend. Each numbered promise has a contract test.

Backends implement them; `control/collector.py`, `control/hangs.py` and services call them.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from trainshed.core.jobs.stacks import StackDump
from trainshed.core.metrics import Usage
from trainshed.core.names import RunKey
from trainshed.core.queue.node_use import NodeUse


class Stats(Protocol):
    """An ability of a backend: what its runs use. Its capabilities name what is measured.

    1. sample shows every run that is alive, its whole process tree, and no other.
    2. counters never run backwards while a run lives, also when its children end.
    3. what is not among the declared measures is None (no GPUs); a run without GPUs has none either.
    4. nothing blocks the event loop.
    """

    async def sample(self) -> Mapping[RunKey, Usage]: ...


class Stacks(Protocol):
    """An ability of a backend: the stacks of its runs.

    1. stacks shows those of the given runs that are alive, each with its whole process tree, and no other.
    2. a program does not notice: it is not ended, not stopped, and prints nothing because of it.
    3. it is bounded in time and size; the fault of a StackDump says what is missing.
    4. nothing blocks the event loop; asked by many at once, it is done one after the other.
    """

    async def stacks(self, keys: Sequence[RunKey]) -> Mapping[RunKey, StackDump]: ...


class NodeStats(Protocol):
    """An ability of a backend: what the machines of its nodes do.

    1. use tells of every node of the backend whose numbers are known now, by its name.
    2. nothing blocks the event loop; asked by many at once, the machine is looked at once.
    """

    async def use(self) -> Mapping[str, NodeUse]: ...
