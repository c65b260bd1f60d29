"""One kept-alive HTTP connection and the rules for asking again.

It knows HTTP and JSON and nothing of jobs. Not for use by several threads at once. It asks again by itself
only where that is safe: the request never left, or the caller says a second asking is harmless.
"""

import http.client
import json
import random
import select
import ssl
import time
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias
from urllib.parse import SplitResult, urlsplit

from trainshed import __version__
from trainshed.client.errors import ApiError, ClientError, Interrupted, Unreachable

Json: TypeAlias = dict[str, Any]

PAUSES = (
    0.05,
    0.1,
    0.2,
    0.4,
)  # seconds between tries: a restarting server is back, a missing one is told soon
CONNECT_TIMEOUT = 10.0
READ_TIMEOUT = 60.0
IDLE_TIMEOUT = 120.0  # a stream's keep-alives come more often than this


class Connection:
    def __init__(self, url: str, token: str | None, pauses: tuple[float, ...] = PAUSES) -> None:
        self.url = url.rstrip("/")
        self._parts = _split(self.url)
        self._headers = {"Accept": "application/json", "User-Agent": f"trainshed/{__version__}"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._pauses = pauses
        self._open: http.client.HTTPConnection | None = None

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def request(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        repeatable: bool | None = None,
        timeout: float = READ_TIMEOUT,
    ) -> Json:
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
                busy = isinstance(error, Interrupted) or error.code == http.HTTPStatus.SERVICE_UNAVAILABLE
                if pause is None or not (repeatable and busy):
                    raise
            time.sleep(pause * random.uniform(0.8, 1.2))
        raise AssertionError("the last try either answers or raises")

    def lines(self, path: str, timeout: float = IDLE_TIMEOUT) -> Iterator[bytes]:
        """The lines of a streamed answer, each as soon as it is there, on a connection of its own.

        Raises Interrupted when the stream breaks off before its end; empty lines are left out.
        """
        connection = self._connect()
        try:
            with _translated(self.url):
                if connection.sock is not None:
                    connection.sock.settimeout(timeout)
                connection.request("GET", self._parts.path + path, headers=self._headers)
                answer = connection.getresponse()
                if answer.status != http.HTTPStatus.OK:
                    raise ApiError.read(answer.status, answer.reason, answer.read())
            unfinished: list[bytes] = []
            while True:
                with _translated(self.url):
                    piece = answer.read1(1 << 16)  # whatever has come, without waiting for more
                if not piece:
                    break
                head, newline, tail = piece.rpartition(b"\n")
                if newline:
                    yield from filter(None, b"".join((*unfinished, head)).split(b"\n"))
                    unfinished.clear()
                unfinished.append(tail)
            yield from filter(None, (b"".join(unfinished),))
        finally:
            connection.close()

    def _prepare(self, body: Json | None, headers: Mapping[str, str] | None) -> tuple[bytes | None, Json]:
        sent = {**self._headers, **(headers or {})}
        if body is None:
            return None, sent
        return json.dumps(body, allow_nan=False).encode(), {**sent, "Content-Type": "application/json"}

    def _exchange(
        self, method: str, path: str, data: bytes | None, headers: Mapping[str, str], timeout: float
    ) -> Json:
        connection = self._reusable() or self._connect()
        self._open = None  # until the answer is read whole, the connection is not fit for another question
        try:
            with _translated(self.url):
                if connection.sock is not None:
                    connection.sock.settimeout(timeout)
                connection.request(method, self._parts.path + path, data, headers)
                answer = connection.getresponse()
                content = answer.read()
        except BaseException:
            connection.close()
            raise
        self._open = connection
        if not http.HTTPStatus.OK <= answer.status < http.HTTPStatus.MULTIPLE_CHOICES:
            raise ApiError.read(answer.status, answer.reason, content)
        try:
            return json.loads(content) if content else {}
        except ValueError as error:
            raise ClientError(f"{self.url} does not answer in JSON: is it a Trainshed server?") from error

    def _reusable(self) -> http.client.HTTPConnection | None:
        """The kept connection, unless the server closed it meanwhile: a POST must not be risked on that."""
        kept, self._open = self._open, None
        if kept is None or kept.sock is None:
            return None
        readable, _, _ = select.select([kept.sock], [], [], 0)
        if readable:
            kept.close()
            return None
        return kept

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        secure = self._parts.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = kind(host, port, timeout=CONNECT_TIMEOUT)
        try:
            connection.connect()  # sets TCP_NODELAY
        except ssl.SSLError as error:
            raise ClientError(f"{self.url}: {error}") from error
        except OSError as error:
            raise Unreachable(self.url, error.strerror or str(error)) from error
        return connection


class _translated:
    """Turns what the standard library raises in the middle of an exchange into `Interrupted`."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, (OSError, http.client.HTTPException)):
            raise Interrupted(
                f"the connection to {self._url} broke off ({error or type(error).__name__})"
            ) from error


def _split(url: str) -> SplitResult:
    parts = urlsplit(url)
    try:
        usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port or True)
    except ValueError:
        usable = False
    if not usable:
        raise ClientError(
            f"{url!r} is not the address of a server; it should read like http://127.0.0.1:8080"
        )
    return parts
