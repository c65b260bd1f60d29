"""A shell inside a running replica: the seam between those who type and the backend that has the replica."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from trainshed.core.names import RunKey


@dataclass(frozen=True, slots=True)
class Screen:
    rows: int = 24
    columns: int = 80


class Terminal(Protocol):
    """One program beside the one of a run, and what it is typed into and prints.

    1. read gives what it printed, in order; nothing once all of it is gone and read.
    2. what is written arrives as typed: Ctrl-C is a byte that the terminal turns into a signal.
    3. wait gives its exit code, 128 and more for a signal, once it has ended.
    4. close hangs up: nothing that was started in it stays.
    5. it ends with its replica.
    6. finish says that nothing more is typed: the end of its input, on a terminal as Ctrl-D.
    7. nobody who does not read costs memory: the program waits.
    """

    async def read(self) -> bytes: ...

    async def write(self, data: bytes) -> None: ...

    async def finish(self) -> None: ...

    async def resize(self, screen: Screen) -> None: ...

    async def wait(self) -> int: ...

    async def close(self) -> None: ...


class Shells(Protocol):
    """An ability of a backend whose capabilities say so."""

    async def open_shell(self, key: RunKey, command: Sequence[str], screen: Screen | None) -> Terminal:
        """A program beside the one of a run, seeing what that sees: its files, environment, network, limits.

        Without a command the best shell there is; without a screen it has pipes instead of a terminal, and
        bytes pass as they are. NotFound where the run is not alive. One that cannot be started ends with 127
        or 126 and says why.
        """
        ...
