"""What is answered over plain HTTP where the server speaks TLS: programs of jobs on this machine, and health.

`serving` puts it before the application for connections without TLS. Libraries in jobs can be told an
address, and not each of them what to trust: they keep `http://` and the job's own token, and their bytes
stay inside the machine (decision 66). Everything else is refused with a sentence, whoever sends it: a token
that is not a job's never counts here.
"""

import ipaddress

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from trainshed.api.answer_headers import sealing
from trainshed.api.request_gate import bearer, request_target
from trainshed.core.access import MARK
from trainshed.wire.status import plain_refusal

_HEALTH = "/healthz"


class PlainHttp:
    def __init__(self, app: ASGIApp, url: str) -> None:
        """`url` is the address that callers should use."""
        self._app, self._url = app, url

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
        if scope["path"] == _HEALTH:
            return True
        token = request_target(scope).token or bearer(Headers(scope=scope).get("authorization"))
        return token.startswith(MARK) and is_from_here(scope)


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
