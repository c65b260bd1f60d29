"""Sockets that are handed over: served as one's own, again by the next server, and nothing else is taken."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from trainshed.serving import loopback_server
from trainshed.serving.loopback_server import LoopbackServer


async def serve(listener: socket.socket) -> asyncio.Server:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"server:" + await reader.read(100))
        writer.close()

    return await asyncio.start_server(answer, sock=listener)


async def serve_google(listener: socket.socket, init: int) -> asyncio.Server:
    raise OSError(f"init {init}: nothing is served under Google's names")


@asynccontextmanager
async def opened(folder: Path, beyond: frozenset[int] = frozenset()) -> AsyncIterator[LoopbackServer]:
    one = LoopbackServer(folder, serve, serve_google, beyond)
    one.open()
    try:
        yield one
    finally:
        await one.close()


def a_listener() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


def port_of(listener: socket.socket) -> int:
    return int(listener.getsockname()[1])


def talk(folder: Path, *handles: int) -> socket.socket:
    """As an init does."""
    line = socket.socket(socket.AF_UNIX)
    line.settimeout(30)
    line.connect(str(folder / "socket"))
    if handles:
        socket.send_fds(line, [b"h"], list(handles))
    return line


async def asked(listener: socket.socket, word: bytes = b"hello") -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(listener))
    writer.write(word)
    writer.write_eof()
    try:
        return await asyncio.wait_for(reader.read(), 30)
    finally:
        writer.close()


async def test_a_socket_that_is_handed_over_is_served(tmp_path: Path):
    async with opened(tmp_path / "h"):
        with a_listener() as one, a_listener() as other, talk(tmp_path / "h", one.fileno(), other.fileno()):
            assert await asked(one) == b"server:hello"
            assert await asked(other) == b"server:hello"


async def test_connections_wait_for_the_next_server(tmp_path: Path):
    with a_listener() as listener:
        async with opened(tmp_path):
            line = talk(tmp_path, listener.fileno())
            assert await asked(listener) == b"server:hello"
        assert line.recv(1) == b""  # so its owner knows that it has to be handed over again
        waiting = asyncio.create_task(asked(listener, b"again"))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        async with opened(tmp_path):
            with talk(tmp_path, listener.fileno()):
                assert await waiting == b"server:again"
        line.close()


async def test_when_the_talk_ends_nobody_listens_any_more(tmp_path: Path):
    async with opened(tmp_path):
        listener = a_listener()
        line = talk(tmp_path, listener.fileno())
        assert await asked(listener) == b"server:hello"
        line.close()
        port = port_of(listener)
        listener.close()
        for _ in range(500):
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
            except (ConnectionRefusedError, ConnectionResetError):
                break
            await asyncio.sleep(0.02)
        else:
            pytest.fail("the server still has the socket")


async def test_what_is_no_listening_socket_of_loopback_is_dropped(tmp_path: Path):
    async with opened(tmp_path):
        unbound, everywhere = socket.socket(), socket.create_server(("0.0.0.0", 0))
        pair = socket.socketpair()
        with open("/dev/null") as plain:
            for wrong in (unbound.fileno(), everywhere.fileno(), pair[0].fileno(), plain.fileno()):
                with talk(tmp_path, wrong) as line:
                    assert await asyncio.to_thread(line.recv, 1) == b""
        for one in (unbound, everywhere, *pair):
            one.close()


async def test_who_hands_nothing_over_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(loopback_server, "HASTE", 0.05)
    async with opened(tmp_path):
        with talk(tmp_path) as line:
            assert await asyncio.to_thread(line.recv, 1) == b""


async def test_a_second_word_ends_the_talk(tmp_path: Path):
    async with opened(tmp_path):
        with a_listener() as listener, talk(tmp_path, listener.fileno()) as line:
            assert await asked(listener) == b"server:hello"
            socket.send_fds(line, [b"h"], [listener.fileno()])
            assert await asyncio.to_thread(line.recv, 1) == b""


async def test_a_folder_may_be_deeper_than_a_sockets_name_is_long(tmp_path: Path):
    deep = tmp_path.joinpath(*["folder-of-some-length"] * 8)
    async with opened(deep):
        assert (deep / "socket").is_socket()
        assert (deep / "socket").stat().st_mode & 0o777 == 0o666


async def test_bytes_pass_both_ways_to_a_port_that_is_beyond(tmp_path: Path):
    async def store(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"store:" + await reader.read())
        writer.close()

    beyond = await asyncio.start_server(store, "127.0.0.1", 0)
    passer = loopback_server._passer(beyond.sockets[0].getsockname()[1])  # pyright: ignore[reportPrivateUsage]
    front = await asyncio.start_server(passer, "127.0.0.1", 0)  # type: ignore[arg-type]
    reader, writer = await asyncio.open_connection("127.0.0.1", front.sockets[0].getsockname()[1])
    writer.write(b"x" * 3_000_000)
    writer.write_eof()
    assert await asyncio.wait_for(reader.read(), 30) == b"store:" + b"x" * 3_000_000
    writer.close()
    front.close()
    beyond.close()


async def test_a_folder_that_cannot_be_made_is_said_and_no_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    (tmp_path / "file").touch()
    async with opened(tmp_path / "file" / "hatch"):
        assert "cannot reach this server" in caplog.text
