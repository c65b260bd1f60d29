"""A server on loopback that answers as a test says and remembers what it was asked."""

import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    headers: dict[str, str]
    body: Any
    connection: int


@dataclass
class Script:
    """`answer` gets the request and a handler to write with, or returns (code, JSON)."""

    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    answer: Callable[[Asked, "Handler"], tuple[int, Any] | None] = lambda asked, handler: (200, {})

    def paths(self) -> list[str]:
        return [f"{one.method} {one.path}" for one in self.asked]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16
    server: "Server"  # pyright: ignore[reportIncompatibleVariableOverride]

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def handle_any(self) -> None:
        length = int(self.headers.get("content-length", 0))
        content = self.rfile.read(length)
        headers = {name.lower(): value for name, value in self.headers.items()}
        is_json = content and headers.get("content-type") == "application/json"
        asked = Asked(
            self.command,
            self.path,
            headers,
            json.loads(content) if is_json else content or None,
            self.client_address[1],
        )
        self.server.script.asked.append(asked)
        answer = self.server.script.answer(asked, self)
        if answer is not None:
            self.reply(*answer)

    do_GET = do_POST = do_PATCH = do_DELETE = handle_any

    def reply(self, code: int, content: Any) -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def hang_up(self) -> None:
        self.close_connection = True

    def begin_stream(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()

    def piece(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def end_stream(self) -> None:
        self.piece(b"")


class Server(ThreadingHTTPServer):
    daemon_threads = True
    script: Script

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # a client that goes away in the middle is part of many tests


@contextmanager
def scripted() -> Iterator[Script]:
    with Server(("127.0.0.1", 0), Handler) as server:
        assert isinstance(server, socketserver.BaseServer)
        server.script = Script(url=f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.script
        finally:
            server.shutdown()
            thread.join()


def failure(code: int, status: str, message: str, **violations: str) -> tuple[int, Any]:
    found = [{"field": name, "description": text} for name, text in violations.items()]
    details = [{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": found}]
    return code, {"error": {"code": code, "status": status, "message": message, "details": details}}


def entry(number: int, text: str, task: str = "workerpool0-0", attempt: int = 0) -> bytes:
    mark = f"l{number:020d}"
    line = {"insertId": mark, "task": task, "attempt": attempt, "stream": "stdout", "text": text}
    return json.dumps(line).encode() + b"\n"


END = b'{"end": true}\n'


def frame(
    number: int, data: bytes, task: str = "workerpool0-0", attempt: int = 0, stream: str = "stdout"
) -> bytes:
    """One of customJobs:output, which ends at the place of that number."""
    head = {"task": task, "attempt": attempt, "stream": stream, "size": len(data), "next": str(number)}
    return json.dumps(head).encode() + b"\n" + data
