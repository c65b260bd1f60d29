"""Posts a request to an address, once. `carrier.py` calls it in a thread.

It follows no redirect: an answer 3xx is an answer like any other. It reads at most ANSWER bytes of a body. It
verifies certificates as Python does by default.
"""

import http.client
import socket
import ssl
from urllib.parse import urlsplit

from trainshed.core.notice_message import NoticeRequest
from trainshed.notices.thread import Hold

TIMEOUT = 10.0  # seconds for each step: connecting, sending, each part of the answer
ANSWER = 1000  # bytes that are read of an answer


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


def post(url: str, request: NoticeRequest, hold: Hold) -> tuple[int, str]:
    """The status, and the beginning of the answer. Raises OSError or ValueError where there is none."""
    parts = urlsplit(url)
    tls = ssl.create_default_context() if parts.scheme == "https" else None
    connection = _HeldConnection(parts.hostname or "", parts.port, hold, tls)
    path = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
    try:
        connection.request("POST", path, body=request.body, headers={**request.headers})
        answer = connection.getresponse()
        beginning = answer.read(ANSWER).decode("utf-8", "replace")
        return answer.status, f"{answer.status} {answer.reason}: {beginning}".strip(": ")
    except http.client.HTTPException as error:
        raise OSError(f"it does not speak HTTP ({type(error).__name__})") from error
    finally:
        connection.close()
