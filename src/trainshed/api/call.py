"""A call as a handler sees it: parameters, query, body, and who calls; free of the web framework.

Kept this small so that another door (gRPC, transcoded) can make the same calls.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from trainshed.core.errors import Invalid, Violation

Json: TypeAlias = dict[str, object]


async def _nothing() -> AsyncIterator[bytes]:
    return
    yield b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Json
    headers: Mapping[str, str]
    base_url: str
    chunks: AsyncIterator[bytes] = field(default_factory=_nothing)  # the body of a method that streams

    @property
    def enum_ints(self) -> bool:
        """The Python SDK asks for enums as numbers."""
        return "enum-encoding=int" in self.query.get("$alt", "")

    @property
    def user_agent(self) -> str:
        return self.headers.get("user-agent", "")

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
class Stream:
    """An answer that goes on: chunks as they come."""

    chunks: AsyncIterator[bytes]
    media_type: str = "application/x-ndjson"


@dataclass(frozen=True, slots=True)
class Text:
    """An answer for people."""

    text: str
    status: int = 200
    media_type: str = "text/plain"


Reply: TypeAlias = Json | Stream | Text
Handler: TypeAlias = Callable[[Call], Awaitable[Reply]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One row of the table: which verb and path reach which handler."""

    verb: str
    path: str
    handler: Handler
    is_open: bool = False  # reachable without a token
    streams: bool = False  # takes its body in chunks as they come, of any kind and length, instead of as JSON
