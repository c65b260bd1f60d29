"""The ASGI application: the method table made reachable, behind one door that checks who comes in.

The last handler here is one of the two places that catch every exception: a caller gets a google.rpc.Status,
never a stack trace.
"""

import asyncio
import contextlib
import json
import logging
import re
from collections.abc import Callable
from typing import cast

from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from trainshed.api.call import Call, Json, Method, Stream, Text
from trainshed.core.errors import Forbidden, Invalid, NotFound, TrainshedError, Unavailable, Violation
from trainshed.core.ports import Authenticator
from trainshed.wire import status

log = logging.getLogger(__name__)

MOST_BODY = 16 * 1024 * 1024  # bytes: far above any job, far below what would hurt

# A sentence when a request comes from a foreign page or under a foreign name, else None.
ForeignCheck = Callable[[str | None, str | None], str | None]


def make_app(methods: tuple[Method, ...], authenticator: Authenticator, foreign: ForeignCheck) -> ASGIApp:
    return _App([_Route(m) for m in methods], authenticator, foreign)


class _Route:
    """A row of the table, ready to be matched. A parameter holds no slash; verbs stand first in the table."""

    def __init__(self, method: Method) -> None:
        self.method = method
        self.pattern = re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(method.path)))


class _App:
    """The door, the way through the table, and the answer."""

    def __init__(self, routes: list[_Route], authenticator: Authenticator, foreign: ForeignCheck) -> None:
        self._by_verb: dict[str, list[_Route]] = {}
        for route in routes:
            self._by_verb.setdefault(route.method.verb, []).append(route)
        self._authenticator = authenticator
        self._foreign = foreign

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            response = await self._answer(Request(scope, receive))
            # Cancelled: the server is ending. A stream that breaks off here is asked for again.
            with contextlib.suppress(asyncio.CancelledError):
                await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        # Before anything else, and for every method: no web page may reach the API.
        sentence = self._foreign(request.headers.get("host"), request.headers.get("origin"))
        if sentence is not None:
            return _error(Forbidden(sentence))
        path = str(request.scope["path"])
        for route in self._by_verb.get(request.method, ()):
            if match := route.pattern.fullmatch(path):
                if not route.method.is_open:
                    try:
                        self._authenticator.check(request.headers.get("authorization"))
                    except TrainshedError as error:
                        return _error(error)
                return await _handled(route.method, request, match.groupdict())
        return _error(NotFound(f"There is no method {request.method} {path}."))


async def _handled(method: Method, request: Request, path: dict[str, str]) -> Response:
    try:
        reply = await method.handler(await _call(request, path, streams=method.streams))
    except TrainshedError as error:
        return _error(error)
    except ClientDisconnect:
        return Response(status_code=499)
    except asyncio.CancelledError:
        return _error(Unavailable("The server is ending; ask again when it is back."))
    except Exception:
        log.exception("%s %s failed", request.method, request.url.path)
        return _json(status.INTERNAL, 500)
    match reply:
        case Stream():
            return StreamingResponse(reply.chunks, media_type=reply.media_type)
        case Text():
            return PlainTextResponse(reply.text, reply.status, media_type=reply.media_type)
        case _:
            return _json(reply)


async def _call(request: Request, path: dict[str, str], *, streams: bool) -> Call:
    if streams:
        return Call(
            path=path,
            query=request.query_params,
            body={},
            headers=request.headers,
            base_url="",
            chunks=request.stream(),
        )
    return Call(
        path=path,
        query=request.query_params,
        body=await _body(request) if request.method in ("POST", "PUT", "PATCH") else {},
        headers=request.headers,
        base_url=_base_url(request),
    )


def _base_url(request: Request) -> str:
    """As the caller knows us. Starlette tells it as well, for the price of parsing it three times."""
    host = request.headers.get("host")
    return f"{request.scope['scheme']}://{host}" if host else str(request.base_url).rstrip("/")


async def _body(request: Request) -> Json:
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > MOST_BODY:
            raise Invalid((Violation("", f"The request body is larger than {MOST_BODY} bytes."),))
    if not data:
        return {}
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Invalid((Violation("", f"The request body is not JSON: {error}"),)) from error
    if not isinstance(body, dict):
        raise Invalid((Violation("", "The request body must be a JSON object."),))
    return cast(Json, body)


def _json(body: Json, code: int = 200) -> Response:
    # Half of a surrogate pair, repeated in the sentence that refuses it, is no UTF-8.
    text = json.dumps(body, ensure_ascii=False).encode(errors="replace")
    return Response(text, code, media_type="application/json; charset=UTF-8")


def _error(error: TrainshedError) -> Response:
    code, body = status.to_http(error)
    return _json(body, code)
