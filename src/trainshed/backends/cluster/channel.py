"""PodChannel: the connection to the init of one pod: its output comes in, orders go out.

The run supervisor opens one for each run. Output is appended to the replica's files; how much of it is there
says where the next connection goes on, so nothing is lost or written twice however often it breaks. Where
pods cannot be reached by their address, it goes through the API server. pod_init.c has the other end.
"""

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from trainshed.backends.cluster.api import ClusterApi
from trainshed.backends.cluster.pod import PORT
from trainshed.backends.cluster.port_forward import BROKEN, forwarded
from trainshed.core.ports import Sink
from trainshed.regular_file import open_regular

_CONNECT = 2.0  # seconds for a pod to answer on its address
_HEAD = 5  # bytes: a letter, and the length in four
_MOST_FRAME = 1 << 20
_SILENT, _BETWEEN, _PROBES = 3, 2, 3  # seconds, seconds, count: a machine that is gone is noticed in 9 s


class ChannelBroken(Exception):
    """The pod cannot be reached, or does not speak as an init does."""


class PodChannel:
    def __init__(
        self,
        api: ClusterApi,
        pod: str,
        token: str,
        output: Sink,
        base: tuple[int, int],
        *,
        port: int = PORT,
    ) -> None:
        self._api, self._pod, self._token, self._port = api, pod, token, port
        self._output, self._base = output, base
        self._writer: asyncio.StreamWriter | None = None

    @property
    def is_open(self) -> bool:
        return self._writer is not None

    def order(self, word: str) -> bool:
        """Say go, term, kill or done; whether there was somebody to hear it."""
        if self._writer is None:
            return False
        self._writer.write(f"{word}\n".encode())
        return True

    def hang_up(self) -> None:
        if self._writer is not None:
            self._writer.close()

    async def follow(self, address: str, record: Callable[[bytes], None]) -> None:
        """Take output until the connection ends; `record` is called with what the init has written so far."""
        try:
            async with self._connected(address) as (reader, writer):
                await self._take(reader, writer, record)
        except BROKEN as error:
            raise ChannelBroken(str(error) or type(error).__name__) from error

    async def _take(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, record: Callable[[bytes], None]
    ) -> None:
        files = [self._open(self._output.stdout), self._open(self._output.stderr)]
        try:
            out, err = (os.fstat(file).st_size - base for file, base in zip(files, self._base, strict=True))
            writer.write(f"{self._token} {out} {err}\n".encode())
            self._writer = writer
            while True:
                head = await reader.readexactly(_HEAD)
                kind, size = head[:1], int.from_bytes(head[1:])
                if size > _MOST_FRAME:
                    raise ChannelBroken(f"a frame of {size} bytes")
                data = await reader.readexactly(size)
                if kind == b"r":
                    record(data)
                else:
                    _append(files[kind == b"e"], data)
        finally:
            self._writer = None
            for file in files:
                os.close(file)

    @asynccontextmanager
    async def _connected(
        self, address: str
    ) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        try:
            async with asyncio.timeout(_CONNECT):
                reader, writer = await asyncio.open_connection(address, self._port)
        except ConnectionRefusedError as error:
            raise ChannelBroken("its init does not listen") from error
        except (OSError, TimeoutError):
            async with forwarded(self._api, self._pod, self._port) as streams:
                yield streams
            return
        try:
            _notice_silence(writer.get_extra_info("socket"))
            yield reader, writer
        finally:
            writer.close()

    @staticmethod
    def _open(path: str) -> int:
        try:
            return open_regular(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        except OSError as error:
            raise ChannelBroken(f"{path} cannot be written: {error}") from error


def _append(file: int, data: bytes) -> None:
    # Not in a thread: one that is left behind could write after the next connection began to count.
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _notice_silence(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _SILENT)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _BETWEEN)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _PROBES)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
