"""Large downloads on the wire: whole for every client, also where clients leave, or do not read."""

import asyncio
import contextlib
import http.client
import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import IO

import pytest
from starlette.types import Receive, Scope, Send

from tests.live import PATIENCE, LiveServer, until
from trainshed.api.call import SENDER
from trainshed.serving.http_protocol import ConnectionState
from trainshed.serving.serve import SocketServer, configure

MIB = 1 << 20
DATA = os.urandom(24 * MIB + 4321)
LARGE, SMALL = (
    "/download/storage/v1/b/downloads/o/large?alt=media",
    "/storage/v1/b/downloads/o/small?alt=media",
)


@pytest.fixture(scope="module")
def filled(server: LiveServer) -> LiveServer:
    return fill(server)


@pytest.fixture
def damaged() -> Iterator[LiveServer]:
    """A server of its own, which writes into its log what was damaged."""
    with LiveServer() as live:
        yield fill(live)


def fill(server: LiveServer) -> LiveServer:
    server.post("/storage/v1/b", {"name": "downloads"}, project="p1")
    put(server, "large", DATA)
    put(server, "small", b"small")
    return server


def put(server: LiveServer, name: str, content: bytes) -> None:
    path = f"/upload/storage/v1/b/downloads/o?uploadType=media&name={name}"
    assert server.request("POST", path, content).status == 200


def request(server: LiveServer, path: str, verb: str = "GET", version: str = "1.1") -> bytes:
    head = f"{verb} {path} HTTP/{version}\r\nHost: localhost\r\nAuthorization: Bearer {server.token}"
    return f"{head}\r\n\r\n".encode()


def connected(server: LiveServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)


def head(file: IO[bytes]) -> tuple[int, dict[str, str]]:
    status = int(file.readline().split()[1])
    lines = iter(lambda: file.readline().decode().strip(), "")
    return status, dict(line.lower().split(": ", 1) for line in lines)


def body(file: IO[bytes]) -> bytes:
    status, headers = head(file)
    assert status in (200, 206)
    return file.read(int(headers["content-length"]))


