"""HTTP at the server's sockets: uvicorn's, with bounds on what anybody may send before a request is known.

`serving` names it to uvicorn. Nobody is authenticated before the head of a request is there, so heads are
bounded: in size, in time, and all connections outside a request together, of which the longest waiting is
closed first. A body that stops coming ends its request. So many connections are served at a time, and those
beyond are refused with 503: all but /healthz, and some of this machine's own, for who has to see to it. It
never ends a request that waits for the server: long polls, followers, uploads that the disk holds up, and
WebSockets, which have another protocol, go on.
"""

import asyncio
import json
import resource
from functools import partial
from typing import Any, NoReturn, cast

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from trainshed.api.call import BREAK_OFF, SENDER
from trainshed.serving.direct_sender import DirectSender
from trainshed.settings.values import is_loopback
from trainshed.wire.status import HeadFault

MOST_HEAD = 64 << 10  # bytes of a head
MOST_HEADERS = 1000
MOST_PIPELINED = 16  # requests that wait for the answer to the one before them
HEAD_SECONDS = 30.0  # for a head, from the first byte or the connection on; and to be rid of a refused body
BODY_SECONDS = 120.0  # without a byte of a body that is not whole
LINGER = 1.0  # seconds in which a client may read a refusal while it still sends

MOST_WAITING = 32 << 20  # bytes of memory for all connections that are outside a request
MOST_CONNECTIONS = 4096  # in a request, at most; half of the file numbers where these are fewer
RESERVE = 128  # more connections, for heads of requests that may be refused, and for /healthz
OWN_RESERVE = 64  # of them for requests from this machine
_MOST_LEAVING = 1024  # refused connections whose clients may still read that
_HEALTH = b"/healthz"
_CONNECTION_COST = 8 << 10  # bytes that a connection is taken to need; an estimate
_HEADER_COST = 200  # bytes that a header is taken to need beside its text; an estimate


class WaitingConnections:
    """The connections outside a request, the longest waiting first, and about how much memory they take."""

    def __init__(self, most: int = MOST_WAITING) -> None:
        self._most, self._total = most, 0
        self._sizes: dict[BoundedHttp, int] = {}

    def __len__(self) -> int:
        return len(self._sizes)

    def add(self, connection: "BoundedHttp", size: int) -> None:
        """Add it, or its new size. Those that wait longest are closed where all together are too large."""
        cost = size + _CONNECTION_COST
        self._total += cost - self._sizes.get(connection, 0)
        self._sizes[connection] = cost
        while self._total > self._most:
            self.give_up_first()

    def remove(self, connection: "BoundedHttp") -> None:
        self._total -= self._sizes.pop(connection, 0)

    def give_up_first(self) -> bool:
        """Close the one that waits longest; False where none waits."""
        first = next(iter(self._sizes), None)
        if first is None:
            return False
        self.remove(first)
        first.give_up()
        return True


class ConnectionState(ServerState):
    """What all connections share."""

    def __init__(self, most: int | None = None) -> None:
        super().__init__()
        self.waiting = WaitingConnections()
        self.leaving = 0  # refused ones, which are closed in a moment
        self._most = _most_connections() if most is None else most

    def make_room(self) -> bool:
        """For a connection that is about to come, by closing one outside a request; False where none is."""
        return self._open < self._most + RESERVE or self.waiting.give_up_first()

    def is_crowded(self, *, own: bool) -> bool:
        """Whether the request whose head is whole now is one too many; `own`: it is from this machine."""
        return self._open - len(self.waiting) > self._most + (OWN_RESERVE if own else 0)

    @property
    def _open(self) -> int:
        return len(self.connections) - self.leaving


