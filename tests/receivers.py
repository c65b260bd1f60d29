"""Receivers of notices for tests, real ones: an HTTP server that can fail, stall or die, and a mail server.

Each runs in threads of this process. A receiver that is closed frees its port, so that connections are
refused; `HttpReceiver.again` opens it there once more.
"""

import asyncio
import contextlib
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[int], int | None]  # the number of the request to a status; None: no answer, ever


@dataclass(frozen=True)
class Delivered:
    headers: dict[str, str]
    body: bytes
    status: int | None  # what it was answered

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class HttpReceiver:
    """`answer` says what becomes of each request; all are kept in `requests`."""

    answer: Answer = lambda _: 200
    requests: list[Delivered] = field(default_factory=list[Delivered])
    port: int = 0
    location: str = ""  # of redirects
    tls: ssl.SSLContext | None = None
    _server: ThreadingHTTPServer | None = None
    _over: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hooks/secret-path"

    @property
    def taken(self) -> list[Delivered]:
        return [item for item in self.requests if item.status is not None and item.status < 300]

    def again(self) -> "HttpReceiver":
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                status = receiver.answer(len(receiver.requests))
                receiver.requests.append(Delivered(dict(self.headers), body, status))
                if status is None:
                    receiver._over.wait()
                    return
                self.send_response(status)
                if receiver.location:
                    self.send_header("Location", receiver.location)
                self.end_headers()
                with contextlib.suppress(OSError):
                    self.wfile.write(b"x" * 5000)

            def log_message(self, format: str, *args: object) -> None:
                """Nobody reads it."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: object, client_address: object) -> None:
                """A server that was killed leaves half a request."""

        self._server = Server(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_address[1]
        if self.tls is not None:
            self._server.socket = self.tls.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def close(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def __enter__(self) -> "HttpReceiver":
        return self.again()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.close()


@dataclass
class MailReceiver:
    """A mail server that speaks enough of SMTP: EHLO, STARTTLS, AUTH PLAIN, MAIL, RCPT, DATA, QUIT."""

    tls: ssl.SSLContext | None = None
    refused: str = ""  # an address for which it takes no mail
    mails: list[tuple[str, EmailMessage]] = field(default_factory=list[tuple[str, EmailMessage]])
    logins: list[tuple[str, bool]] = field(default_factory=list[tuple[str, bool]])  # and whether over TLS
    port: int = 0
    is_closed: bool = False  # whether it refuses every password

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        recipient = ""

        def say(text: str) -> None:
            writer.write(f"{text}\r\n".encode())

        say("220 here")
        while line := (await reader.readline()).decode().strip():
            is_secret = writer.get_extra_info("ssl_object") is not None
            verb = line.split(maxsplit=1)[0].upper()
            if verb == "EHLO":
                offers = ["here", "AUTH PLAIN", *(["STARTTLS"] if self.tls and not is_secret else [])]
                for offer in offers:
                    say(f"250-{offer}")
                say("250 8BITMIME")
            elif verb == "STARTTLS":
                say("220 go ahead")
                await writer.drain()
                await writer.start_tls(self.tls)  # pyright: ignore[reportArgumentType]
            elif verb == "AUTH":
                self.logins.append((line.split()[2], is_secret))
                say("535 who are you?" if self.is_closed else "235 welcome")
            elif verb == "RCPT":
                recipient = line.partition("<")[2].partition(">")[0]
                say("550 no such user" if recipient == self.refused else "250 fine")
            elif verb == "DATA":
                say("354 go on")
                text = (await reader.readuntil(b"\r\n.\r\n"))[:-3].replace(b"\r\n..", b"\r\n.")
                self.mails.append((recipient, message_from_bytes(text, policy=policy.default)))
                say("250 taken")
            else:
                say("221 bye" if verb == "QUIT" else "250 fine")
            await writer.drain()
            if verb == "QUIT":
                break
        writer.close()


@contextlib.contextmanager
def mail_receiver(tls: ssl.SSLContext | None = None, refused: str = "") -> Iterator[MailReceiver]:
    receiver, over = MailReceiver(tls=tls, refused=refused), asyncio.Event()
    ready, loops = threading.Event(), list[asyncio.AbstractEventLoop]()

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        server = await asyncio.start_server(receiver.talk, "127.0.0.1", 0)
        async with server:
            receiver.port = server.sockets[0].getsockname()[1]
            ready.set()
            await over.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    ready.wait()
    try:
        yield receiver
    finally:
        loops[0].call_soon_threadsafe(over.set)
        thread.join()
