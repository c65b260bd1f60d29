"""The ASGI application: routes requests through the method table, behind a gate that authenticates callers.

`serving/serve.py` makes it. The last handler here is one of the two places that catch every exception: a
caller gets a google.rpc.Status, never a stack trace.
"""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace

from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from trainshed.api.answer_headers import sealing
from trainshed.api.audit_trail import named_project
from trainshed.api.call import (
    BREAK_OFF,
    MOST_DIGITS,
    SENDER,
    SOCKET,
    Call,
    Json,
    Method,
    RawAnswer,
    Reply,
    SocketAnswer,
    StreamAnswer,
    TextAnswer,
    Trace,
)
from trainshed.api.ending import Ending, ServerEnds
from trainshed.api.lasting import RightsEnded
from trainshed.api.packing import packed
from trainshed.api.request_gate import AdmittedRequest, RequestGate, request_target
from trainshed.api.route import Route
from trainshed.api.talk import serve_socket
from trainshed.core.accounts.permission import ANONYMOUS, Principal, PrincipalKind
from trainshed.core.errors import Forbidden, Invalid, NotFound, TrainshedError, Violation
from trainshed.wire import status
from trainshed.wire.base import camel
from trainshed.wire.json_body import parse_object

log = logging.getLogger(__name__)

LARGE_BODY = 256 << 10  # bytes; a larger one is parsed in a thread, so that others are served meanwhile

# The headers of a request, and whether it is for a page of ours, to the reason of a refusal; None: allowed.
ForeignCheck = Callable[[Mapping[str, str], bool], str | None]


def make_app(
    methods: tuple[Method, ...], gate: RequestGate, foreign: ForeignCheck, end: Ending | None = None
) -> ASGIApp:
    """`end` is told when the server stops; None: nobody tells it."""
    return _App([Route(m) for m in methods], gate, foreign, end or Ending(ServerEnds))


class _App:
    def __init__(self, routes: list[Route], gate: RequestGate, foreign: ForeignCheck, end: Ending) -> None:
        self.routes = tuple(routes)
        self._by_verb: dict[str, list[Route]] = {}
        for route in routes:
            self._by_verb.setdefault(route.method.verb, []).append(route)
        self._gate = gate
        self._foreign = foreign
        self._end = end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            response = await self._answer(Request(scope, receive))
            try:
                await response(scope, receive, sealing(send))
            except (asyncio.CancelledError, ServerEnds, RightsEnded):
                # Clients ask again for a stream that breaks off, and are told why there is none where their
                # rights have ended.
                scope.get("state", {}).get(BREAK_OFF, _nothing)()
        elif scope["type"] == "websocket":
            with contextlib.suppress(asyncio.CancelledError):
                await self._answer_socket(scope, receive, sealing(send))

    async def _answer_socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection, target = HTTPConnection(scope), request_target(scope)
        headers = connection.headers
        await receive()  # the connect message
        trace = Trace(self._gate.address(connection), SOCKET, target.shown_path)
        match = self._match(SOCKET, target)
        if (sentence := self._foreign(headers, False)) is not None:
            await self._refused(Forbidden(sentence), match, trace)(scope, receive, send)
            return
        if match is None:
            error = NotFound(f"There is no conversation at {target.shown_path}.")
            await _error(error)(scope, receive, send)
            return
        route, path = match
        call = Call(
            path=path,
            query=_query(connection, route.method),
            body={},
            headers=headers,
            base_url="",
            protocols=tuple(scope.get("subprotocols", ())),
            rights=self._gate.rights,
            trace=trace,
        )
        reply = await self._reply_of(route, target, _ready(call))
        if isinstance(reply, SocketAnswer):
            await serve_socket(reply, receive, send)
        else:
            response = self._response(reply)
            self._note(ANONYMOUS, route.method, trace, response.status_code)
            await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        target = request_target(request.scope)
        match = self._match(request.method, target)
        trace = Trace(self._gate.address(request), request.method, target.shown_path)
        # First, and for every method: no foreign web page may reach the API.
        sentence = self._foreign(request.headers, match is not None and match[0].method.page)
        if sentence is not None:
            return self._refused(Forbidden(sentence), match, trace)
        if match is None:
            return _error(NotFound(f"There is no method {request.method} {target.shown_path}."))
        route, path = match
        try:
            principal = await self._gate.enter(target, request.headers, route.method)
        except TrainshedError as error:
            return self._refused(error, match, trace)
        trace.project = named_project(route.method, path, request.query_params)
        call = _call(request, path, route.method, target)
        reply = await self._reply_of(route, target, self._with_principal(call, principal, trace))
        response = packed(self._response(reply), request.headers)
        self._note(principal, route.method, trace, response.status_code)
        return response

    def _refused(
        self, error: TrainshedError, match: tuple[Route, dict[str, str]] | None, trace: Trace
    ) -> Response:
        """The answer to a caller who is not known."""
        response, trace.reason = _error(error), error.message
        self._note(ANONYMOUS, match[0].method if match is not None else None, trace, response.status_code)
        return response

    def _note(self, principal: Principal, method: Method | None, trace: Trace, code: int) -> None:
        if self._gate.audit is not None:
            self._gate.audit.note(principal, method, trace, code)

    def _match(self, verb: str, target: AdmittedRequest) -> tuple[Route, dict[str, str]] | None:
        """The first row for the request, with the values in its path."""
        for route in self._by_verb.get(verb, ()):
            if (path := route.match(target)) is not None:
                return route, path
        return None

    async def _reply_of(
        self, route: Route, target: AdmittedRequest, call: Awaitable[Call]
    ) -> Reply | Response:
        try:
            ready = await call
            with self._end.waiting() if _may_wait(route.method) else contextlib.nullcontext():
                return await route.answer(ready)
        except TrainshedError as error:
            return _error(error)
        except ClientDisconnect:
            return Response(status_code=499)
        except asyncio.CancelledError:
            return _error(ServerEnds())
        except Exception:
            log.exception("%s %s failed", route.method.verb, target.shown_path)
            return _json(status.INTERNAL, 500)

    def _response(self, reply: Reply | Response) -> Response:
        match reply:
            case Response():
                return reply
            case StreamAnswer():
                chunks = self._end.chunks(reply.chunks, shows_end=reply.shows_end)
                return StreamingResponse(chunks, media_type=reply.media_type)
            case TextAnswer():
                return PlainTextResponse(reply.text, reply.status, media_type=reply.media_type)
            case RawAnswer():
                return _raw(reply)
            case SocketAnswer():
                return _json(status.INTERNAL, 500)
            case _:
                return _json(reply)

    async def _with_principal(self, call: Awaitable[Call], principal: Principal, trace: Trace) -> Call:
        gate = self._gate
        if principal.kind is PrincipalKind.OWNER and gate.audit is not None:
            trace.finds_projects = gate.audit.has_accounts()
        return replace(
            await call,
            principal=principal,
            look=gate.look,
            pages=gate.pages,
            rights=gate.rights,
            trace=trace,
        )


