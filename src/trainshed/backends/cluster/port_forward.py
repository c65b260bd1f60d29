"""A connection to a port of a pod through the API server, for servers that pods' addresses do not lead to.

`channel.py` calls it. It speaks the port-forward protocol that every Kubernetes serves over WebSockets: each
message begins with the number of its channel; the first one of a channel has the port.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from httpx2.websockets import HTTPXWSException

from trainshed.backends.cluster.api import ClusterApi

_DATA, _ERROR = 0, 1
# How a session over WebSockets breaks; errors of its tasks come as a group.
BROKEN = (httpx2.HTTPError, HTTPXWSException, OSError, EOFError, ExceptionGroup)


class _WebSocketTransport(asyncio.Transport):
    """Writes of a StreamWriter as messages of a WebSocket, in their order."""

    def __init__(self) -> None:
        super().__init__()
        self._closing = False
        self.waiting: asyncio.Queue[bytes] = asyncio.Queue()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.waiting.put_nowait(bytes(data))

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        self._closing = True


@asynccontextmanager
async def forwarded(
    api: ClusterApi, pod: str, port: int
) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Raise one of BROKEN where the connection cannot be made. The reader ends when the other side does."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    transport = _WebSocketTransport()
    writer = asyncio.StreamWriter(transport, asyncio.StreamReaderProtocol(reader), reader, loop)
    try:
        async with api.websocket(pod, "portforward", {"ports": str(port)}) as session:
            tasks = [
                asyncio.create_task(_receive(session, reader)),
                asyncio.create_task(_send(session, transport)),
            ]
            try:
                yield reader, writer
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
    finally:
        writer.close()


async def _receive(session: Any, reader: asyncio.StreamReader) -> None:
    begun: set[int] = set()
    with contextlib.suppress(*BROKEN):  # however it ends, the reader is told that it has
        while True:
            message: bytes = await session.receive_bytes()
            channel, data = message[0], message[1:]
            if channel not in begun:  # the port, which is known
                begun.add(channel)
                data = data[2:]
            if channel == _ERROR and data:
                break
            if data:
                reader.feed_data(data)
    reader.feed_eof()


async def _send(session: Any, transport: _WebSocketTransport) -> None:
    while True:
        await session.send_bytes(bytes((_DATA,)) + await transport.waiting.get())
