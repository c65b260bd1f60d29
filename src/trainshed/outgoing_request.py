"""Sends one request to an address of somebody else, and reads its answer. `bounded_thread` calls it.

It follows no redirect: an answer 3xx is an answer like any other. It reads at most `most` bytes of a body. It
verifies certificates as Python does by default.
"""

import http.client
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from trainshed.bounded_thread import Hold

TIMEOUT = 10.0  # seconds for each step: connecting, sending, each part of the answer


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingRequest:
    url: str
    verb: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class OutgoingAnswer:
    status: int
    reason: str
    body: bytes  # or its beginning


class _HeldConnection(http.client.HTTPConnection):
    """Gives its socket out before anything is sent, and again once it speaks TLS."""

    def __init__(self, host: str, port: int | None, hold: Hold, tls: ssl.SSLContext | None) -> None:
        self.default_port = http.client.HTTPS_PORT if tls else http.client.HTTP_PORT
        super().__init__(host, port, timeout=TIMEOUT)
        self._hold, self._tls = hold, tls

    def connect(self) -> None:
        plain = socket.create_connection((self.host, self.port), TIMEOUT)
        self.sock = plain
        if self._tls is not None:
            self.sock = self._tls.wrap_socket(plain, server_hostname=self.host, do_handshake_on_connect=False)
        self._hold(self.sock)
        if isinstance(self.sock, ssl.SSLSocket):
            self.sock.do_handshake()


def send_request(request: OutgoingRequest, hold: Hold, most: int) -> OutgoingAnswer:
    """Raises OSError or ValueError where there is no answer."""
    parts = urlsplit(request.url)
    tls = ssl.create_default_context() if parts.scheme == "https" else None
    connection = _HeldConnection(parts.hostname or "", parts.port, hold, tls)
    path = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
    try:
        connection.request(request.verb, path, body=request.body, headers={**request.headers})
        answer = connection.getresponse()
        return OutgoingAnswer(answer.status, answer.reason, answer.read(most))
    except http.client.HTTPException as error:
        raise OSError(f"it does not speak HTTP ({type(error).__name__})") from error
    finally:
        connection.close()