def _may_wait(method: Method) -> bool:
    """Whether it may be given up while it waits for something. In a batch of storage there are changes."""
    return method.permission.reads and not method.streams and not method.storage


def _nothing() -> None:
    """Where the connection is none of ours."""


async def _ready(call: Call) -> Call:
    return call


async def _call(request: Request, path: dict[str, str], method: Method, target: AdmittedRequest) -> Call:
    given = {**path, **request.query_params, "pageToken": ""}  # those of pages are signed
    wrong = [name for name, value in given.items() if "\0" in value]
    if wrong and not method.storage:  # no database takes one
        raise Invalid(tuple(Violation(name, f"{name} must not contain a NUL character.") for name in wrong))
    sender = request.scope.get("state", {}).get(SENDER) if method.storage else None
    if method.streams:
        return Call(
            path=path,
            query=_query(request, method),
            body={},
            headers=request.headers,
            base_url=target.base_url(request.headers) if method.storage else "",
            chunks=_chunks(request, method),
            sender=sender,
        )
    return Call(
        path=path,
        query=_query(request, method),
        body=await _body(request, method) if request.method in ("POST", "PUT", "PATCH") else {},
        headers=request.headers,
        base_url=target.base_url(request.headers),
        sender=sender,
    )


def _query(asked: HTTPConnection, method: Method) -> Mapping[str, str]:
    """Names in snake_case count as camelCase too, as in bodies; but not for storage, which has both."""
    given = asked.query_params
    if method.storage or not any("_" in name for name in given):
        return given
    return {camel(name): value for name, value in given.items()} | dict(given)


async def _body(request: Request, method: Method) -> Json:
    data = b"".join([chunk async for chunk in _chunks(request, method)])
    if len(data) > LARGE_BODY:
        return await asyncio.to_thread(parse_object, data)
    return parse_object(data) if data else {}


async def _chunks(request: Request, method: Method) -> AsyncIterator[bytes]:
    """The body as it comes. A body that is larger than the method allows, or says that it is, is refused."""
    most, size = method.most_body, 0
    length = request.headers.get("content-length", "")
    if most is not None and length.isdigit() and (len(length) > MOST_DIGITS or int(length) > most):
        raise _too_large(most)
    async for chunk in request.stream():
        size += len(chunk)
        if most is not None and size > most:
            raise _too_large(most)
        yield chunk


def _too_large(most: int) -> Invalid:
    return Invalid((Violation("", f"The request body is larger than {most} bytes."),))


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
