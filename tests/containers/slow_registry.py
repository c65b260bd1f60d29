"""A way to a real registry that is slow, may stop in the middle, and counts which contents went through it.

async with SlowRegistry(podman.registry_ports[1], registry.port, rate=4e6) as slow:
    slow.image("team/x:1")    # the same image as registry.image("team/x:1")
"""

import asyncio
import contextlib
import re
import threading
from collections import Counter
from collections.abc import Iterator
from types import TracebackType

PIECE = 1 << 16
_BLOB = re.compile(rb"GET /v2/[^ ]*/blobs/(sha256:[0-9a-f]{64})")


class SlowRegistry:
    def __init__(self, port: int, target: int, rate: float = 1e9, stop_after: int | None = None) -> None:
        self.port, self._target, self.rate = port, target, rate
        self.stop_after = stop_after  # bytes of one answer after which nothing more comes; 0: not even a head
        self.fetched: Counter[str] = Counter()  # how often each content was asked for
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    def image(self, name: str) -> str:
        return f"127.0.0.1:{self.port}/{name}"

    async def __aenter__(self) -> "SlowRegistry":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        behind: asyncio.StreamWriter | None = None
        with contextlib.suppress(OSError, asyncio.CancelledError):
            there, behind = await asyncio.open_connection("127.0.0.1", self._target)
            await asyncio.gather(self._ask(reader, behind), self._tell(there, writer))
        for end in (writer, behind):
            if end is not None:
                end.close()

    async def _ask(self, reader: asyncio.StreamReader, behind: asyncio.StreamWriter) -> None:
        while piece := await reader.read(PIECE):
            self.fetched.update(found.decode() for found in _BLOB.findall(piece))
            behind.write(piece)
            await behind.drain()
        behind.close()

    async def _tell(self, there: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        count = 0
        while piece := await there.read(PIECE):
            count += len(piece)
            if self.stop_after is not None and count > self.stop_after:
                await asyncio.Event().wait()
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(len(piece) / self.rate)
        writer.close()


@contextlib.contextmanager
def slow_way(port: int, target: int, rate: float) -> Iterator[SlowRegistry]:
    """The same beside a test that has no event loop."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    slow = SlowRegistry(port, target, rate)
    try:
        asyncio.run_coroutine_threadsafe(slow.__aenter__(), loop).result()
        yield slow
    finally:
        asyncio.run_coroutine_threadsafe(slow.__aexit__(None, None, None), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
