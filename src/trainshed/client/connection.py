"""One kept-alive HTTP connection and the rules for asking again.

It knows HTTP and JSON and nothing of jobs. Not for use by several threads at once. It asks again by itself
only where that is safe: the request never left, or the caller says a second asking is harmless.
"""

import os
import time

from trainshed import __version__
from trainshed.client.errors import ApiError, ClientError, Interrupted, Unreachable
from trainshed.client.exchange import HttpChannel, ServerAddress
from trainshed.client.notation import dumps, loads

TYPE_CHECKING = False  # the module typing takes longer to import than a job takes to submit
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any, TypeAlias

    Json: TypeAlias = dict[str, Any]
else:
    Json = dict

PAUSES = (
    0.05,
    0.1,
    0.2,
    0.4,
)  # seconds between tries: a restarting server is back, a missing one is told soon
READ_TIMEOUT = 60.0
MOST_USER = 100  # characters of a user's name
IDLE_TIMEOUT = 120.0  # a stream's keep-alives come more often than this
OK, MULTIPLE_CHOICES, BAD_REQUEST, SERVICE_UNAVAILABLE = 200, 300, 400, 503


class Connection:
    def __init__(self, url: str, token: str | None, pauses: tuple[float, ...] = PAUSES, ca: str = "") -> None:
        """`ca` is a file with the certificate of who signs for the server, trusted beside the usual ones."""
        self.url = url.rstrip("/")
        self._address = _address(self.url, ca)
        self._headers = {"Accept": "application/json", "User-Agent": f"trainshed/{__version__}"}
        if token and not (token.isascii() and token.isprintable()):
            raise ClientError("the token holds characters that no token has: is it from the right file?")
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        if user := _user_name():
            self._headers["X-Trainshed-User"] = user
        self._pauses = pauses
        self._open: HttpChannel | None = None

    def open(self) -> None:
        """Connects ahead of the first question, if that can be. If not, the question itself will tell."""
        if self._open is None:
            try:
                self._open = self._connect()
            except Unreachable:
                return

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def request(
        self,
        method: str,
        path: str,
        body: "Json | None" = None,
        *,
        headers: "Mapping[str, str] | None" = None,
        repeatable: bool | None = None,
        timeout: float = READ_TIMEOUT,
    ) -> "Json":
        """The JSON answer. `repeatable` says a second asking does no harm; by default GET only."""
        repeatable = method == "GET" if repeatable is None else repeatable
        data, sent = self._prepare(body, headers)
        for pause in (*self._pauses, None):
            try:
                return self._exchange(method, path, data, sent, timeout)
            except Unreachable:
                if pause is None:
                    raise
            except (Interrupted, ApiError) as error:
                busy = isinstance(error, Interrupted) or error.code == SERVICE_UNAVAILABLE
                if pause is None or not (repeatable and busy):
                    raise
            self._pause(pause)
        raise AssertionError("the last try either answers or raises")

    def send(self, path: str, body: "Iterable[bytes]", length: int) -> "Json":
        """The JSON answer to a body sent in pieces as they are made; asking again is up to the caller."""
        sent = {**self._headers, "Content-Type": "application/octet-stream", "Content-Length": str(length)}
        return self._exchange("POST", path, body, sent, IDLE_TIMEOUT)

    def pieces(self, path: str, timeout: float = IDLE_TIMEOUT) -> "Iterator[bytes]":
        """The body of an answer as it comes, on a connection of its own.

        Raises Interrupted when it breaks off before its end.
        """
        channel = self._connect()
        try:
            with _translated(self.url):
                answer = channel.ask("GET", self._address.path + path, self._headers, timeout=timeout)
                if answer.status != OK:
                    raise ApiError.read(answer.status, answer.reason, answer.read())
                yield from answer.pieces()
        finally:
            channel.close()

    def lines(self, path: str, timeout: float = IDLE_TIMEOUT) -> "Iterator[bytes]":
        """The lines of a streamed answer, each as soon as it is there; empty ones are left out."""
        return lines(self.pieces(path, timeout))

    def steps(
        self, path: str, body: "Json | Iterator[bytes]", timeout: float = IDLE_TIMEOUT
    ) -> "Iterator[Json]":
        """The lines of the answer to a POST, as they come, on a connection of its own; an `error` is raised.

        A body that is no JSON is sent in pieces as they are made, of whatever length.
        """
        if isinstance(body, dict):
            data, sent = self._prepare(body, None)
        else:
            data = _chunks(body)
            sent = {**self._headers, "Content-Type": "application/x-tar", "Transfer-Encoding": "chunked"}
        channel = self._connect()
        try:
            with _translated(self.url):
                answer = channel.ask("POST", self._address.path + path, sent, data, timeout)
                if answer.status != OK:
                    raise ApiError.read(answer.status, answer.reason, answer.read())
                for line in lines(answer.pieces()):
                    step: Json = loads(line)
                    if "error" in step:
                        raise ApiError.read(int(step["error"].get("code", 500)), "", line)
                    yield step
        finally:
            channel.close()

    def _prepare(
        self, body: "Json | None", headers: "Mapping[str, str] | None"
    ) -> "tuple[bytes | None, dict[str, str]]":
        sent = {**self._headers, **(headers or {})}
        if body is None:
            return None, sent
        return dumps(body).encode(), {**sent, "Content-Type": "application/json"}

    def _exchange(
        self,
        method: str,
        path: str,
        data: "bytes | Iterable[bytes] | None",
        headers: "Mapping[str, str]",
        timeout: float,
    ) -> "Json":
        channel = self._reusable() or self._connect()
        try:
            with _translated(self.url):
                answer = channel.ask(method, self._address.path + path, headers, data, timeout)
                content = answer.read()
        except BaseException:
            channel.close()
            raise
        # Only now, the answer read whole, is the connection fit for another question.
        if channel.is_open:
            self._open = channel
        else:
            channel.close()
        if MULTIPLE_CHOICES <= answer.status < BAD_REQUEST:  # not followed: who asks has a token to lose
            elsewhere = answer.headers.get("location", "another address")
            raise ClientError(f"{self.url} leads on to {elsewhere}: is it a Trainshed server?")
        if not OK <= answer.status < MULTIPLE_CHOICES:
            raise ApiError.read(answer.status, answer.reason, content)
        try:
            result: object = loads(content) if content else {}
        except ValueError as error:
            raise ClientError(f"{self.url} does not answer in JSON: is it a Trainshed server?") from error
        if not isinstance(result, dict):
            raise ClientError(f"{self.url} does not answer with a JSON object: is it a Trainshed server?")
        return result  # pyright: ignore[reportUnknownVariableType] - whatever the server says

    def _reusable(self) -> HttpChannel | None:
        """The kept connection, unless the server closed it meanwhile: a POST must not be risked on that."""
        kept, self._open = self._open, None
        if kept is None:
            return None
        if kept.is_silent():
            return kept
        kept.close()
        return None

    def _connect(self) -> HttpChannel:
        try:
            return HttpChannel(self._address)
        except OSError as error:
            if type(error).__module__ == "ssl":
                from trainshed.client.trust import untrusted

                raise untrusted(self.url, error) from error
            raise Unreachable(self.url, error.strerror or str(error)) from error

    @staticmethod
    def _pause(seconds: float) -> None:
        import random

        time.sleep(seconds * random.uniform(0.8, 1.2))