def sockets_of(server: LiveServer) -> int:
    count = 0
    for link in Path(f"/proc/{server.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            count += link.readlink().name.startswith("socket:")
    return count


@contextlib.contextmanager
def unread(server: LiveServer, count: int) -> Iterator[list[IO[bytes]]]:
    """So many clients that have an answer, and read nothing of it."""
    with contextlib.ExitStack() as stack:
        files: list[IO[bytes]] = []
        for _ in range(count):
            line = stack.enter_context(connected(server))
            line.sendall(request(server, LARGE))
            assert line.recv(1, socket.MSG_PEEK) == b"H"
            files.append(stack.enter_context(line.makefile("rb")))
        yield files


def test_every_range_is_whole_and_the_connection_serves_the_next_request(filled: LiveServer) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", filled.port, timeout=PATIENCE)
    with contextlib.closing(connection):
        for first, last in ((0, len(DATA) - 1), (1, 3 * MIB), (MIB - 1, 20 * MIB), (7 * MIB, len(DATA) - 1)):
            for path in (LARGE, f"/t/{filled.token}/downloads/large"):
                headers = {"Authorization": f"Bearer {filled.token}", "Range": f"bytes={first}-{last}"}
                connection.request("GET", path, headers=headers)
                answer = connection.getresponse()
                assert int(answer.headers["content-length"]) == last - first + 1
                assert answer.read() == DATA[first : last + 1]
        connection.request("HEAD", LARGE, headers={"Authorization": f"Bearer {filled.token}"})
        answer = connection.getresponse()
        assert answer.headers["content-length"] == str(len(DATA)) and answer.read() == b""


def test_requests_that_are_sent_at_once_are_answered_one_after_the_other(filled: LiveServer) -> None:
    with connected(filled) as line, line.makefile("rb") as file:
        asked = (SMALL, LARGE, SMALL, LARGE)
        line.sendall(b"".join(request(filled, path) for path in asked))
        for path in asked:
            assert body(file) == (DATA if path is LARGE else b"small")
        line.sendall(request(filled, LARGE, "HEAD") + request(filled, SMALL))
        assert head(file)[1]["content-length"] == str(len(DATA))
        assert body(file) == b"small"


def test_the_end_of_the_connection_ends_an_answer_of_http_1_0(filled: LiveServer) -> None:
    with connected(filled) as line, line.makefile("rb") as file:
        line.sendall(request(filled, LARGE, version="1.0"))
        assert head(file)[0] == 200
        assert file.read() == DATA


def test_a_client_that_leaves_in_the_middle_leaves_no_socket_open(filled: LiveServer) -> None:
    before = sockets_of(filled)
    with unread(filled, 20):
        assert sockets_of(filled) > before
    with unread(filled, 3) as files:
        for file in files:
            file.read(5 * MIB)
    until(lambda: sockets_of(filled) <= before)
    assert filled.request("GET", LARGE).body == DATA


def test_clients_that_do_not_read_keep_nobody_waiting(filled: LiveServer) -> None:
    with unread(filled, 40) as files, ThreadPoolExecutor(len(files)) as pool:
        assert filled.request("GET", SMALL).body == b"small"
        assert filled.request("GET", LARGE).body == DATA
        put(filled, "other", b"other")
        assert all(data == DATA for data in pool.map(body, files))


@pytest.mark.parametrize("change", ["replaced", "deleted"])
def test_a_download_goes_on_with_the_object_it_began(filled: LiveServer, change: str) -> None:
    put(filled, change, DATA)
    with connected(filled) as line, line.makefile("rb") as file:
        line.sendall(request(filled, LARGE.replace("large", change)))
        headers = head(file)[1]
        first = file.read(MIB)
        if change == "replaced":
            put(filled, change, b"new")
        else:
            filled.request("DELETE", f"/storage/v1/b/downloads/o/{change}")
        assert first + file.read(int(headers["content-length"]) - MIB) == DATA


@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_a_download_of_what_is_damaged_breaks_off_before_it(damaged: LiveServer, damage: str) -> None:
    path = Path(damaged.home, "buckets", "downloads", "large")
    path.chmod(0o600)
    with connected(damaged) as line, line.makefile("rb") as file:
        line.sendall(request(damaged, LARGE))
        assert head(file)[0] == 200
        first = file.read(MIB)
        if damage == "cut":
            os.truncate(path, 22 * MIB)
        else:
            with path.open("r+b") as content:
                content.seek(22 * MIB)
                content.write(bytes(byte ^ 1 for byte in DATA[22 * MIB : 22 * MIB + 9]))
        assert first + file.read() == DATA[: 22 * MIB]
    assert damaged.request("GET", SMALL).body == b"small"


def test_a_server_that_ends_waits_for_no_client_that_does_not_read() -> None:
    with LiveServer() as server:
        fill(server)
        with unread(server, 20):
            assert server.stop() == 0


def test_over_tls_they_are_read_and_whole() -> None:
    with LiveServer("--tls") as server:
        fill(server)
        assert server.request("GET", LARGE).body == DATA
        part = server.request("GET", LARGE, headers={"Range": f"bytes=5-{20 * MIB}"})
        assert part.body == DATA[5 : 20 * MIB + 1]


@pytest.mark.parametrize("uvloop", [True, False])
def test_either_event_loop_lets_a_thread_send(uvloop: bool) -> None:
    """Around a transport of which the bytes before are not with the system yet."""
    import uvloop as module

    runner = asyncio.Runner(loop_factory=module.new_event_loop if uvloop else None)
    start, middle = DATA[: 8 * MIB], DATA[8 * MIB : 8 * MIB + 70_000]

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-length", str(len(start) + len(middle) + 3).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": start, "more_body": True})
        left = middle
        while left:
            left = left[await scope["state"][SENDER](partial(written, left), threads) :]
        await send({"type": "http.response.body", "body": b"end"})

    def written(data: bytes, descriptor: int) -> int:
        return os.write(descriptor, data)

    async def ask() -> list[bytes]:
        config = configure(app)
        config.load()
        sockets = SocketServer(config, ConnectionState())
        listener = socket.create_server(("127.0.0.1", 0))
        port, serving = listener.getsockname()[1], await sockets.serve_at(listener)
        reader, asker = await asyncio.open_connection("127.0.0.1", port)
        answers: list[bytes] = []
        for _ in range(2):
            asker.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            await reader.readuntil(b"\r\n\r\n")
            answers.append(await reader.readexactly(len(start) + len(middle) + 3))
        asker.close()
        await asker.wait_closed()
        serving.close()
        await serving.wait_closed()
        return answers

    with runner, ThreadPoolExecutor(1) as threads:
        assert runner.run(asyncio.wait_for(ask(), PATIENCE)) == [start + middle + b"end"] * 2
