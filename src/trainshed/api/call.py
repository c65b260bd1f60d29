"""A call as handlers see it: path parameters, query, body and caller; and the answers they give.

It is independent of the web framework, so that another interface (gRPC) could make the same calls.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias
from urllib.parse import unquote

from trainshed.api.lasting import UNCHANGING, Need
from trainshed.core.accounts.permission import ANONYMOUS, Permission, Principal, PrincipalKind
from trainshed.core.bucket import BucketInfo
from trainshed.core.bucket_port import SocketSender
from trainshed.core.errors import Invalid, NotFound, Violation
from trainshed.core.ports import PresentRights
from trainshed.wire.page import UNSIGNED, PageTokens

SOCKET = "SOCKET"  # takes the place of a verb in the table: a WebSocket
BREAK_OFF = "break off"  # in a request's state: what ends its connection in the middle of the answer
SENDER = "sender"  # in a request's state: the `SocketSender` of its connection, where that has one
MOST_DIGITS = 18  # of a number in a query: databases hold 64 bits
MOST_KEY = 255  # characters of an idempotency key
MOST_SUBMITTER = 100  # characters of a user's name
MOST_BODY = 1 << 20  # bytes of a body, unless the row of its method says more
MOST_JOB = 16 << 20  # bytes of a job, which brings arguments, variables and scripts
ANY_SIZE = None  # for uploads, which go to disk as they come

Json: TypeAlias = dict[str, object]


async def _nothing() -> AsyncIterator[bytes]:
    return
    yield b""


async def _no_bucket(bucket: str) -> BucketInfo:
    raise NotFound(f"There is no bucket '{bucket}'.")


@dataclass(slots=True)
class Trace:
    """What the audit log may tell of a call. What comes to light while it is answered is added."""

    address: str = ""  # where it comes from
    verb: str = ""
    path: str = ""  # without any token
    project: str = ""  # that it names, or whose bucket it names
    what: str = ""  # what was changed, where the path does not tell it; never a secret
    reason: str = ""  # why it was refused
    who: Principal | None = None  # was found out on the way: the call is written down
    finds_projects: bool = False  # the owner may use every bucket, and whose it was is asked nevertheless
    parts: "list[tuple[Method, Trace, int]]" = field(  # of a batch, with the statuses of their answers
        default_factory=list["tuple[Method, Trace, int]"]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Json
    headers: Mapping[str, str]
    base_url: str
    chunks: AsyncIterator[bytes] = field(default_factory=_nothing)  # the body of a method that streams
    sender: SocketSender | None = None  # for an answer with a content-length
    protocols: tuple[str, ...] = ()  # that a WebSocket's client offers
    principal: Principal = ANONYMOUS  # who calls
    trace: Trace = field(default_factory=Trace)
    pages: PageTokens = UNSIGNED
    look: Callable[[str], Awaitable[BucketInfo]] = (
        _no_bucket  # a bucket's description; NotFound where there is none
    )
    rights: PresentRights = UNCHANGING
    needs: list[Need] = field(default_factory=list[Need])  # what was asked about it so far, and allowed

    async def whole_body(self) -> bytes:
        """All bytes of `chunks`. The row of the method bounds them."""
        return b"".join([chunk async for chunk in self.chunks])

    @property
    def enum_ints(self) -> bool:
        """Whether enums are answered as numbers, as the Python SDK asks."""
        return "enum-encoding=int" in self.query.get("$alt", "")

    @property
    def user_agent(self) -> str:
        return self.headers.get("user-agent", "")

    def idempotency_key(self) -> str:
        """Identifies a create that is sent again; empty where the caller gave none."""
        key = self.headers.get("idempotency-key", "")
        if len(key) > MOST_KEY:
            raise Invalid((Violation("Idempotency-Key", f"is longer than {MOST_KEY} characters."),))
        return key

    def submitter(self) -> str:
        """The account; else the name that our own clients send, percent-encoded: information, not proof."""
        if self.principal.kind is PrincipalKind.ACCOUNT:
            return self.principal.id
        name = unquote(self.headers.get("x-trainshed-user", ""))
        if len(name) > MOST_SUBMITTER or not name.isprintable():
            sentence = f"must be a name of at most {MOST_SUBMITTER} printable characters."
            raise Invalid((Violation("X-Trainshed-User", sentence),))
        return name

    def flag(self, name: str) -> bool:
        return self.query.get(name, "").lower() in ("1", "true", "yes")

    def number(self, name: str) -> int | None:
        text = self.query.get(name, "")
        if not text:
            return None
        if not text.isascii() or not text.isdigit() or len(text) > MOST_DIGITS:
            raise Invalid((Violation(name, f"{name} must be a whole number, not '{text[:40]}'."),))
        return int(text)


@dataclass(frozen=True, slots=True)
class StreamAnswer:
    """An answer in chunks, sent as they come."""

    chunks: AsyncIterator[bytes]
    media_type: str = "application/x-ndjson"
    shows_end: bool = False  # its last words say that it is whole, or it never ends: it may end early


@dataclass(frozen=True, slots=True)
class TextAnswer:
    """A plain text answer."""

    text: str
    status: int = 200
    media_type: str = "text/plain"


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """An answer with headers of its own: whole, or in chunks."""

    content: bytes | AsyncIterator[bytes] = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


class SocketChannel(Protocol):
    """The client's end of a WebSocket."""

    async def hear(self) -> bytes | str | None:
        """The next message; None once the client is gone."""
        ...

    async def say(self, data: bytes | str) -> bool:
        """Waits while the client does not read. False once the client is gone."""
        ...


@dataclass(frozen=True, slots=True)
class SocketAnswer:
    """Accepts the WebSocket. `hold` runs until the conversation ends, or the right to it."""

    hold: Callable[[SocketChannel], Awaitable[None]]
    protocol: str  # one that the client offered
    principal: Principal  # who got the ticket: a WebSocket has no token
    need: Need  # what they must be allowed as long as it lasts
    last_words: Callable[[str], str]  # what is said with the sentence when it ends so


Reply: TypeAlias = Json | StreamAnswer | TextAnswer | RawAnswer | SocketAnswer
Handler: TypeAlias = Callable[[Call], Awaitable[Reply]]


def _as_it_is(handler: Handler) -> Handler:
    return handler


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One row of the table: verb, path, handler, and the permission that callers need."""

    verb: str
    path: str
    handler: Handler  # called by a `Route`, which checks the permission first
    permission: Permission
    worded: Callable[[Handler], Handler] = _as_it_is  # wraps the handler to render errors as another API
    streams: bool = False  # reads its body from `Call.chunks`, of any type, not as JSON
    most_body: int | None = MOST_BODY  # bytes; a larger body is refused
    page: bool = False  # a page of ours: a link on another site may lead to it
    storage: bool = False  # matched before decoding, since names may have slashes; may carry a token
    of_server: bool = False  # concerns all projects: a role in one of them does not open it
    plain: bool = False  # answered to programs of jobs over plain HTTP too, where the server speaks TLS
    keyed: bool = False  # reachable only by an address with a token: its paths could match anything


def row(
    verb: str,
    path: str,
    handler: Handler,
    permission: Permission,
    *,
    streams: bool = False,
    most_body: int | None = MOST_BODY,
    of_server: bool = False,
) -> Method:
    return Method(
        verb=verb,
        path=path,
        handler=handler,
        permission=permission,
        streams=streams,
        most_body=most_body,
        of_server=of_server,
    )
