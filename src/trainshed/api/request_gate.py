"""How a request comes in: its path, and the right to be here where the path carries one.

Clients of the storage API that are pointed at another address (STORAGE_EMULATOR_HOST) send no Authorization,
but keep whatever path that address has. So `/t/TOKEN` in front of a path of the storage API counts as the
token; of any other method it does not. A job has a token of its own, which opens nothing but the storage API,
in the address or, as gcloud sends it, in the header: what it may do there is its Right.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainshed.core.errors import Forbidden, Unauthenticated
from trainshed.core.ports import Authenticator
from trainshed.service.access import AccessService, Right

_MARK = "/t/"


@dataclass(frozen=True, slots=True)
class AdmittedRequest:
    path: str  # decoded, as it came
    sent: str  # as it was sent, without the token
    token: str = ""
    scheme: str = "http"

    @property
    def told(self) -> str:
        """For messages: never with the token."""
        return self.sent if self.token else self.path

    def base_url(self, headers: Mapping[str, str]) -> str:
        """What the caller reached us by, for links it may follow; with the token where it came with one."""
        prefix = f"{_MARK}{self.token}" if self.token else ""
        return f"{self.scheme}://{headers.get('host', '')}{prefix}"


@dataclass(frozen=True, slots=True)
class RequestGate:
    authenticator: Authenticator
    access: AccessService | None = None  # None: jobs have no tokens here

    async def enter(self, way: AdmittedRequest, authorization: str | None, *, storage: bool) -> Right | None:
        """A job's right where a job comes to the storage API; None for who may do everything."""
        token = way.token or bearer(authorization)
        if storage and self.access is not None and self.access.is_of_a_job(token):
            return await self.access.right(token)
        if not way.token:
            self.authenticator.check(authorization)
            return None
        try:
            self.authenticator.check(f"Bearer {way.token}")
        except Unauthenticated as error:
            # Not 401: to that a client without credentials has an error of its own, which explains nothing.
            raise Forbidden(
                "The token in the address is not the one of this server. "
                'Run `eval "$(trainshed env)"` again: it may have changed.'
            ) from error
        return None


def bearer(authorization: str | None) -> str:
    scheme, _, token = (authorization or "").strip().partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def way(scope: Mapping[str, Any]) -> AdmittedRequest:
    path: str = scope["path"]
    sent = bytes(scope.get("raw_path") or path.encode()).decode("utf-8", "surrogateescape")
    token = ""
    if sent.startswith(_MARK):
        token, slash, rest = sent[len(_MARK) :].partition("/")
        sent = slash + rest
    return AdmittedRequest(path, sent, token, scope.get("scheme", "http"))
