"""Connections to the init of a pod: by the pod's address or, where that leads nowhere, by the API server.

Whoever wants something of an init opens one: `channel.py` for output and orders, others for the services of
pod_init.c. The first line says who asks and what for. It never tries again: the caller knows when.
"""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from trainshed.backends.cluster.api import ClusterApi
from trainshed.backends.cluster.pod import PORT
from trainshed.backends.cluster.port_forward import BROKEN, forwarded

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_CONNECT = 2.0  # seconds for a pod to answer on its address
_SILENT, _BETWEEN, _PROBES = 3, 2, 3  # seconds, seconds, count: a machine that is gone is noticed in 9 s


class ChannelBroken(Exception):
    """The pod cannot be reached, or does not speak as an init does."""


@dataclass(slots=True)
class PodRoute:
    """What is known of the way to a pod. Many connections are made to one, and each look takes seconds."""

    is_forwarded: bool = False  # its address led nowhere, and the API server did


@dataclass(frozen=True, slots=True, kw_only=True)
class PodDoor:
    """How one pod is reached, but for its address: that is known once it runs."""

    api: ClusterApi
    pod: str
    token: str  # that its init asks for
    port: int = PORT
    route: PodRoute = field(default_factory=PodRoute)

    @asynccontextmanager
    async def connect(self, address: str, purpose: str) -> AsyncGenerator[Streams]:
        """A connection whose purpose the init knows. ChannelBroken where it cannot be made, or breaks."""
        try:
            async with self._streams(address) as (reader, writer):
                writer.write(f"{self.token} {purpose}\n".encode())
                yield reader, writer
        except BROKEN as error:
            raise ChannelBroken(str(error) or type(error).__name__) from error

    @asynccontextmanager
    async def _streams(self, address: str) -> AsyncGenerator[Streams]:
        try:
            if self.route.is_forwarded:
                raise TimeoutError
            async with asyncio.timeout(_CONNECT):
                reader, writer = await asyncio.open_connection(address, self.port)
        except ConnectionRefusedError as error:
            raise ChannelBroken("its init does not listen") from error
        except (OSError, TimeoutError):
            self.route.is_forwarded = False  # until it has worked
            async with forwarded(self.api, self.pod, self.port) as streams:
                self.route.is_forwarded = True
                yield streams
            return
        try:
            _notice_silence(writer.get_extra_info("socket"))
            yield reader, writer
        finally:
            writer.close()


def _notice_silence(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _SILENT)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _BETWEEN)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _PROBES)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
