"""HTTP/1.1 on a socket: one question, one answer, the next. Nothing about retries, JSON or jobs.

It stands on the C module below `socket`, as importing `http.client` takes longer than submitting a job. Every
failure is an OSError: the socket's own, or `MalformedAnswer` where what came was no HTTP or ended too soon.
"""

import _socket

TYPE_CHECKING = False  # the module typing takes longer to import than a job takes to submit
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

CONNECT_TIMEOUT = 10.0
LONGEST_LINE = 1 << 16
MOST_HEADERS = 256
PIECE = 1 << 16
WITHOUT_BODY = (204, 304)


class MalformedAnswer(OSError):
    """What came is not an HTTP answer, or not a whole one."""


class ServerAddress:
    """Where a URL leads: scheme, host, port, and the path all others are below."""

    __slots__ = ("ca", "host", "path", "port", "secure")

    def __init__(self, url: str, ca: str = "") -> None:
        """Raises ValueError for what is no http or https URL. `ca`: a file of who is trusted besides."""
        scheme, _, rest = url.partition("://")
        place, slash, path = rest.partition("/")
        host, port = _host_and_port(place)
        if scheme.lower() not in ("http", "https") or not host or set(url) & set("?#@ \t\r\n"):
            raise ValueError(url)
        self.secure = scheme.lower() == "https"
        self.host, self.ca = host, ca
        self.port = port or (443 if self.secure else 80)
        self.path = (slash + path).rstrip("/")

    @property
    def name(self) -> str:
        """The host as the Host header has it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.secure else 80) else f"{host}:{self.port}"


def _host_and_port(place: str) -> tuple[str, int]:
    if place.startswith("["):
        host, _, port = place[1:].partition("]")
        port = port.removeprefix(":")
    else:
        host, _, port = place.partition(":")
    if port and not (port.isascii() and port.isdecimal() and 0 < int(port) < 1 << 16):
        raise ValueError(place)
    return host, int(port or 0)


class HttpChannel:
    """One connection. After an answer is read whole it is fit for the next question if `is_open` says so."""

    def __init__(self, address: ServerAddress, timeout: float = CONNECT_TIMEOUT) -> None:
        self._host = address.name
        self.sock = _connected(address, timeout)
        self.is_open = True
        self._buffer = bytearray()

    def close(self) -> None:
        self.is_open = False
        self.sock.close()

    def is_silent(self) -> bool:
        """Whether nothing has come, as it should be between two questions: neither bytes nor the end."""
        raw = _socket.socket(fileno=self.sock.fileno())  # below TLS, which lets nobody only look
        try:
            raw.settimeout(0)
            raw.recv(1, _socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            pass
        finally:
            raw.detach()
        return False

    def ask(
        self,
        method: str,
        path: str,
        headers: "Mapping[str, str]",
        body: "bytes | Iterable[bytes] | None" = None,
        timeout: float | None = None,
        *,
        final: int = 200,
    ) -> "HttpAnswer":
        """Sends a question, reads the head of its answer. A body in pieces comes with its Content-Length.

        Answers with a status below `final` are only said in between.
        """
        self.sock.settimeout(timeout)
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self._host}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        whole = b"" if body is None or not isinstance(body, bytes) else body
        if whole or (body is None and method != "GET") or body == b"":
            lines.append(f"Content-Length: {len(whole)}")
        try:
            self.sock.sendall("\r\n".join([*lines, "\r\n"]).encode("latin-1") + whole)
            if body is not None and not isinstance(body, bytes):
                for piece in body:
                    self.sock.sendall(piece)
        except (BrokenPipeError, ConnectionResetError):
            # A server may refuse a large body before it has come; its reason is then still to be read.
            self.is_open = False
            if not self._fill_quietly():
                raise
        return self._head(method, final)

    def rest(self) -> bytes:
        """What has come behind the answer, where the connection now speaks something else."""
        return bytes(self._buffer)

    def _head(self, method: str, final: int) -> "HttpAnswer":
        while True:
            version, _, rest = self.line().partition(" ")
            number, _, reason = rest.partition(" ")
            if not (version.startswith("HTTP/1.") and number.isdecimal() and len(number) == 3):
                raise MalformedAnswer("what answers is not HTTP")
            headers: dict[str, str] = {}
            while line := self.line():
                name, colon, value = line.partition(":")
                if not colon or len(headers) >= MOST_HEADERS:
                    raise MalformedAnswer("the answer's head is not HTTP")
                headers[name.strip().lower()] = value.strip()
            if int(number) >= final:
                break
        connection = headers.get("connection", "").lower()
        if connection == "close" or (version == "HTTP/1.0" and connection != "keep-alive"):
            self.is_open = False
        is_empty = method == "HEAD" or int(number) in WITHOUT_BODY
        return HttpAnswer(self, int(number), reason, headers, is_empty=is_empty)

    def line(self) -> str:
        while (end := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > LONGEST_LINE or not self._fill():
                raise MalformedAnswer("the connection ended in the middle of an answer")
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line.removesuffix(b"\r").decode("latin-1")

    def some(self, most: int) -> bytes:
        """Whatever has come, at least a byte; none at the end of the connection."""
        if not self._buffer and not self._fill():
            return b""
        piece = bytes(self._buffer[:most])
        del self._buffer[:most]
        return piece

    def _fill(self) -> bool:
        came = self.sock.recv(PIECE)
        self._buffer += came
        return bool(came)

    def _fill_quietly(self) -> bool:
        try:
            return self._fill()
        except OSError:
            return False


class HttpAnswer:
    """An answer whose head is read; its body comes in pieces, or whole."""

    def __init__(
        self, channel: HttpChannel, status: int, reason: str, headers: dict[str, str], *, is_empty: bool
    ) -> None:
        self.status = status
        self.reason = reason
        self.headers = headers
        self._channel = channel
        self._is_empty = is_empty

    def read(self) -> bytes:
        return b"".join(self.pieces())

    def pieces(self) -> "Iterator[bytes]":
        """The body as it comes. Raises Broken where it ends before its end."""
        if self._is_empty:
            return
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            while size := self._chunk_size():
                yield from self._exactly(size)
                self._channel.line()
            while self._channel.line():
                pass  # trailers
        elif "content-length" in self.headers:
            length = self.headers["content-length"]
            if not length.isdecimal():
                raise MalformedAnswer("the answer's length is no number")
            yield from self._exactly(int(length))
        else:
            self._channel.is_open = False
            while piece := self._channel.some(PIECE):
                yield piece

    def _chunk_size(self) -> int:
        try:
            return int(self._channel.line().partition(";")[0], 16)
        except ValueError:
            raise MalformedAnswer("the answer's pieces are not HTTP") from None

    def _exactly(self, size: int) -> "Iterator[bytes]":
        while size:
            piece = self._channel.some(min(size, PIECE))
            if not piece:
                raise MalformedAnswer("the connection ended in the middle of an answer")
            size -= len(piece)
            yield piece


def _connected(address: ServerAddress, timeout: float) -> "_socket.socket":
    # As bytes, a plain name is looked up without the modules for international ones.
    host = address.host.encode() if address.host.isascii() else address.host
    failed: OSError = OSError("the name leads nowhere")
    for family, kind, protocol, _, place in _socket.getaddrinfo(host, address.port, 0, _socket.SOCK_STREAM):
        sock = _socket.socket(family, kind, protocol)
        try:
            sock.settimeout(timeout)
            sock.connect(place)
            sock.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
            return _secured(sock, address) if address.secure else sock
        except OSError as error:
            failed = error
            sock.close()
    raise failed


def _secured(sock: "_socket.socket", address: ServerAddress) -> "_socket.socket":
    import socket

    from trainshed.client.trust import client_context

    timeout = sock.gettimeout()
    plain = socket.socket(fileno=sock.detach())
    plain.settimeout(timeout)
    try:
        return client_context(address.ca).wrap_socket(plain, server_hostname=address.host)
    except BaseException:
        plain.close()
        raise
