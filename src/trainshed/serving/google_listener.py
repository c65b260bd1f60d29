"""Serves Google's names: a TLS listener on a loopback address of this server's own (decision 34).

`serving` opens it once the server is ready, so that only the first launch waits for certificates. It tells
the backends by a GoogleRedirect how far the names lead here. It never fails the server: it says what it
cannot do.
"""

import asyncio
import contextlib
import hashlib
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from trainshed.backends.machine.google_redirect import GoogleRedirect
from trainshed.certificates.home import Certificates
from trainshed.core.errors import Unavailable
from trainshed.core.google import PORT

log = logging.getLogger(__name__)

DAILY = 24 * 3600.0  # seconds between looks at certificates that may expire
_TRIES = 16

# A server at the socket; with the pid of a container's init where all who come there are in that container.
ServeTls = Callable[[socket.socket, ssl.SSLContext, int], Awaitable[asyncio.Server]]
# Answers on a connection that is there already, of a program of that job.
AnswerTls = Callable[[socket.socket, ssl.SSLContext, str], Awaitable[None]]


class GoogleListener:
    def __init__(
        self,
        home: Path,
        certificates: Certificates,
        redirect: GoogleRedirect,
        serve: ServeTls,
        answer: AnswerTls,
    ) -> None:
        self._home, self._certificates, self._redirect = home, certificates, redirect
        self._serve, self._answer = serve, answer
        redirect.settled.clear()  # launches wait from now on until it is known how far the names lead here
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._server: asyncio.Server | None = None
        self._renewing: asyncio.Task[None] | None = None

    async def open(self) -> str:
        """How far Google's names lead here, in words."""
        redirect = self._redirect
        try:
            await self._renew()
            redirect.roots = str(self._certificates.roots)
            self._renewing = asyncio.create_task(self._renew_daily())
            listener = _listen(self._home)
            redirect.address = listener.getsockname()[0]
            self._server = await self._serve(listener, self._context, 0)
        except (Unavailable, OSError, ssl.SSLError) as error:
            redirect.address, redirect.fault = "", str(error)
        finally:
            redirect.settled.set()
        if redirect.address:
            return f"lead programs of jobs here ({redirect.address})"
        return f"not led here from processes, whose way to buckets is /gcs: {redirect.fault}"

    async def serve_at(self, listener: socket.socket, init: int) -> asyncio.Server:
        """The same at a socket that the init of a container handed over."""
        return await self._serve(listener, self._context, init)

    async def answer(self, connection: socket.socket, job: str) -> None:
        """The same on a connection that came through the tunnel of a pod."""
        await self._answer(connection, self._context, job)

    async def close(self) -> None:
        self._redirect.settled.set()
        if self._renewing is not None:
            self._renewing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._renewing
        if self._server is not None:
            self._server.close()

    async def _renew(self) -> None:
        await asyncio.to_thread(self._certificates.renew)
        self._context.load_cert_chain(self._certificates.server)  # connections from now on have it

    async def _renew_daily(self) -> None:
        while True:
            await asyncio.sleep(DAILY)
            try:
                await self._renew()
            except (Unavailable, OSError, ssl.SSLError) as error:
                log.warning("the certificate for Google's names cannot be renewed: %s", error)


def _listen(home: Path) -> socket.socket:
    """At an address that is always the same for a home: programs that run find the next server there."""
    fault = OSError("there is no free address")
    for address in _addresses(home):
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((address, PORT))
            listener.listen()
        except PermissionError as error:
            listener.close()
            raise Unavailable(f"this server may not listen at port {PORT}; root may") from error
        except OSError as error:
            listener.close()
            fault = error
            continue
        listener.setblocking(False)
        return listener
    raise Unavailable(f"port {PORT} of loopback cannot be had: {fault.strerror or fault}") from fault


def _addresses(home: Path) -> Iterator[str]:
    for number in range(_TRIES):
        digest = hashlib.sha256(f"{home}:{number}".encode(errors="surrogateescape")).digest()
        yield f"127.77.{digest[0]}.{1 + digest[1] % 254}"
