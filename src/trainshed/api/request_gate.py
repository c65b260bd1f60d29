"""Authenticates a request: finds its path and its token, and returns the principal. For `api/app.py`.

Clients of the storage API that are pointed at another address (STORAGE_EMULATOR_HOST) send no
Authorization, but keep the path of that address. So `/t/TOKEN` before a path of the storage API counts as
the token; for other methods it does not. A job has a token of its own, in the address or, as gcloud sends
it, in the header. Only the storage API accepts it. A browser that is signed in sends its session as a cookie.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import HTTPConnection

from trainshed.api.audit_trail import AuditTrail
from trainshed.api.call import Method
from trainshed.api.lasting import UNCHANGING
from trainshed.core.accounts.permission import ANONYMOUS, Permission, Principal
from trainshed.core.bucket import BucketInfo
from trainshed.core.errors import Forbidden, NotFound, Unauthenticated
from trainshed.core.ports import Authenticator, Clock, PresentRights, SessionSigner
from trainshed.service.access import AccessService
from trainshed.wire.page import UNSIGNED, PageTokens

_MARK = "/t/"


@dataclass(frozen=True, slots=True)
class AdmittedRequest:
    path: str  # decoded, with the token
    sent: str  # not decoded, without the token
    token: str = ""
    scheme: str = "http"

    @property
    def shown_path(self) -> str:
        """The path for messages: never with the token."""
        return self.sent if self.token else self.path

    def base_url(self, headers: Mapping[str, str]) -> str:
        """The address that the caller used, for links; with the token where the path had one."""
        prefix = f"{_MARK}{self.token}" if self.token else ""
        return f"{self.scheme}://{headers.get('host', '')}{prefix}"


@dataclass(frozen=True, slots=True)
class BrowserSessions:
    """Whose session a request carries. `foreign` checks have refused requests of other sites before."""

    sessions: SessionSigner
    clock: Clock

    def principal(self, headers: Mapping[str, str]) -> Principal | None:
        """None where there is no session, or where nothing says that a page of ours sent the request.

        A browser sends the cookie with whatever asks for it. That it came from here is said by Origin
        or Sec-Fetch-Site, which were compared; a request with neither is no request of a page.
        """
        if "origin" not in headers and "sec-fetch-site" not in headers:
            return None
        session = cookies(headers.get("cookie", "")).get(self.sessions.cookie, "")
        return self.sessions.principal(session, self.clock.now()) if session else None


@dataclass(frozen=True, slots=True)
class RequestGate:
    authenticator: Authenticator
    access: AccessService | None = None  # None: jobs have no tokens here
    pages: PageTokens = UNSIGNED
    browsers: BrowserSessions | None = None  # None: sessions open nothing here
    audit: AuditTrail | None = None  # None: nothing is written down
    rights: PresentRights = UNCHANGING
    # The address of a caller, of who connected and X-Forwarded-For; None: who connects is the caller.
    caller: Callable[[str, str], str] | None = None

    def address(self, connection: HTTPConnection) -> str:
        """Where a call comes from."""
        peer = connection.client.host if connection.client else ""
        if self.caller is None:
            return peer
        return self.caller(peer, ",".join(connection.headers.getlist("x-forwarded-for")))

    async def enter(self, target: AdmittedRequest, headers: Mapping[str, str], method: Method) -> Principal:
        """The caller; Unauthenticated or Forbidden where the credentials are wrong."""
        if method.permission is Permission.PUBLIC:
            return ANONYMOUS
        authorization = headers.get("authorization")
        token = target.token or bearer(authorization)
        if method.storage and self.access is not None and self.access.is_of_a_job(token):
            return await self.access.principal(token)
        if not token and self.browsers and (principal := self.browsers.principal(headers)):
            return principal
        if not target.token:
            return self.authenticator.authenticate(authorization)
        try:
            return self.authenticator.authenticate(f"Bearer {target.token}")
        except Unauthenticated as error:
            # Not 401: clients without credentials replace it by an error of their own that explains nothing.
            raise Forbidden(
                "The token in the address is not the one of this server. "
                'Run `eval "$(trainshed env)"` again: it may have changed.'
            ) from error

    async def look(self, bucket: str) -> BucketInfo:
        """The bucket that a job asks for; NotFound where there is none."""
        if self.access is None:
            raise NotFound(f"There is no bucket '{bucket}'.")
        return await self.access.look(bucket)


def cookies(header: str) -> dict[str, str]:
    pairs = (part.strip().partition("=") for part in header.split(";"))
    return {name: value for name, equals, value in pairs if equals}


def bearer(authorization: str | None) -> str:
    scheme, _, token = (authorization or "").strip().partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def request_target(scope: Mapping[str, Any]) -> AdmittedRequest:
    path: str = scope["path"]
    sent = bytes(scope.get("raw_path") or path.encode()).decode("utf-8", "surrogateescape")
    token = ""
    if sent.startswith(_MARK):
        token, slash, rest = sent[len(_MARK) :].partition("/")
        sent = slash + rest
    return AdmittedRequest(path, sent, token, scope.get("scheme", "http"))
