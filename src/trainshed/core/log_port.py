"""The ports of the log store. `logs/` implements both; the services and the loops use them.

Its numbered promises are tests in `tests/contracts/log_store.py`.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Protocol

from trainshed.core.log_lines import FindQuery, FindStep, LinePage, LineQuery
from trainshed.core.logs import Chunk, Line, LogQuery, OutputQuery
from trainshed.core.names import ReplicaName
from trainshed.core.ports import Sink


class LogStore(Protocol):
    """Keeps what replicas print.

    1. the time and place of a line are fixed once given out: asked twice, the answer is the same.
    2. lines come in one total order, (at_ns, insert_id), insert ids unique and sorted as text.
    3. any bytes go in; text comes out; no line is longer than 256 KiB (longer ones come in pieces).
    4. nothing is lost by kill -9; lines printed while no server ran are there afterwards.
    5. a job over its quota loses the middle of its output, and a marker line says how much.
    6. memory does not grow with the size of a log.
    """

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    def sink(self, name: ReplicaName) -> Sink:
        """The files a replica writes into; made with their folder where missing."""
        ...

    async def read(self, job: str, query: LogQuery) -> tuple[Line, ...]:
        """At most query.limit lines, in order; fewer, never none, where they are very long."""
        ...

    def follow(self, job: str, query: LogQuery) -> AsyncIterator[tuple[Line, ...]]:
        """Batches as they come, oldest first; ends once finish(job) was called and all is read."""
        ...

    def output(self, job: str, query: OutputQuery, *, follow: bool) -> AsyncIterator[tuple[Chunk, ...]]:
        """The raw bytes, in the order of their lines; together they are every file, byte for byte.

        A reader that continues after the `end` of a chunk misses no byte and gets none twice, even
        after a restart.
        """
        ...

    async def finish(self, job: str) -> None:
        """No more output will come: return a last line without its end, stop watching, end the followers."""
        ...

    async def remove(self, job: str) -> None: ...

    async def jobs(self) -> frozenset[str]:
        """Every job of which there is output."""
        ...

    def has_room(self) -> bool:
        """Whether a program that prints now can write; False where the disk of the logs is full."""
        ...


class NumberedLogs(Protocol):
    """The lines of `LogStore.read` by their numbers, which begin at 1 and follow its order."""

    async def lines(self, job: str, query: LineQuery) -> LinePage:
        """The lines of a query."""
        ...

    def find(self, job: str, query: FindQuery) -> AsyncGenerator[FindStep]:
        """The lines that match, with their numbers, as they come. Closing the generator ends the search."""
        ...

    def growth(self, job: str) -> AsyncGenerator[None]:
        """Yields at once, and again whenever there is more to read; ends as `follow` does."""
        ...
