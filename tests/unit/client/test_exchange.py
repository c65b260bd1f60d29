"""HTTP as odd servers and proxies speak it, byte by byte."""

import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from trainshed.client import Client, ClientError, Interrupted
from trainshed.client.exchange import HttpChannel, MalformedAnswer, ServerAddress

Speak = Callable[[bytes, Callable[[bytes], HttpChannel]], HttpChannel]


@pytest.fixture
def speak() -> Iterator[Callable[[bytes], HttpChannel]]:
    """A channel to a server that says the given bytes to the first question, and hangs up."""
    opened: list[HttpChannel] = []
    threads: list[threading.Thread] = []

    def connect(said: bytes) -> HttpChannel:
        server = socket.create_server(("127.0.0.1", 0))

        def serve() -> None:
            with server, server.accept()[0] as peer:
                peer.recv(1 << 16)
                peer.sendall(said)

        threads.append(threading.Thread(target=serve))
        threads[-1].start()
        opened.append(HttpChannel(ServerAddress(f"http://127.0.0.1:{server.getsockname()[1]}")))
        return opened[-1]

    yield connect
    for channel in opened:
        channel.close()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize(
    ("said", "body", "stays_open"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", b"hi", True),
        (b"HTTP/1.1 200 OK\r\ncontent-length:0\r\n\r\n", b"", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi", b"hi", False),
        (b"HTTP/1.0 200 OK\r\n\r\nhi", b"hi", False),
        (b"HTTP/1.1 200\r\n\r\nall of it", b"all of it", False),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", b"x", True),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b"", True),
        (b"HTTP/1.1 200 OK\nContent-Length: 1\n\nx", b"x", True),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"3;a=b\r\nabc\r\nA\r\n0123456789\r\n0\r\nT: x\r\n\r\n",
            b"abc0123456789",
            True,
        ),
    ],
)
def test_an_answer_is_read_whole_however_its_end_is_told(
    speak: Callable[[bytes], HttpChannel], said: bytes, body: bytes, stays_open: bool
) -> None:
    channel = speak(said)
    assert channel.ask("GET", "/", {}, timeout=10).read() == body
    assert channel.is_open is stays_open


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhi",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhi\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n",
        b"HTTP/1.1 " + b"x" * 100_000,
    ],
)
def test_an_answer_that_is_none_or_not_whole_is_broken(
    speak: Callable[[bytes], HttpChannel], said: bytes
) -> None:
    with pytest.raises(MalformedAnswer):
        speak(said).ask("GET", "/", {}, timeout=10).read()


def test_a_body_refused_before_it_has_come_still_gives_its_reason() -> None:
    refusal = b'{"error": {"status": "UNAUTHENTICATED", "message": "no token"}}'
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with server, server.accept()[0] as peer:
            peer.recv(1 << 10)
            peer.sendall(
                b"HTTP/1.1 401 Unauthorized\r\nContent-Length: %d\r\n\r\n%s" % (len(refusal), refusal)
            )
            peer.shutdown(socket.SHUT_WR)
            peer.settimeout(0.2)
            try:  # as servers do, a while, so that the answer is not lost with the rest
                while peer.recv(1 << 16):
                    pass
            except TimeoutError:
                pass

    thread = threading.Thread(target=serve)
    thread.start()
    with (
        Client(f"http://127.0.0.1:{server.getsockname()[1]}", pauses=()) as client,
        pytest.raises(ClientError) as told,
    ):
        client.upload(1 << 24, (bytes(1 << 16) for _ in range(1 << 8)))
    thread.join()
    assert isinstance(told.value, Interrupted) or "no token" in str(told.value)


@pytest.mark.parametrize(
    ("url", "host", "port", "path", "name"),
    [
        ("http://h", "h", 80, "", "h"),
        ("http://h:8080/", "h", 8080, "", "h:8080"),
        ("https://h/below/it/", "h", 443, "/below/it", "h"),
        ("HTTPS://h:80", "h", 80, "", "h:80"),
        ("http://[::1]:9", "::1", 9, "", "[::1]:9"),
    ],
)
def test_an_address_is_taken_apart(url: str, host: str, port: int, path: str, name: str) -> None:
    found = ServerAddress(url)
    assert (found.host, found.port, found.path, found.name) == (host, port, path, name)


@pytest.mark.parametrize(
    "url",
    ["h", "http://", "http://h:0", "http://h:99999", "http://h:x", "http://u@h", "http://a b", "ftp://h"],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError):
        ServerAddress(url)
