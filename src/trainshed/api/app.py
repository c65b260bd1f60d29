"""The ASGI application: routes requests through the method table, behind a gate that authenticates callers.

`serving.py` makes it. The last handler here is one of the two places that catch every exception: a caller
gets a google.rpc.Status, never a stack trace.
"""

import asyncio
import contextlib
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import cast

from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from trainshed.api.call import (
    SOCKET,
    Call,
    Json,
    Method,
    RawAnswer,
    Reply,
    SocketAnswer,
    StreamAnswer,
    TextAnswer,
)
from trainshed.api.request_gate import AdmittedRequest, RequestGate, request_target
from trainshed.api.route import Route
from trainshed.api.talk import serve_socket
from trainshed.core.errors import Forbidden, Invalid, NotFound, TrainshedError, Unavailable, Violation
from trainshed.core.permission import Principal
from trainshed.wire import status

log = logging.getLogger(__name__)

MOST_BODY = 16 * 1024 * 1024  # bytes: far above any job, far below the server's memory

# Host and Origin to the reason for a refusal; None: the request is allowed.
ForeignCheck = Callable[[str | None, str | None], str | None]


def make_app(methods: tuple[Method, ...], gate: RequestGate, foreign: ForeignCheck) -> ASGIApp:
    return _App([Route(m) for m in methods], gate, foreign)


class _App:
    def __init__(self, routes: list[Route], gate: RequestGate, foreign: ForeignCheck) -> None:
        self.routes = tuple(routes)
        self._by_verb: dict[str, list[Route]] = {}
        for route in routes:
            self._by_verb.setdefault(route.method.verb, []).append(route)
        self._gate = gate
        self._foreign = foreign

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            response = await self._answer(Request(scope, receive))
            # Cancelled: the server is stopping. Clients ask again for a stream that breaks off.
            with contextlib.suppress(asyncio.CancelledError):
                await response(scope, receive, send)
        elif scope["type"] == "websocket":
            with contextlib.suppress(asyncio.CancelledError):
                await self._answer_socket(scope, receive, send)

    async def _answer_socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection, target = HTTPConnection(scope), request_target(scope)
        headers = connection.headers
        await receive()  # the connect message
        if (sentence := self._foreign(headers.get("host"), headers.get("origin"))) is not None:
            await _error(Forbidden(sentence))(scope, receive, send)
            return
        for route in self._by_verb.get(SOCKET, ()):
            if (path := route.match(target)) is not None:
                call = Call(
                    path=path,
                    query=connection.query_params,
                    body={},
                    headers=headers,
                    base_url="",
                    protocols=tuple(scope.get("subprotocols", ())),
                )
                reply = await _reply_of(route, target, _ready(call))
                if isinstance(reply, SocketAnswer):
                    await serve_socket(reply, receive, send)
                else:
                    await _response(reply)(scope, receive, send)
                return
        await _error(NotFound(f"There is no conversation at {target.shown_path}."))(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        # First, and for every method: no foreign web page may reach the API.
        sentence = self._foreign(request.headers.get("host"), request.headers.get("origin"))
        if sentence is not None:
            return _error(Forbidden(sentence))
        target = request_target(request.scope)
        for route in self._by_verb.get(request.method, ()):
            if (path := route.match(target)) is not None:
                method, given = route.method, request.headers.get("authorization")
                try:
                    principal = await self._gate.enter(target, given, method)
                except TrainshedError as error:
                    return _error(error)
                call = _call(request, path, method, target)
                return _response(await _reply_of(route, target, self._with_principal(call, principal)))
        return _error(NotFound(f"There is no method {request.method} {target.shown_path}."))

    async def _with_principal(self, call: Awaitable[Call], principal: Principal) -> Call:
        return replace(await call, principal=principal, look=self._gate.look)


async def _reply_of(route: Route, target: AdmittedRequest, call: Awaitable[Call]) -> Reply | Response:
    try:
        return await route.answer(await call)
    except TrainshedError as error:
        return _error(error)
    except ClientDisconnect:
        return Response(status_code=499)
    except asyncio.CancelledError:
        return _error(Unavailable("The server is ending; ask again when it is back."))
    except Exception:
        log.exception("%s %s failed", route.method.verb, target.shown_path)
        return _json(status.INTERNAL, 500)


def _response(reply: Reply | Response) -> Response:
    match reply:
        case Response():
            return reply
        case StreamAnswer():
            return StreamingResponse(reply.chunks, media_type=reply.media_type)
        case TextAnswer():
            return PlainTextResponse(reply.text, reply.status, media_type=reply.media_type)
        case RawAnswer():
            return _raw(reply)
        case SocketAnswer():
            return _json(status.INTERNAL, 500)
        case _:
            return _json(reply)


async def _ready(call: Call) -> Call:
    return call


async def _call(request: Request, path: dict[str, str], method: Method, target: AdmittedRequest) -> Call:
    if method.streams:
        return Call(
            path=path,
            query=request.query_params,
            body={},
            headers=request.headers,
            base_url=target.base_url(request.headers) if method.storage else "",
            chunks=request.stream(),
        )
    return Call(
        path=path,
        query=request.query_params,
        body=await _body(request) if request.method in ("POST", "PUT", "PATCH") else {},
        headers=request.headers,
        base_url=target.base_url(request.headers),
    )


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


def _raw(reply: RawAnswer) -> Response:
    if isinstance(reply.content, bytes):
        return Response(reply.content, reply.status, reply.headers)
    return StreamingResponse(reply.content, reply.status, reply.headers)


def _json(body: Json, code: int = 200) -> Response:
    # A refusal may quote half of a surrogate pair, which is not UTF-8.
    text = json.dumps(body, ensure_ascii=False).encode(errors="replace")
    return Response(text, code, media_type="application/json; charset=UTF-8")


def _error(error: TrainshedError) -> Response:
    code, body = status.to_http(error)
    return _json(body, code)
