"""What is answered over plain HTTP where the server speaks TLS: programs of jobs on this machine, and health.

`serving` puts it before an application for connections without TLS, which has the rows of the table that
programs of jobs need and no others. Libraries in jobs can be told an address, and not each of them what to
trust: they keep `http://` and the job's own token, and their bytes stay inside the machine (decision 66).
Everything else is refused with a sentence, whoever sends it, before anything is looked up: a token that is
not a job's never counts here.
"""

import ipaddress
from collections.abc import Callable, Iterable

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from trainshed.api.answer_headers import sealing
from trainshed.api.call import Method
from trainshed.api.health import HEALTH
from trainshed.api.request_gate import bearer, request_target
from trainshed.api.route import Route
from trainshed.wire.status import plain_refusal


class PlainHttp:
    def __init__(
        self, app: ASGIApp, methods: Iterable[Method], is_of_a_job: Callable[[str], bool], url: str
    ) -> None:
        """`app` has the `methods`; `is_of_a_job` says whether a token was issued to one.

        `url` is the address that callers should use.
        """
        self._app, self._is_of_a_job, self._url = app, is_of_a_job, url
        self._routes = [Route(method) for method in methods]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._is_answered(scope):
            await self._app(scope, receive, send)
            return
        if scope["type"] == "websocket":
            await receive()  # the connect message
        code, body = plain_refusal(self._url)
        answer = Response(body, code, media_type="application/json; charset=UTF-8")
        answer.headers["connection"] = "close"
        await answer(scope, receive, sealing(send))

    def _is_answered(self, scope: Scope) -> bool:
        if scope["type"] != "http":
            return False
        if scope["path"] == HEALTH:
            return True
        target = request_target(scope)
        token = target.token or bearer(Headers(scope=scope).get("authorization"))
        if not (self._is_of_a_job(token) and is_from_here(scope)):
            return False
        verb = scope["method"]
        return any(route.method.verb == verb and route.match(target) is not None for route in self._routes)


def is_from_here(scope: Scope) -> bool:
    """Whether a connection comes from this machine: from loopback, or from the address that it goes to."""
    client, server = scope.get("client"), scope.get("server")
    if not client:
        return False
    try:
        address = ipaddress.ip_address(client[0].removeprefix("::ffff:"))
    except ValueError:
        return False
    return address.is_loopback or bool(server and client[0] == server[0])
