"""A WebSocket as its client, on a socket that never blocks: who uses it waits for it with others (select).

As much of RFC 6455 as a conversation with our own server needs: no extensions, whole messages. It answers
pings; a failure is an OSError, as of any socket. It knows nothing of shells.
"""

import os

from trainshed.client.errors import ApiError, Unreachable
from trainshed.client.exchange import HttpChannel, MalformedAnswer, ServerAddress

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Iterator

CONTINUED, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
PIECE = 1 << 16
LONGEST = 1 << 24  # bytes of a message; ours are far shorter
_MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
SWITCHING = 101


class WebSocket:
    def __init__(self, url: str, path: str, protocols: tuple[str, ...], ca: str = "") -> None:
        """Connects. Raises Unreachable, or ApiError where the server refuses. `ca`: whom to trust besides."""
        address, channel = ServerAddress(url, ca), None
        try:
            channel = HttpChannel(address)
            rest = _shake_hands(channel, address.path + path, protocols)
        except (OSError, ApiError) as error:
            if channel is not None:
                channel.close()
            if isinstance(error, ApiError):
                raise
            raise Unreachable(url, error.strerror or str(error)) from error
        channel.sock.settimeout(0)
        self.adopt(channel.sock, rest)

    def adopt(self, sock: "_socket.socket", rest: bytes = b"") -> None:
        """Goes on with a connection on which both sides have agreed, and what has come of it."""
        self._sock = sock
        self._rest = bytearray(rest)
        self._unsent = bytearray()
        self._message: list[bytes] = []
        self._kind = BINARY
        self.is_over = False  # nothing more comes

    def close(self) -> None:
        self._sock.close()

    def fileno(self) -> int:
        return self._sock.fileno()

    @property
    def has_unsent(self) -> bool:
        return bool(self._unsent)

    @property
    def has_unread(self) -> bool:
        """Whether something has come that waiting for the socket would not tell: TLS reads ahead."""
        pending = getattr(self._sock, "pending", None)
        return bool(self._rest) or (pending is not None and pending() > 0)

    def say(self, data: "bytes | str") -> None:
        """To be sent; `flush` does as much as goes at once."""
        kind, body = (TEXT, data.encode()) if isinstance(data, str) else (BINARY, data)
        self._unsent += frame(kind, body)

    def flush(self) -> None:
        while self._unsent:
            try:
                del self._unsent[: self._sock.send(self._unsent[:PIECE])]
            except OSError as error:
                if _is_patient(error):
                    return
                raise

    def hear(self) -> "Iterator[bytes | str]":
        """The messages that have come, without waiting."""
        try:
            came = self._sock.recv(PIECE)
        except OSError as error:
            if not _is_patient(error):
                raise
        else:
            self.is_over = not came
            self._rest += came
        while (parsed := parse(self._rest)) is not None:
            kind, last, body, length = parsed
            del self._rest[:length]
            if kind == PING:
                self._unsent += frame(PONG, body)
            elif kind == CLOSE:
                self.is_over = True
                self._unsent += frame(CLOSE, body[:2])
            elif kind != PONG:
                yield from self._gathered(kind, last, body)

    def _gathered(self, kind: int, last: bool, body: bytes) -> "Iterator[bytes | str]":
        if kind != CONTINUED:
            self._kind, self._message = kind, []
        self._message.append(body)
        if last:
            whole = b"".join(self._message)
            self._message = []
            yield whole.decode(errors="replace") if self._kind == TEXT else whole


def frame(kind: int, body: bytes) -> bytes:
    """One whole message, masked as a client must."""
    size = len(body)
    if size < 126:
        length = bytes((0x80 | size,))
    elif size < 1 << 16:
        length = bytes((0x80 | 126,)) + size.to_bytes(2, "big")
    else:
        length = bytes((0x80 | 127,)) + size.to_bytes(8, "big")
    key = os.urandom(4)
    return bytes((0x80 | kind,)) + length + key + _masked(body, key)


def parse(data: "bytes | bytearray") -> "tuple[int, bool, bytes, int] | None":
    """The first frame: its kind, whether it ends its message, its body, its length; None: it is not whole."""
    if len(data) < 2:
        return None
    if data[0] & 0x70 or data[1] & 0x80:
        raise MalformedAnswer("what answers does not keep to WebSocket")
    size, head = data[1], 2
    if size >= 126:
        head = 4 if size == 126 else 10
        size = int.from_bytes(data[2:head], "big") if len(data) >= head else 0
        if size > LONGEST:
            raise MalformedAnswer("a message is too long")
    if len(data) < head or len(data) < head + size:
        return None
    return data[0] & 0x0F, bool(data[0] & 0x80), bytes(data[head : head + size]), head + size


def _masked(body: bytes, key: bytes) -> bytes:
    size = len(body)
    mask = (key * (size // 4 + 1))[:size]
    return (int.from_bytes(body, "big") ^ int.from_bytes(mask, "big")).to_bytes(size, "big")


def _shake_hands(channel: HttpChannel, path: str, protocols: tuple[str, ...]) -> bytes:
    """What came behind the server's yes."""
    import base64
    import hashlib

    key = base64.b64encode(os.urandom(16))
    headers = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": key.decode(),
        "Sec-WebSocket-Protocol": ", ".join(protocols),
    }
    answer = channel.ask("GET", path, headers, timeout=60, final=SWITCHING)
    if answer.status != SWITCHING:
        raise ApiError.read(answer.status, answer.reason, answer.read())
    wanted = base64.b64encode(hashlib.sha1(key + _MAGIC, usedforsecurity=False).digest()).decode()
    if answer.headers.get("sec-websocket-accept") != wanted:
        raise MalformedAnswer("what answers does not keep to WebSocket")
    return channel.rest()


def _is_patient(error: OSError) -> bool:
    """Whether there is only nothing to be done now, in the words of a plain socket or of TLS."""
    return isinstance(error, BlockingIOError) or type(error).__name__ in (
        "SSLWantReadError",
        "SSLWantWriteError",
    )
