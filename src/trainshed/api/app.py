"""The ASGI application: the method table made reachable, behind one door that checks who comes in.

The last handler here is one of the two places that catch every exception: a caller gets a google.rpc.Status,
never a stack trace.
"""

import asyncio
import json
import logging
from collections.abc import Callable
from typing import cast

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
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
    routes = [Route(m.path, _endpoint(m, authenticator), methods=[m.verb]) for m in methods]
    app = Starlette(routes=routes, exception_handlers={404: _not_found, 405: _not_found})
    app.router.redirect_slashes = False  # a path with a slash too many is no method, not another one
    return _Door(app, foreign)


class _Door:
    """Checked before anything else, and for every method: Host and Origin (no web page may reach the API)."""

    def __init__(self, app: ASGIApp, foreign: ForeignCheck) -> None:
        self._app = app
        self._foreign = foreign

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = dict(cast(list[tuple[bytes, bytes]], scope["headers"]))
            host, origin = headers.get(b"host"), headers.get(b"origin")
            sentence = self._foreign(
                host.decode("latin-1") if host is not None else None,
                origin.decode("latin-1") if origin is not None else None,
            )
            if sentence is not None:
                await _error(Forbidden(sentence))(scope, receive, send)
                return
        try:
            await self._app(scope, receive, send)
        except asyncio.CancelledError:
            # Only a server that ends cancels a call. A stream breaks off, so that its reader asks again.
            return


def _endpoint(method: Method, authenticator: Authenticator) -> Callable[[Request], object]:
    async def endpoint(request: Request) -> Response:
        try:
            if not method.is_open:
                authenticator.check(request.headers.get("authorization"))
            reply = await method.handler(await _call(request))
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
                return PlainTextResponse(reply.text, reply.status)
            case _:
                return _json(reply)

    return endpoint


async def _call(request: Request) -> Call:
    path = {name: str(value) for name, value in request.path_params.items()}
    return Call(
        path=path,
        query=request.query_params,
        body=await _body(request) if request.method in ("POST", "PUT", "PATCH") else {},
        headers=request.headers,
        base_url=str(request.base_url).rstrip("/"),
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


def _json(body: Json, code: int = 200) -> Response:
    return Response(json.dumps(body, ensure_ascii=False), code, media_type="application/json; charset=UTF-8")


def _error(error: TrainshedError) -> Response:
    code, body = status.to_http(error)
    return _json(body, code)


async def _not_found(request: Request, _: Exception) -> Response:
    return _error(NotFound(f"There is no method {request.method} {request.url.path}."))
