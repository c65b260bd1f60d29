"""HTTP to the engine, in the API that Docker and Podman share, over its unix socket.

All modules here that need the engine call it. The engine is on this machine, because containers mount our
files. A call that finds a kept connection closed is sent again, so every call must be safe to repeat, as
calls by name are. It knows nothing of jobs. It raises EngineFault (engine_errors.py) when the engine
refuses and Unavailable when the engine does not answer.
"""

import asyncio
import contextlib
import json
from codecs import getincrementaldecoder
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast
from urllib.parse import quote, urlencode

import h11

from trainshed.backends.container.engine_errors import fault_of
from trainshed.backends.container.engine_finder import PODMAN
from trainshed.core.errors import Unavailable

VERSION = "1.41"  # of the API, unless the engine says that this is too old
LIBPOD = "v4.0.0"  # of Podman's own API, below /libpod
_PIECE = 256 * 1024
_MOST_IDLE = 8
_MOST_HEAD = 64 * 1024
_LONGEST_LINE = 1 << 20  # of a stream of JSON lines

Body: TypeAlias = Mapping[str, object] | bytes | AsyncIterator[bytes] | None
Query: TypeAlias = Mapping[str, str | int | bool | Mapping[str, object] | tuple[str, ...]]  # a tuple: several


@dataclass(slots=True)
class EngineConnection:
    """One connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    http: h11.Connection = field(default_factory=lambda: h11.Connection(h11.CLIENT))
    used: bool = False

    async def event(self) -> Any:
        while True:
            event = self.http.next_event()
            if event is not h11.NEED_DATA:
                return event
            self.http.receive_data(await self.reader.read(_PIECE))

    async def send(self, event: Any) -> None:
        data = cast(bytes | None, self.http.send(event))
        if data:
            self.writer.write(data)
            await self.writer.drain()

    @property
    def is_reusable(self) -> bool:
        """Whether another call can be made on it."""
        return self.http.our_state is h11.DONE and self.http.their_state is h11.DONE

    def close(self) -> None:
        self.writer.close()


@dataclass(slots=True)
class EngineAnswer:
    """The head of an answer, with its body still to come."""

    status: int
    headers: Mapping[str, str]
    _link: EngineConnection

    async def pieces(self) -> AsyncIterator[bytes]:
        while isinstance(event := await _next_event(self._link), h11.Data):
            yield bytes(event.data)

    async def objects(self) -> AsyncIterator[dict[str, Any]]:
        """The JSON objects of a body that is a stream of them, as for progress and events."""
        rest, decoder, letters = "", json.JSONDecoder(), getincrementaldecoder("utf-8")(errors="replace")
        async for piece in self.pieces():
            rest += letters.decode(piece)
            while text := rest.lstrip():
                try:
                    value, end = decoder.raw_decode(text)
                except json.JSONDecodeError:
                    if len(text) > _LONGEST_LINE:
                        raise Unavailable("The container engine sends what cannot be read.") from None
                    break
                rest = text[end:]
                if isinstance(value, dict):
                    yield value

    async def whole(self) -> bytes:
        return b"".join([piece async for piece in self.pieces()])


class TerminalConnection:
    """A raw connection to a terminal: bytes both ways."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def read(self) -> bytes:
        """The next bytes; none at the end."""
        try:
            return await self._reader.read(_PIECE)
        except OSError:
            return b""

    async def write(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            self._writer.write(data)
            await self._writer.drain()

    def finish(self) -> None:
        """Close the writing side."""
        with contextlib.suppress(OSError):
            self._writer.write_eof()

    def close(self) -> None:
        self._writer.close()


class Engine:
    def __init__(self, socket: str, version: str = VERSION) -> None:
        self.socket, self._version = socket, f"v{version}"
        self._idle: list[EngineConnection] = []
        self._about: dict[str, Any] | None = None

    def _of(self, path: str) -> str:
        return LIBPOD if path.startswith("/libpod/") else self._version

    async def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    async def ask(self, verb: str, path: str, query: Query | None = None, body: Body = None) -> Any:
        """The answer's JSON; None where the body is empty."""
        async with self.open(verb, path, query, body) as answer:
            text = await answer.whole()
        try:
            return json.loads(text) if text.strip() else None
        except ValueError as error:
            raise Unavailable(f"The container engine answers {path} with what is no JSON.") from error

    async def is_podman(self) -> bool:
        """By a header of the shortest answer: Podman takes half a second of CPU to tell its version."""
        async with self.open("GET", "/_ping") as answer:
            await answer.whole()
        return PODMAN in answer.headers

    async def about(self) -> Mapping[str, Any]:
        """How the engine is set up. It is asked once, and again when it may have been restarted."""
        await self.is_podman()  # uses a kept connection: a restart has closed those
        if self._about is None:
            self._about = dict(await self.ask("GET", "/info"))
        return self._about

    @contextlib.asynccontextmanager
    async def open(
        self,
        verb: str,
        path: str,
        query: Query | None = None,
        body: Body = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[EngineAnswer]:
        """Stream an answer. The connection is reused only if the answer was read to its end."""
        head, data = _request(verb, f"/{self._of(path)}{path}", query, body, headers or {})
        link: EngineConnection | None = None
        try:
            link, answer = await self._exchange(head, data)
            if answer.status >= 400:
                raise fault_of(verb, path, answer.status, await answer.whole())
            yield answer
        except OSError as error:
            raise self._unreachable(error) from error
        except h11.ProtocolError as error:
            raise Unavailable(f"The container engine does not keep to HTTP: {error}.") from error
        finally:
            if link is not None:
                self._keep(link)

    async def hijack(self, path: str, body: Mapping[str, object]) -> TerminalConnection:
        """POST, and return the raw connection into which the engine turns it."""
        text = json.dumps(body).encode()
        head = (
            f"POST /{self._version}{path} HTTP/1.1\r\nHost: engine\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
        )
        try:
            reader, writer = await asyncio.open_unix_connection(self.socket, limit=_MOST_HEAD)
        except OSError as error:
            raise self._unreachable(error) from error
        try:
            writer.write(head.encode() + text)
            await writer.drain()
            status = int((await reader.readline()).split()[1])
            while (await reader.readline()).strip():
                pass
            if status >= 300:
                raise fault_of("POST", path, status, await reader.read(_MOST_HEAD))
        except (OSError, ValueError, IndexError) as error:
            writer.close()
            raise Unavailable(f"The container engine does not open {path}: {error}.") from error
        except BaseException:
            writer.close()
            raise
        return TerminalConnection(reader, writer)

    async def _exchange(
        self, head: h11.Request, data: bytes | AsyncIterator[bytes]
    ) -> tuple[EngineConnection, EngineAnswer]:
        while True:
            link = await self._link()
            try:
                await link.send(head)
                if isinstance(data, bytes):
                    await link.send(h11.Data(data=data))
                else:
                    async for piece in data:
                        await link.send(h11.Data(data=piece))
                await link.send(h11.EndOfMessage())
                while isinstance(event := await link.event(), h11.InformationalResponse):
                    pass
            except (OSError, h11.RemoteProtocolError):
                self._lost(link)
                if not link.used or not isinstance(data, bytes):
                    raise
                continue  # a kept connection that the engine has closed
            except BaseException:
                link.close()
                raise
            if not isinstance(event, h11.Response):
                self._lost(link)
                if link.used and isinstance(data, bytes):
                    continue
                raise Unavailable("The container engine hung up.")
            headers = {name.decode().lower(): value.decode(errors="replace") for name, value in event.headers}
            return link, EngineAnswer(event.status_code, headers, link)

    async def _link(self) -> EngineConnection:
        while self._idle:
            link = self._idle.pop()
            if not link.reader.at_eof():
                return link
            self._lost(link)
        return EngineConnection(*await asyncio.open_unix_connection(self.socket))

    def _lost(self, link: EngineConnection) -> None:
        """A connection has ended, perhaps with the engine: the next may be one that is set up otherwise."""
        link.close()
        self._about = None

    def _keep(self, link: EngineConnection) -> None:
        if link.is_reusable and len(self._idle) < _MOST_IDLE:
            link.http.start_next_cycle()
            link.used = True
            self._idle.append(link)
        else:
            self._lost(link)

    def _unreachable(self, error: OSError) -> Unavailable:
        self._about = None
        why = error.strerror or error
        return Unavailable(f"The container engine at {self.socket} does not answer: {why}.")


async def _next_event(link: EngineConnection) -> Any:
    event = await link.event()
    if isinstance(event, h11.ConnectionClosed):
        raise Unavailable("The container engine hung up in the middle of an answer.")
    return event


def _request(
    verb: str, path: str, query: Query | None, body: Body, more: Mapping[str, str]
) -> tuple[h11.Request, bytes | AsyncIterator[bytes]]:
    headers = {"Host": "engine", **more}
    data: bytes | AsyncIterator[bytes]
    if isinstance(body, Mapping):
        data = json.dumps(body).encode()
        headers["Content-Type"] = "application/json"
    else:
        data = body if body is not None else b""
    if isinstance(data, bytes):
        headers["Content-Length"] = str(len(data))
    else:
        headers["Transfer-Encoding"] = "chunked"
        headers.setdefault("Content-Type", "application/x-tar")
    target = quote(path, safe="/:@")
    if query:
        target += "?" + urlencode({name: _words(value) for name, value in query.items()}, doseq=True)
    return h11.Request(method=verb, target=target, headers=list(headers.items())), data


def _words(value: str | int | bool | Mapping[str, object] | tuple[str, ...]) -> str | tuple[str, ...]:
    if isinstance(value, tuple):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value) if isinstance(value, Mapping) else str(value)