class _translated:
    """Turns what the socket raises in the middle of an exchange into `Interrupted`."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, OSError):
            raise Interrupted(
                f"the connection to {self._url} broke off ({error or type(error).__name__})"
            ) from error


def lines(pieces: "Iterable[bytes]") -> "Iterator[bytes]":
    """The lines of a body that comes in pieces, each as soon as it is whole; empty ones are left out."""
    unfinished: list[bytes] = []
    for piece in pieces:
        head, newline, tail = piece.rpartition(b"\n")
        if newline:
            yield from filter(None, b"".join((*unfinished, head)).split(b"\n"))
            unfinished.clear()
        unfinished.append(tail)
    yield from filter(None, (b"".join(unfinished),))


def _chunks(body: "Iterable[bytes]") -> "Iterator[bytes]":
    """A body whose length nobody knows yet, as HTTP sends it."""
    for piece in body:
        if piece:
            yield b"%x\r\n%b\r\n" % (len(piece), piece)
    yield b"0\r\n\r\n"


def _address(url: str, ca: str) -> ServerAddress:
    try:
        return ServerAddress(url, ca)
    except ValueError:
        raise ClientError(
            f"{url!r} is not the address of a server; it should read like http://127.0.0.1:8080"
        ) from None


def _user_name() -> str:
    """The name that jobs show as their submitter's, percent-encoded; empty where it is not known."""
    name = os.environ.get("LOGNAME") or os.environ.get("USER") or ""
    plain = name.replace(".", "").replace("-", "").replace("_", "")
    if not name or (plain.isascii() and plain.isalnum()):
        return name
    from urllib.parse import quote

    return quote(name[:MOST_USER], errors="replace") if name.isprintable() else ""
