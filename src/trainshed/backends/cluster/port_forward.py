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
_MOST_WAITING = 1 << 18  # bytes written and not sent
_MOST_MESSAGE = 1 << 15  # bytes
# How a session over WebSockets breaks; errors of its tasks come as a group.
BROKEN = (httpx2.HTTPError, HTTPXWSException, OSError, EOFError, ExceptionGroup)


class _WebSocketTransport(asyncio.Transport):
    """Writes of a StreamWriter as messages of a WebSocket, in their order.

    It holds back whoever writes faster than messages go out, and whoever sends faster than the reader reads.
    """

    def __init__(self, protocol: asyncio.StreamReaderProtocol) -> None:
        super().__init__()
        self._closing = False
        self._protocol = protocol
        self._waiting: asyncio.Queue[bytes] = asyncio.Queue()
        self._size = 0  # bytes that wait
        self.may_receive = asyncio.Event()
        self.may_receive.set()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._size <= _MOST_WAITING < self._size + len(data):
            self._protocol.pause_writing()
        self._size += len(data)
        self._waiting.put_nowait(bytes(data))

    async def next(self) -> bytes:
        return await self._waiting.get()

    def sent(self, data: bytes) -> None:
        is_held = self._size > _MOST_WAITING
        self._size -= len(data)
        if is_held and self._size <= _MOST_WAITING:
            self._protocol.resume_writing()

    def pause_reading(self) -> None:
        self.may_receive.clear()

    def resume_reading(self) -> None:
        self.may_receive.set()

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
    protocol = asyncio.StreamReaderProtocol(reader)
    transport = _WebSocketTransport(protocol)
    protocol.connection_made(transport)
    writer = asyncio.StreamWriter(transport, protocol, reader, loop)
    try:
        async with api.websocket(pod, "portforward", {"ports": str(port)}) as session:
            tasks = [
                asyncio.create_task(_receive(session, reader, transport, protocol)),
                asyncio.create_task(_send(session, transport, protocol)),
            ]
            try:
                yield reader, writer
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
    finally:
        writer.close()


async def _receive(
    session: Any,
    reader: asyncio.StreamReader,
    transport: _WebSocketTransport,
    protocol: asyncio.StreamReaderProtocol,
) -> None:
    begun: set[int] = set()
    with contextlib.suppress(*BROKEN):  # however it ends, the reader is told that it has
        while True:
            await transport.may_receive.wait()
            message: bytes = await session.receive_bytes()
            channel, data = message[0], message[1:]
            if channel not in begun:  # the port, which is known
                begun.add(channel)
                data = data[2:]
            if channel == _ERROR and data:
                break
            if data:
                reader.feed_data(data)
    protocol.connection_lost(None)  # who reads is at the end, who waits to write may not


async def _send(session: Any, transport: _WebSocketTransport, protocol: asyncio.StreamReaderProtocol) -> None:
    with contextlib.suppress(*BROKEN):
        while True:
            data = await transport.next()
            for start in range(0, len(data), _MOST_MESSAGE):
                await session.send_bytes(bytes((_DATA,)) + data[start : start + _MOST_MESSAGE])
            transport.sent(data)
    protocol.connection_lost(None)
