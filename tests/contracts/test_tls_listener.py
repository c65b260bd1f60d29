"""The listener of a server with TLS: silent and odd connections are closed, and cost others nothing."""

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from trainshed.certificates.home import Certificates
from trainshed.serving import tls_listener
from trainshed.serving.tls_listener import TlsListener

PATIENCE = 30.0


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    made = Certificates(tmp_path / "tls", ("localhost", "127.0.0.1"), os.environ, has_roots=False)
    made.renew()
    return made


class Answerer(asyncio.Protocol):
    """Says a word once something has come, and closes."""

    def __init__(self, word: bytes) -> None:
        self._word = word

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._transport.write(self._word)
        self._transport.close()


@asynccontextmanager
async def listening(certificates: Certificates) -> AsyncIterator[int]:
    """The port of a listener that says which way a connection came."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.server)
    loop = asyncio.get_running_loop()

    async def answer(connection: socket.socket, context: ssl.SSLContext) -> None:
        await loop.connect_accepted_socket(lambda: Answerer(b"tls"), connection, ssl=context)

    async def answer_plain(connection: socket.socket) -> None:
        await loop.connect_accepted_socket(lambda: Answerer(b"plain"), connection)

    place = socket.socket()
    place.bind(("127.0.0.1", 0))
    listener = TlsListener(place, lambda: context, answer, answer_plain)
    listener.open()
    try:
        yield place.getsockname()[1]
    finally:
        await listener.close()


async def heard(port: int, sent: bytes = b"", trusting: ssl.SSLContext | None = None) -> bytes:
    async with asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting)
        writer.write(sent)
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""
        finally:
            writer.close()


async def test_tls_and_plain_http_come_apart_by_their_first_byte(certificates: Certificates) -> None:
    trusting = ssl.create_default_context(cafile=str(certificates.ca))
    async with listening(certificates) as port:
        assert await heard(port, b"GET", trusting) == b"tls"
        assert await heard(port, b"GET / HTTP/1.1\r\n\r\n") == b"plain"
        assert b"tls" not in await heard(port, b"\x16\x03\x01\x00\x05hello")
        assert await heard(port, b"GET", trusting) == b"tls"


async def test_who_says_nothing_is_closed_after_a_while(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_listener, "BEGIN_SECONDS", 0.05)
    async with listening(certificates) as port:
        assert await heard(port) == b""
        assert await heard(port, b"\x16\x03\x01\x02\x00") == b""  # a handshake that does not go on


async def test_of_too_many_that_say_nothing_the_oldest_is_closed(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_listener, "MOST_BEGINNING", 2)
    async with listening(certificates) as port, asyncio.timeout(PATIENCE):
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        assert await silent[0][0].read() == b""
        silent[2][1].write(b"GET")
        assert await silent[2][0].read() == b"plain"
        for _, writer in silent:
            writer.close()


async def test_a_listener_that_is_closed_closes_those_that_said_nothing(certificates: Certificates) -> None:
    async with listening(certificates) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.sleep(0)
        await heard(port, b"GET")  # accepted after the other
    async with asyncio.timeout(PATIENCE):
        assert await reader.read() == b""
    writer.close()
