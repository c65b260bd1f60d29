"""Serves the storage API and the token endpoint under Google's host names, to programs of jobs.

serving/google_listener.py calls it. The machines of jobs resolve these names to this server. No other part of
the API is reachable here. What a web page sends (it has an Origin or Sec-Fetch-Site) is refused, since
anybody may put a page into a bucket of Google's.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trainshed.api.answer_headers import sealing
from trainshed.api.app import make_app
from trainshed.api.call import Method
from trainshed.api.google_tokens import GoogleTokens, exchange_methods
from trainshed.api.request_gate import RequestGate
from trainshed.core.google import API, OAUTH, PORT, STORAGE

_CREDENTIALS = b"authorization"

# The token of the job whose program made the connection; empty where it is unknown.
Caller = Callable[[Scope], Awaitable[str]]


class GoogleHosts:
    def __init__(
        self, storage: tuple[Method, ...], tokens: GoogleTokens, gate: RequestGate, caller: Caller
    ) -> None:
        """`storage` has the rows of the storage API. Here its XML rows need no token in the address."""
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
            refusal = PlainTextResponse("This host is not served here.\n", 421)
            await refusal(scope, receive, sealing(send))
            return
        if "authorization" not in headers and (token := await self._caller(scope)):
            scope["headers"] = [*scope["headers"], (_CREDENTIALS, f"Bearer {token}".encode())]
        await app(scope, receive, _spelling(send))


class _Spelled(bytes):
    """A header name that keeps its case. uvicorn lower-cases all others."""

    def lower(self) -> bytes:
        return self


# TensorFlow compares these names with case.
_SPELLED = {name.lower(): _Spelled(name) for name in (b"Location", b"Range")}


def _spelling(send: Send) -> Send:
    async def spelled(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [(_SPELLED.get(name, name), value) for name, value in message["headers"]]
            message = {**message, "headers": headers}
        await send(message)

    return spelled


def _foreign(headers: Mapping[str, str], page: bool) -> str | None:
    for name in ("origin", "sec-fetch-site"):
        if name in headers:
            return f"Requests from web pages ({name}: {headers[name]!r}) are refused."
    return None
