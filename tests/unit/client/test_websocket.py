"""Frames of a WebSocket, as its client writes and reads them; held against those of wsproto."""

import socket
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wsproto.frame_protocol import FrameProtocol, Opcode

from trainshed.client.exchange import MalformedAnswer
from trainshed.client.websocket import BINARY, LONGEST, TEXT, WebSocket, frame, parse


@given(st.binary(max_size=70_000))
def test_what_is_sent_is_understood_by_a_server(body: bytes):
    server = FrameProtocol(client=False, extensions=[])
    server.receive_bytes(frame(BINARY, body))
    got = b"".join(bytes(one.payload) for one in server.received_frames())  # pyright: ignore
    assert got == body


@given(st.lists(st.one_of(st.binary(max_size=300), st.text(max_size=300)), max_size=5), st.integers(1, 50))
def test_what_a_server_sends_is_understood_however_it_is_cut(said: list[bytes | str], cut: int):
    server = FrameProtocol(client=False, extensions=[])
    stream = b"".join(server.send_data(one) for one in said)
    found: list[bytes | str] = []
    rest = bytearray()
    for begin in range(0, len(stream), cut):
        rest += stream[begin : begin + cut]
        while (one := parse(rest)) is not None:
            kind, last, body, length = one
            assert last
            del rest[:length]
            found.append(body.decode() if kind == TEXT else body)
    assert found == said and not rest


@pytest.mark.parametrize(
    "data", [b"\xc2\x00", b"\x82\x81" + b"mask" + b"x", b"\x82\x7f" + (LONGEST + 1).to_bytes(8, "big")]
)
def test_what_is_no_frame_of_a_server_is_refused(data: bytes):
    with pytest.raises(MalformedAnswer):
        parse(data)


@pytest.fixture
def pair() -> Iterator[tuple[WebSocket, socket.socket, FrameProtocol]]:
    ours, theirs = socket.socketpair()
    one = WebSocket.__new__(WebSocket)
    ours.settimeout(0)
    one.adopt(ours)
    theirs.settimeout(10)
    yield one, theirs, FrameProtocol(client=False, extensions=[])
    one.close()
    theirs.close()


def test_pings_are_answered_and_parts_put_together(
    pair: tuple[WebSocket, socket.socket, FrameProtocol],
):
    ours, theirs, server = pair
    theirs.sendall(server.send_data(b"one ", fin=False) + server.ping(b"there?") + server.send_data(b"two"))
    assert list(ours.hear()) == [b"one two"]
    ours.flush()
    server.receive_bytes(theirs.recv(1000))
    pong = next(server.received_frames())
    assert (pong.opcode, pong.payload) == (Opcode.PONG, b"there?")


def test_the_end_is_told_and_answered(pair: tuple[WebSocket, socket.socket, FrameProtocol]):
    ours, theirs, server = pair
    assert list(ours.hear()) == [] and not ours.is_over
    theirs.sendall(server.send_data("last") + server.close(1000))
    assert list(ours.hear()) == ["last"]
    assert ours.is_over


def test_what_cannot_be_sent_now_waits(pair: tuple[WebSocket, socket.socket, FrameProtocol]):
    ours, theirs, server = pair
    ours.say(b"x" * 5_000_000)
    ours.flush()
    assert ours.has_unsent
    got = 0
    while got < 5_000_000:
        server.receive_bytes(theirs.recv(1 << 20))
        got += sum(len(one.payload) for one in server.received_frames())
        ours.flush()
    assert not ours.has_unsent
