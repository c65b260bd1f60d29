"""Ends what would go on as long as the server does, when that begins to stop: streams, and calls that wait.

`api/app.py` puts streams and reading calls through it; `serving/serve.py` begins the end. So nobody has to
break them off after a grace. Uploads, downloads and what changes something have that grace, to be whole.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Generator

from trainshed.core.errors import Unavailable


class ServerEnds(Unavailable):
    """The server stops while a call waits for something."""

    def __init__(self) -> None:
        super().__init__("The server is ending; ask again when it is back.")


class ServerEnd:
    def __init__(self) -> None:
        self._has_begun = False
        self._waiting: set[asyncio.Task[object]] = set()

    def begin(self) -> None:
        self._has_begun = True
        for task in self._waiting:
            task.cancel()

    @contextlib.contextmanager
    def waiting(self) -> Generator[None]:
        """What waits in the context is given up once the server ends. Raises ServerEnds."""
        if self._has_begun:
            raise ServerEnds
        task = asyncio.current_task()
        assert task is not None
        self._waiting.add(task)
        try:
            yield
        except asyncio.CancelledError:
            if not self._has_begun:  # others cancelled it
                raise
            task.uncancel()
            raise ServerEnds from None
        finally:
            self._waiting.discard(task)

    async def chunks(self, source: AsyncIterator[bytes], *, shows_end: bool) -> AsyncGenerator[bytes]:
        """The same stream, until the server ends. ServerEnds then, where it would look whole."""
        try:
            while True:
                with self.waiting():
                    data = await anext(source, None)
                if data is None:
                    return
                yield data
        except ServerEnds:
            if not shows_end:
                raise
        finally:
            if isinstance(source, AsyncGenerator):
                await source.aclose()
