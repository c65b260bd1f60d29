"""This server under Google's names: the storage API and the token endpoint, each at the host that has it.

Served by google_listener.py to programs of jobs, whose machines take these names for this server's. Nothing
else of the API is reachable here. A browser never is: who sends an Origin is refused, since anybody may put a
page into a bucket of Google's.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trainshed.api.app import make_app
from trainshed.api.call import Method
from trainshed.api.google_tokens import GoogleTokens, exchange_methods
from trainshed.api.request_gate import RequestGate
from trainshed.core.google import API, OAUTH, PORT, STORAGE

_CREDENTIALS = b"authorization"

# The token of the job whose program is at the other end of a connection; empty where it is not known.
Caller = Callable[[Scope], Awaitable[str]]


class GoogleHosts:
    def __init__(
        self, storage: tuple[Method, ...], tokens: GoogleTokens, gate: RequestGate, caller: Caller
    ) -> None:
        """`storage` are the storage API's rows. Those of its XML API need no token in the address here."""
        json = tuple(method for method in storage if not method.keyed)
        xml = tuple(replace(method, keyed=False) for method in storage if method.keyed)
        older = exchange_methods(tokens, "/oauth2/v3/token", "/oauth2/v4/token")
        rows = {
            API: (*older, *json),
            STORAGE: (*json, *xml),
            OAUTH: exchange_methods(tokens, "/token"),
        }
        self._apps: dict[str, ASGIApp] = {
            host: make_app(methods, gate, _foreign) for host, methods in rows.items()
        }
        self._caller = caller

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        app = self._apps.get(headers.get("host", "").lower().removesuffix(f":{PORT}"))
        if app is None:
            await PlainTextResponse("This host is not served here.\n", 421)(scope, receive, send)
            return
        if "authorization" not in headers and (token := await self._caller(scope)):
            scope["headers"] = [*scope["headers"], (_CREDENTIALS, f"Bearer {token}".encode())]
        await app(scope, receive, _spelling(send))


class _Spelled(bytes):
    """A header's name that stays as it is written: uvicorn makes all others lower-case."""

    def lower(self) -> bytes:
        return self


# TensorFlow looks for these in just this spelling.
_SPELLED = {name.lower(): _Spelled(name) for name in (b"Location", b"Range")}


def _spelling(send: Send) -> Send:
    async def spelled(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [(_SPELLED.get(name, name), value) for name, value in message["headers"]]
            message = {**message, "headers": headers}
        await send(message)

    return spelled


def _foreign(host: str | None, origin: str | None) -> str | None:
    return None if origin is None else f"Requests from pages of {origin!r} are refused."
