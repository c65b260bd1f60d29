"""The port to shells inside running replicas.

`api/shells.py` and `service/shells.py` call it; the backends implement it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from trainshed.core.names import RunKey


@dataclass(frozen=True, slots=True)
class Screen:
    rows: int = 24
    columns: int = 80


class Terminal(Protocol):
    """A program that runs beside the program of a run, with its input and output.

    1. read gives what it printed, in order; nothing once all of it is gone and read.
    2. what is written arrives as typed: Ctrl-C is a byte that the terminal turns into a signal.
    3. wait gives its exit code, 128 and more for a signal, once it has ended.
    4. close hangs up: nothing that was started in it stays.
    5. it ends with its replica.
    6. finish says that nothing more is typed: the end of its input, on a terminal as Ctrl-D.
    7. a caller that does not read costs no memory: the program waits.
    """

    async def read(self) -> bytes: ...

    async def write(self, data: bytes) -> None: ...

    async def finish(self) -> None: ...

    async def resize(self, screen: Screen) -> None: ...

    async def wait(self) -> int: ...

    async def close(self) -> None: ...


class Shells(Protocol):
    """An ability of a backend: shells beside its runs."""

    async def open_shell(self, key: RunKey, command: Sequence[str], screen: Screen | None) -> Terminal:
        """Start a program beside the one of a run, with the same files, environment, network and limits.

        Without a command: the best shell there is. Without a screen: pipes instead of a terminal, and bytes
        pass unchanged. NotFound where the run is not alive. A program that cannot be started ends with 127
        or 126 and says why.
        """
        ...
