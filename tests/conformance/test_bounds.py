"""How much, and for how long, a client may send before the server knows who it is."""

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from starlette.types import Receive, Scope, Send

from tests.faults import Sentence
from tests.live import JOBS, LiveServer, until
from trainshed.serving.google_protocol import ForgivingHttp
from trainshed.serving.http_protocol import (
    MOST_CONNECTIONS,
    OWN_RESERVE,
    RESERVE,
    BoundedHttp,
    ConnectionState,
    WaitingConnections,
    is_own,
)
from trainshed.serving.serve import configure

HALF = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Half: "
WHOLE = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def sent(server: LiveServer, *pieces: bytes) -> bytes:
    """What the server answers until it closes the connection or is silent for a while."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as line:
        with contextlib.suppress(OSError):
            for piece in pieces:
                line.sendall(piece)
        line.settimeout(10)
        return heard(line)


def heard(line: socket.socket) -> bytes:
    answer = b""
    with contextlib.suppress(OSError):
        while piece := line.recv(65536):
            answer += piece
            if b"\r\n\r\n" in answer:
                break
    return answer


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def memory(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) << 10
    raise AssertionError("no VmRSS")


# ---- sizes


def test_an_address_of_more_than_64_kib_is_refused(server: LiveServer) -> None:
    end = b" HTTP/1.1\r\nHost: localhost\r\n\r\n"
    assert status(sent(server, b"GET /healthz?" + b"x" * 60_000 + end)) == 200
    assert status(sent(server, b"GET /healthz?" + b"x" * 70_000 + end)) == 414
    assert status(sent(server, b"GET /", *[b"x" * 65536] * 64)) == 414


@pytest.mark.parametrize("header", [b"X: " + b"y" * 70_000, b"\r\n".join([b"X: y"] * 1001)])
def test_headers_of_more_than_64_kib_or_too_many_are_refused(server: LiveServer, header: bytes) -> None:
    assert status(sent(server, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n", header, b"\r\n\r\n")) == 431


def test_a_header_without_end_is_refused_while_it_comes(server: LiveServer) -> None:
    assert status(sent(server, HALF, *[b"y" * 65536] * 64)) == 431


def test_a_websocket_has_the_same_bounds(server: LiveServer) -> None:
    head = b"Host: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    key = b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    path = b"GET /shell/p1/us-central1/1/workerpool0-0"
    assert (
        status(sent(server, path + b" HTTP/1.1\r\n" + head + key + b"X: " + b"y" * 70_000 + b"\r\n\r\n"))
        == 431
    )
    assert status(sent(server, path + b"?" + b"x" * 70_000 + b" HTTP/1.1\r\n" + head + key + b"\r\n")) == 414
    assert status(sent(server, path + b" HTTP/1.1\r\n" + head + key + b"\r\n")) == 403


def test_two_hosts_are_refused(server: LiveServer) -> None:
    two = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nhost: evil.example\r\n\r\n"
    assert status(sent(server, two)) == 400
    assert status(sent(server, two.replace(b"evil.example", b"localhost"))) == 400


def test_requests_that_come_before_the_answer_are_few(server: LiveServer) -> None:
    assert sent(server, WHOLE).startswith(b"HTTP/1.1 200")
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as line:
        line.sendall(WHOLE * 5000)
        line.settimeout(10)
        answers = b""
        with contextlib.suppress(OSError):
            while piece := line.recv(65536):
                answers += piece
        assert answers.count(b"HTTP/1.1 200") < 100
    assert server.request("GET", "/healthz").status == 200


@pytest.mark.slow
def test_what_strangers_send_takes_a_bounded_part_of_memory(server: LiveServer) -> None:
    server.get(JOBS)
    before = memory(server.pid)
    lines: list[socket.socket] = []
    try:
        for _ in range(1500):  # 94 MB
            line = socket.create_connection(("127.0.0.1", server.port), timeout=30)
            lines.append(line)
            with contextlib.suppress(OSError):
                line.sendall(
                    b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"a: b\r\n" * 900 + b"X: " + b"y" * 58_000
                )
        assert server.get(JOBS) is not None  # others are served meanwhile
        assert memory(server.pid) - before < 150 << 20
    finally:
        for line in lines:
            line.close()


# ---- times, with a hasty protocol in this process


class HastyHttp(BoundedHttp):
    head_seconds = 0.3
    body_seconds = 0.6


@dataclass
class Hasty:
    port: int
    state: ConnectionState

    def connected(self) -> socket.socket:
        line = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        line.settimeout(20)
        return line


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """/slow answers late, /late reads its body late, /body at once, /follow says something now and then."""
    size = 0
    if scope["path"] in ("/slow", "/late"):
        await asyncio.sleep(1.5)
    if scope["path"] in ("/body", "/late"):
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            size, more = size + len(message["body"]), message["more_body"]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(3 if scope["path"] == "/follow" else 0):
        await asyncio.sleep(0.5)
        await send({"type": "http.response.body", "body": b"on", "more_body": True})
    await send({"type": "http.response.body", "body": f"{size} bytes".encode()})


@pytest.fixture
async def hasty() -> AsyncIterator[Hasty]:
    state = ConnectionState()
    config = configure(app)
    config.load()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: HastyHttp(config, state, {}), "127.0.0.1", 0)
    yield Hasty(server.sockets[0].getsockname()[1], state)
    server.close()


def said_until_closed(hasty: Hasty, *pieces: bytes, pause: float = 0) -> bytes:
    """All that is answered until the server closes."""
    with hasty.connected() as line:
        answer = b""
        for piece in pieces:
            line.sendall(piece)
            time.sleep(pause)
        while piece := line.recv(65536):
            answer += piece
        return answer


async def test_a_connection_that_says_nothing_is_closed(hasty: Hasty) -> None:
    answer = await asyncio.to_thread(said_until_closed, hasty)
    assert answer == b""
    assert len(hasty.state.waiting) == 0


@pytest.mark.parametrize("half", [b"G", HALF, b"\r\n", b"POST /body HTTP/1.1\r\nHost: localhost\r\nContent-"])
async def test_half_a_head_is_answered_408_and_closed(hasty: Hasty, half: bytes) -> None:
    answer = await asyncio.to_thread(said_until_closed, hasty, half)
    assert status(answer) == 408


async def test_a_head_that_comes_letter_by_letter_is_late_all_the_same(hasty: Hasty) -> None:
    letters = [bytes([letter]) for letter in HALF[:25]]
    with contextlib.suppress(ConnectionError):
        answer = await asyncio.to_thread(said_until_closed, hasty, *letters, pause=0.1)
        assert status(answer) == 408
    assert not hasty.state.connections


@pytest.mark.parametrize(
    "body", [b"Content-Length: 10\r\n\r\nhalf", b"Transfer-Encoding: chunked\r\n\r\n4\r\nhalf"]
)
async def test_half_a_body_is_answered_408_and_closed(hasty: Hasty, body: bytes) -> None:
    head = b"POST /body HTTP/1.1\r\nHost: localhost\r\n"
    answer = await asyncio.to_thread(said_until_closed, hasty, head + body)
    assert status(answer) == 408


async def test_half_a_body_that_was_answered_already_is_closed(hasty: Hasty) -> None:
    head = b"POST /at-once HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n"
    answer = await asyncio.to_thread(said_until_closed, hasty, head, b"ha", pause=0.2)
    assert answer.count(b"HTTP/1.1") == 1 and status(answer) == 200


async def test_a_body_that_ends_after_its_answer_leaves_nothing_open(hasty: Hasty) -> None:
    head = b"POST /at-once HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\n"
    answer = await asyncio.to_thread(said_until_closed, hasty, head, b"half", pause=0.2)
    assert answer.count(b"HTTP/1.1") == 1 and status(answer) == 200


async def test_a_slow_upload_goes_on(hasty: Hasty) -> None:
    head = b"POST /body HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 12\r\n\r\n"
    pieces = [head, *[b"x"] * 12]
    answer = await asyncio.to_thread(lambda: said_until_closed(hasty, *pieces, pause=0.2))
    assert status(answer) == 200 and answer.endswith(b"12 bytes\r\n0\r\n\r\n")


@pytest.mark.parametrize("path", [b"/slow", b"/follow"])
async def test_a_client_that_waits_for_its_answer_is_not_late(hasty: Hasty, path: bytes) -> None:
    ask = b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    answer = await asyncio.to_thread(said_until_closed, hasty, ask)
    assert status(answer) == 200 and answer.endswith(b"0\r\n\r\n")


@pytest.mark.parametrize("expects", [b"", b"Expect: 100-continue\r\n"])
async def test_an_upload_that_the_server_lets_wait_is_not_late(hasty: Hasty, expects: bytes) -> None:
    size = 1 << 20

    def upload() -> bytes:
        with hasty.connected() as line:
            head = (
                b"POST /late HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n"
                % size
            )
            line.sendall(head + expects + b"\r\n")
            if expects:
                assert line.recv(100).startswith(b"HTTP/1.1 100")
            line.sendall(b"x" * size)
            answer = b""
            while piece := line.recv(65536):
                answer += piece
            return answer

    assert str(size).encode() in await asyncio.to_thread(upload)


async def test_of_too_many_silent_connections_the_oldest_are_closed(hasty: Hasty) -> None:
    hasty.state.waiting = WaitingConnections(most=10 * (8 << 10))

    def connect() -> tuple[bytes, bytes]:
        lines = [hasty.connected() for _ in range(12)]
        try:
            first = lines[0].recv(1)
            lines[-1].sendall(WHOLE)
            return first, lines[-1].recv(100)
        finally:
            for line in lines:
                line.close()

    first, last = await asyncio.to_thread(connect)
    assert first == b"" and status(last) == 200


def test_google_s_names_have_the_same_bounds() -> None:
    assert issubclass(ForgivingHttp, BoundedHttp)


# ---- how many


@pytest.mark.fault(
    "The server",
    "Thousands of connections are open at a time",
    "Requests beyond 4096 are refused with 503 and Retry-After. /healthz is answered, and some more requests "
    "from the server's own machine. Requests that are there go on.",
    sentence="The server has all the connections it can serve: try again in a moment.",
)
def test_connections_beyond_the_most_are_refused_with_a_sentence_and_healthz_is_answered(
    sentence: Sentence,
) -> None:
    with LiveServer() as server, contextlib.ExitStack() as lines:
        head = f"POST {JOBS} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n"
        half = f"{head}Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{{".encode()
        busy: list[socket.socket] = []
        for _ in range(MOST_CONNECTIONS + OWN_RESERVE):
            busy.append(lines.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=60)))
            busy[-1].sendall(half)
        until_refused = (sent(server, half) for _ in range(5))  # the last ones may not be counted yet
        answer = next(answer for answer in until_refused if answer)
        assert status(answer) == 503 and b"\r\nretry-after: 1\r\n" in answer.lower()
        assert sentence.is_in(answer.decode())
        for _ in range(2 * RESERVE):  # those that say nothing take no place from /healthz
            lines.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=60))
        assert status(sent(server, WHOLE)) == 200
        busy[0].sendall(b"        ")
        assert status(heard(busy[0])) == 400  # as it would have been: it is no JSON
        lines.close()
        assert status(sent(server, WHOLE)) == 200
        until(lambda: server.request("GET", JOBS).status == 200)


async def test_who_is_not_on_this_machine_is_refused_first() -> None:
    state = ConnectionState(most=1)
    state.connections |= {object(), object()}  # type: ignore[arg-type]
    assert state.is_crowded(own=False) and not state.is_crowded(own=True)
    assert is_own(("127.0.0.1", 1)) and is_own(("::ffff:127.0.0.9", 1)) and is_own(None)
    assert not is_own(("192.0.2.7", 1))