def _most_connections() -> int:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_CONNECTIONS if files < 0 else min(MOST_CONNECTIONS, files // 2)


def is_own(client: tuple[str, int] | None) -> bool:
    """Whether a client is on this machine; None: at a Unix socket."""
    return client is None or is_loopback(client[0].removeprefix("::ffff:"))


class BoundedHttp(HttpToolsProtocol):
    head_seconds = HEAD_SECONDS
    body_seconds = BODY_SECONDS

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._state = cast(ConnectionState, server_state)
        self._waiting = self._state.waiting
        self._fault: HeadFault | None = None
        self._refused = False  # what still comes is thrown away
        self._head_since: float | None = None  # when the head that is not whole began
        self._head_size = 0  # bytes of it, as they came
        self._text_size = 0  # bytes of its address and of its headers that are whole
        self._in_body = False
        self._heard_at = self._answered_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    # ---- a connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        has_room = self._state.make_room()
        super().connection_made(transport)
        self._begin_head()
        if not has_room:
            self._refuse(HeadFault.CROWDED)
            return
        self._waiting.add(self, 0)
        self._timer = self.loop.call_later(self.head_seconds, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        self._waiting.remove(self)
        self._state.leaving -= self._refused
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self) -> None:
        self._waiting.remove(self)
        if self._timer is not None:
            self._timer.cancel()
        super().handle_websocket_upgrade()

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        self._heard_at = self.loop.time()
        if self._head_since is None and not self._in_body:
            self._begin_head()
        began = self._head_since
        super().data_received(data)
        if self._refused or self._in_body:
            return
        if self._head_since is None:
            if self._is_answered and self.timeout_keep_alive_task is None:
                self._begin_head()  # the end of a body that was answered before: the next request may come
            return
        if self._head_since is began:  # else it began within these bytes, of which few are its own
            self._head_size += len(data)
        if self._head_size > MOST_HEAD:
            self._refuse(HeadFault.LONG_ADDRESS if not self.headers else HeadFault.LARGE_HEAD)
        elif self._is_answered:
            self._waiting.add(self, self._head_size + _HEADER_COST * len(self.headers or ()))

    # ---- a request

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._text_size = 0
        if self._head_since is None:
            self._begin_head()

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._text_size += len(url)
        if self._text_size > MOST_HEAD:
            self._stop(HeadFault.LONG_ADDRESS)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._text_size += len(name) + len(value) + 4
        if self._text_size > MOST_HEAD or len(self.headers) >= MOST_HEADERS:
            self._stop(HeadFault.LARGE_HEAD)
        if name.lower() == b"host" and any(known == b"host" for known, _ in self.headers):
            self._stop(HeadFault.TWO_HOSTS)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if len(self.pipeline) >= MOST_PIPELINED:
            self._stop(HeadFault.TOO_MANY)
        self._head_since, self._in_body = None, True
        self._waiting.remove(self)
        if self._state.is_crowded(own=is_own(self.client)) and self.url.partition(b"?")[0] != _HEALTH:
            self._stop(HeadFault.CROWDED)
        super().on_headers_complete()
        state, break_off = self.scope.setdefault("state", {}), partial(self._break_off, self.cycle)
        state[BREAK_OFF] = break_off
        if self.scheme == "http":
            state[SENDER] = DirectSender(self.transport, self.flow, self.cycle, break_off)

    def _break_off(self, cycle: RequestResponseCycle) -> None:
        """Ends the connection in the middle of an answer, which uvicorn would take for a fault of ours."""
        cycle.disconnected = True
        self.transport.close()

    def on_message_complete(self) -> None:
        self._in_body = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self._answered_at = self.loop.time()
        super().on_response_complete()
        if not self.pipeline and not self.transport.is_closing():
            self._waiting.add(self, 0)

    # ---- an end

    def give_up(self) -> None:
        """Close the connection. Who sent a part of a request is told that the rest is late."""
        if self._is_answered if self._in_body else not self._head_size:
            self.transport.close()
        else:
            self._refuse(HeadFault.LATE)

    def send_400_response(self, msg: str) -> None:
        """Called by uvicorn for every request that cannot be read, also for those that were stopped here."""
        self._refuse(self._fault or HeadFault.MALFORMED)

    @property
    def _is_answered(self) -> bool:
        """Whether there is no request that waits for its answer."""
        return not self.cycle or self.cycle.response_complete

    def _begin_head(self) -> None:
        self._head_since, self._head_size = self.loop.time(), 0

    def _stop(self, fault: HeadFault) -> NoReturn:
        """Leave the parser, which calls `send_400_response`."""
        self._fault = fault
        raise ValueError(fault.name)

    def _refuse(self, fault: HeadFault) -> None:
        """Answer and close, a little later: closed with bytes unread, the client would not see the answer."""
        self._state.leaving += not self._refused
        self._refused = True
        self._waiting.remove(self)
        self.headers, self.scope, self.parser = [], None, None  # type: ignore[assignment] - while it lingers
        if not self._is_answered:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            if self.cycle.response_started:
                self.transport.close()
                return
        self.flow.resume_reading()
        self.transport.write(_rendered(fault))
        self.loop.call_later(LINGER if self._state.leaving < _MOST_LEAVING else 0, self.transport.close)

    def _look(self) -> None:
        """Close the connection if it is late; else look again, at the latest when a head could be late."""
        if self.transport.is_closing():
            return
        now = self.loop.time()
        due = self._due(now)
        if due is not None and now >= due:
            self.give_up()
            return
        later = now + self.head_seconds
        self._timer = self.loop.call_at(later if due is None else min(due, later), self._look)

    def _due(self, now: float) -> float | None:
        """When the client will be late; None while it need not send anything."""
        if not self._in_body:
            return self._head_since + self.head_seconds if self._head_since and self._is_answered else None
        if self._is_answered:
            return self._answered_at + self.head_seconds
        if self.flow.read_paused or self.cycle.waiting_for_100_continue:
            self._heard_at = now  # the server lets it wait
        return self._heard_at + self.body_seconds


def _rendered(fault: HeadFault) -> bytes:
    code, body = fault.to_http()
    content = json.dumps(body).encode()
    retry = b"retry-after: 1\r\n" if fault is HeadFault.CROWDED else b""
    head = (
        b"content-type: application/json; charset=UTF-8\r\nx-content-type-options: nosniff\r\n"
        b"connection: close\r\n%bcontent-length: %d\r\n\r\n" % (retry, len(content))
    )
    return STATUS_LINE[code] + head + content
