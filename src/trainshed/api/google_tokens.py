"""Answers Google's libraries that ask for a token: the metadata server and the token endpoint.

Both answer a job with its own token, which gives access only to the buckets of its project.
GCE_METADATA_HOST, an address that has the token in it (core/google.py), names the metadata server. The
token endpoint identifies a job by the token it refreshes or by its connection. All other callers are
refused.
"""

import json
from dataclasses import dataclass
from urllib.parse import parse_qs

from trainshed.api.call import Call, Method, RawAnswer, Reply
from trainshed.api.request_gate import bearer
from trainshed.core.accounts.permission import Permission, Principal, PrincipalKind
from trainshed.core.errors import Forbidden, NotFound, TrainshedError
from trainshed.service.access import AccessService

_FLAVOR = {"metadata-flavor": "Google"}
_LASTS = 3600  # seconds after which a program asks again; it gets the same token
_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
_ROOT = "/computeMetadata/v1"
_ACCOUNT = f"{_ROOT}/instance/service-accounts/{{account}}"


@dataclass(frozen=True, slots=True)
class GoogleTokens:
    access: AccessService

    async def ping(self, call: Call) -> Reply:
        return RawAnswer(headers=_FLAVOR)

    async def account(self, call: Call) -> Reply:
        job = _job(call)
        about = {"aliases": ["default"], "email": _email(job), "scopes": list(_SCOPES)}
        return _metadata_answer(json.dumps(about), "application/json")

    async def email(self, call: Call) -> Reply:
        return _metadata_answer(_email(_job(call)))

    async def scopes(self, call: Call) -> Reply:
        _job(call)
        return _metadata_answer("\n".join(_SCOPES))

    async def project(self, call: Call) -> Reply:
        return _metadata_answer(_job(call).project)

    async def token(self, call: Call) -> Reply:
        return self._granted(self.access.token_of(_job(call).id))

    async def nothing(self, call: Call) -> Reply:
        return RawAnswer(b"Not Found", 404, _FLAVOR)

    async def exchange(self, call: Call) -> Reply:
        """POST to the token endpoint, with any credentials."""
        form = parse_qs((await call.whole_body()).decode(errors="replace"))
        given = (form.get("refresh_token", [""])[0], bearer(call.headers.get("authorization")))
        token = next(filter(self.access.is_of_a_job, given), "")
        try:
            if not token:
                raise Forbidden(
                    "Inside a job Google's hosts are this server, which knows no accounts of Google's. Leave "
                    "out the credentials: the job's own are found by google.auth.default() and TensorFlow."
                )
            job = await self.access.principal(token)
        except TrainshedError as error:
            refusal = {"error": "invalid_grant", "error_description": str(error)}
            return RawAnswer(json.dumps(refusal).encode(), 400, {"content-type": "application/json"})
        return self._granted(self.access.token_of(job.id))

    def _granted(self, token: str) -> RawAnswer:
        about = {"access_token": token, "expires_in": _LASTS, "token_type": "Bearer"}
        return _metadata_answer(json.dumps(about), "application/json")


def metadata_methods(tokens: GoogleTokens) -> tuple[Method, ...]:
    """The metadata server, for callers with a token in the address."""
    rows = (
        ("", tokens.ping),
        ("/", tokens.ping),
        (f"{_ACCOUNT}/token", tokens.token),
        (f"{_ACCOUNT}/email", tokens.email),
        (f"{_ACCOUNT}/scopes", tokens.scopes),
        (f"{_ACCOUNT}/", tokens.account),
        (f"{_ROOT}/project/project-id", tokens.project),
        ("/computeMetadata/{rest...}", tokens.nothing),
    )
    return tuple(
        Method(
            verb="GET",
            path=path,
            handler=handler,
            permission=Permission.TOKENS_READ,
            storage=True,
            plain=True,
            keyed=True,
        )
        for path, handler in rows
    )


def exchange_methods(tokens: GoogleTokens, *paths: str) -> tuple[Method, ...]:
    return tuple(
        Method(
            verb="POST",
            path=path,
            handler=tokens.exchange,
            permission=Permission.PUBLIC,
            streams=True,
            plain=True,
        )
        for path in paths
    )


def _job(call: Call) -> Principal:
    if call.headers.get("metadata-flavor") != "Google":
        raise Forbidden("A request for metadata has the header `Metadata-Flavor: Google`.")
    if call.principal.kind is not PrincipalKind.JOB:
        raise NotFound("There is metadata for programs of jobs only.")
    return call.principal


def _email(job: Principal) -> str:
    """Shaped like a service account's; no such account exists."""
    return f"job-{job.id}@{job.project}.iam.gserviceaccount.com"


def _metadata_answer(text: str, kind: str = "application/text") -> RawAnswer:
    return RawAnswer(text.encode(), headers={"content-type": kind, **_FLAVOR})
