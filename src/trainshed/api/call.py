"""A call as a handler sees it: parameters, query, body, and who calls; free of the web framework.

Kept this small so that another door (gRPC, transcoded) can make the same calls.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from trainshed.core.bucket import BucketInfo
from trainshed.core.errors import Invalid, NotFound, Violation
from trainshed.core.permission import ANONYMOUS, Permission, Principal

SOCKET = "SOCKET"  # stands for a verb in the table: who comes wants a conversation
MOST_KEY = 255  # characters of an idempotency key

Json: TypeAlias = dict[str, object]


async def _nothing() -> AsyncIterator[bytes]:
    return
    yield b""


async def _no_bucket(bucket: str) -> BucketInfo:
    raise NotFound(f"There is no bucket '{bucket}'.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Json
    headers: Mapping[str, str]
    base_url: str
    chunks: AsyncIterator[bytes] = field(default_factory=_nothing)  # the body of a method that streams
    protocols: tuple[str, ...] = ()  # that a WebSocket's client offers
    principal: Principal = ANONYMOUS  # who calls
    look: Callable[[str], Awaitable[BucketInfo]] = _no_bucket  # at a bucket; NotFound where there is none

    @property
    def enum_ints(self) -> bool:
        """The Python SDK asks for enums as numbers."""
        return "enum-encoding=int" in self.query.get("$alt", "")

    @property
    def user_agent(self) -> str:
        return self.headers.get("user-agent", "")

    def idempotency_key(self) -> str:
        """By which a create that is sent again is known; empty where the caller gave none."""
        key = self.headers.get("idempotency-key", "")
        if len(key) > MOST_KEY:
            raise Invalid((Violation("Idempotency-Key", f"is longer than {MOST_KEY} characters."),))
        return key

    def flag(self, name: str) -> bool:
        return self.query.get(name, "").lower() in ("1", "true", "yes")

    def number(self, name: str) -> int | None:
        text = self.query.get(name, "")
        if not text:
            return None
        if not text.isascii() or not text.isdigit():
            raise Invalid((Violation(name, f"{name} must be a whole number, not '{text[:40]}'."),))
        return int(text)


@dataclass(frozen=True, slots=True)
class StreamAnswer:
    """An answer that goes on: chunks as they come."""

    chunks: AsyncIterator[bytes]
    media_type: str = "application/x-ndjson"


@dataclass(frozen=True, slots=True)
class TextAnswer:
    """An answer for people."""

    text: str
    status: int = 200
    media_type: str = "text/plain"


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """An answer whose every header matters: at once, or as chunks that come."""

    content: bytes | AsyncIterator[bytes] = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


class SocketChannel(Protocol):
    """The other side of a conversation."""

    async def hear(self) -> bytes | str | None:
        """What it said, as bytes or as text; None where nobody is there any more."""
        ...

    async def say(self, data: bytes | str) -> bool:
        """Waits while it does not listen. False where nobody is there any more."""
        ...


@dataclass(frozen=True, slots=True)
class SocketAnswer:
    """An answer that is a conversation, for who has been let in."""

    hold: Callable[[SocketChannel], Awaitable[None]]
    protocol: str  # of those the other side offered


Reply: TypeAlias = Json | StreamAnswer | TextAnswer | RawAnswer | SocketAnswer
Handler: TypeAlias = Callable[[Call], Awaitable[Reply]]


def _as_it_is(handler: Handler) -> Handler:
    return handler


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One row of the table: which verb and path reach which handler, and what who comes must be allowed."""

    verb: str
    path: str
    handler: Handler  # called by a `Route`, which checks the permission first
    permission: Permission
    worded: Callable[[Handler], Handler] = _as_it_is  # the handler, with its refusals in words of another API
    streams: bool = False  # takes its body in chunks as they come, of any kind and length, instead of as JSON
    storage: bool = False  # matched as it was sent, since names in it may hold anything; may carry a token
    keyed: bool = False  # reachable only by an address that carries a token: its paths could be anything
