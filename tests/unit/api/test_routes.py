"""Every route of the server is a row of the table with a permission, and nobody passes without a token."""

import re
from pathlib import Path
from typing import Any, cast

import pytest
from starlette.types import ASGIApp

from trainshed.api.app import make_app
from trainshed.api.call import SOCKET
from trainshed.api.route import Route
from trainshed.assembly.assembly import assemble
from trainshed.core.accounts.permission import Permission
from trainshed.settings.table import Settings

PUBLIC = {
    ("GET", "/healthz"),
    ("GET", "/shell/{project}/{location}/{job}/{task}"),  # holds no secret
    (SOCKET, "/shell/{project}/{location}/{job}/{task}"),  # wants a ticket
    ("GET", "/"),  # leads to the console
    ("GET", "/console"),
    ("GET", "/console/"),
    ("GET", "/console/{page...}"),
    ("GET", "/console/files/{file...}"),
    ("POST", "/v1/console:signIn"),  # wants a ticket or the token
    ("POST", "/v1/console:signOut"),
}
PUBLIC_WITH_PROVIDER = {
    ("GET", "/signin"),  # leads to the provider
    ("GET", "/signin/callback"),  # wants the state and cookie of an attempt, and a code
    ("POST", "/v1/logins"),  # gives nothing before somebody allows it
    ("POST", "/v1/logins:redeem"),  # wants a word and its verifier
    ("POST", "/v1/logins/{code}:redeem"),  # wants the verifier
}
PROVIDER = ("--oidc-issuer", "https://id.example.org", "--oidc-client-id", "trainshed")


@pytest.fixture(scope="module", params=[(), PROVIDER], ids=["plain", "with a provider"])
def flags(request: pytest.FixtureRequest) -> tuple[str, ...]:
    return request.param


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory, flags: tuple[str, ...]) -> ASGIApp:
    home: Path = tmp_path_factory.mktemp("home")
    settings = Settings.from_args(["--home", str(home), "--engine", "none", *flags])
    assembly = assemble(settings, "http://127.0.0.1:8080")
    return make_app(assembly.api.methods, assembly.access.gate, lambda headers, page: None)


def routes(app: ASGIApp) -> tuple[Route, ...]:
    return cast(Any, app).routes


async def asked(app: ASGIApp, verb: str, path: str, *headers: tuple[bytes, bytes]) -> int:
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": verb,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"host", b"here"), *headers],
    }
    await app(scope, receive, send)
    return cast(int, sent[0]["status"])


def test_every_route_is_a_row_of_the_table_with_a_permission(app: ASGIApp):
    found = routes(app)
    assert len(found) > 150
    assert all(isinstance(route.method.permission, Permission) for route in found)


def test_what_is_public_is_so_by_name(app: ASGIApp, flags: tuple[str, ...]):
    public = {(r.method.verb, r.method.path) for r in routes(app) if r.method.permission is Permission.PUBLIC}
    assert public == (PUBLIC | PUBLIC_WITH_PROVIDER if flags else PUBLIC)


def test_every_permission_is_that_of_a_row(app: ASGIApp):
    assert {route.method.permission for route in routes(app)} == set(Permission)


@pytest.mark.parametrize("header", [(), ((b"authorization", b"Bearer wrong-wrong-wrong"),)])
async def test_nobody_passes_without_the_token(app: ASGIApp, header: tuple[tuple[bytes, bytes], ...]):
    refused = 401 if header else 403
    for route in routes(app):
        method = route.method
        if method.permission is Permission.PUBLIC:
            continue
        path = re.sub(r"{\w+(\.\.\.)?}", "x", method.path)
        if method.keyed:
            assert await asked(app, method.verb, f"/t/wrong-wrong-wrong{path}") == 403, method
        else:
            assert await asked(app, method.verb, path, *header) == refused, method


async def test_the_token_of_a_job_is_known_to_nothing_but_the_storage_api(app: ASGIApp):
    bearer = (b"authorization", b"Bearer job.1.forged")
    for route in routes(app):
        method = route.method
        if method.permission is Permission.PUBLIC or method.keyed:
            continue
        path = re.sub(r"{\w+(\.\.\.)?}", "x", method.path)
        assert await asked(app, method.verb, path, bearer) == (403 if method.storage else 401), method
