"""Gives up what would go on when that has ended on which it stands: streams, and calls that wait.

`api/lasting.py` has an `Ending` for the rights of each call. `api/app.py` has one for the server, which
`serving/serve.py` begins, so that nobody has to break streams and reading calls off after a grace. Uploads,
downloads and what changes something have that grace, to be whole.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import AbstractContextManager

from trainshed.core.errors import TrainshedError, Unavailable


class ServerEnds(Unavailable):
    """The server is ending; ask again when it is back."""


class Ending:
    """`kind` is raised where something is given up."""

    def __init__(self, kind: type[TrainshedError]) -> None:
        self.has_begun = False
        self._kind, self._message = kind, ""
        self._waiting: set[asyncio.Task[object]] = set()

    def begin(self, message: str = "") -> None:
        """`message`: of the errors; empty: what their kind says."""
        self.has_begun, self._message = True, message
        for task in self._waiting:
            task.cancel()

    @contextlib.contextmanager
    def waiting(self) -> Generator[None]:
        """What waits in the context is given up once the end has begun."""
        if self.has_begun:
            raise self._kind(self._message)
        task = asyncio.current_task()
        assert task is not None
        before = task.cancelling()
        self._waiting.add(task)
        try:
            yield
        except asyncio.CancelledError:
            if not self.has_begun or task.cancelling() > before + 1:  # others cancelled it, too
                raise
        finally:
            self._waiting.discard(task)
            if self.has_begun:
                task.uncancel()
        if self.has_begun:
            raise self._kind(self._message)

    async def chunks(
        self,
        source: AsyncIterator[bytes],
        *,
        shows_end: bool,
        during: AbstractContextManager[None] | None = None,
    ) -> AsyncGenerator[bytes]:
        """The same stream, until the end. It raises then where it would look whole."""
        try:
            with during or contextlib.nullcontext():
                while True:
                    with self.waiting():
                        data = await anext(source, None)
                    if data is None:
                        return
                    yield data
        except self._kind:
            if not shows_end:
                raise
        finally:
            if isinstance(source, AsyncGenerator):
                await source.aclose()
