"""What of the table is answered over plain HTTP where the server speaks TLS."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from tests.builders import T0
from tests.unit.api.test_routes import PROVIDER
from trainshed.api.app import make_app
from trainshed.api.call import SOCKET, Call, Method, RawAnswer, Reply
from trainshed.api.plain_http import PlainHttp
from trainshed.assembly.assembly import Assembly, assemble
from trainshed.core.accounts.permission import Principal, principal_of_job
from trainshed.core.bucket import BucketInfo
from trainshed.settings.table import Settings

URL = "https://gpu-box.example:8080"


class OneJob:
    """Job 1 runs in the project p1, whose buckets are all there are."""

    def __init__(self, assembly: Assembly) -> None:
        self.token, self.is_of_a_job = (
            assembly.access.service.token_of("1"),
            assembly.access.service.is_of_a_job,
        )

    async def principal(self, token: str) -> Principal:
        return principal_of_job("1", "p1")

    async def look(self, bucket: str) -> BucketInfo:
        return BucketInfo(name=bucket, project="p1", location="US", created_at=T0, updated_at=T0)


class PlainServer:
    def __init__(self, home: Path) -> None:
        assembly = assemble(
            Settings.from_args(["--home", str(home), "--engine", "none", *PROVIDER]), "http://127.0.0.1:8080"
        )
        self.methods, self.job = assembly.api.methods, OneJob(assembly)
        self.owner = (home / "token").read_text().strip()
        rows = tuple(replace(method, handler=_reached) for method in self.methods if method.plain)
        app = make_app(rows, replace(assembly.access.gate, access=cast(Any, self.job)), lambda *_: None)
        self.app = PlainHttp(app, rows, assembly.access.service.was_issued, URL)

    async def asked(self, verb: str, path: str, token: str, client: str = "127.0.0.1") -> tuple[int, str]:
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"host", b"here"), *([(b"authorization", f"Bearer {token}".encode())] if token else [])]
        scope = {"type": "http", "method": verb, "path": path, "raw_path": path.encode(), "query_string": b""}
        await self.app({**scope, "headers": headers, "client": (client, 5)}, receive, send)
        return sent[0]["status"], sent[1]["body"].decode()


async def _reached(call: Call) -> Reply:
    return RawAnswer(status=204)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> PlainServer:
    return PlainServer(tmp_path_factory.mktemp("home"))


def _path(method: Method) -> str:
    return re.sub(r"{\w+(\.\.\.)?}", "x", method.path)


async def test_a_job_finds_its_buckets_and_its_metadata_and_nothing_else(server: PlainServer):
    for method in server.methods:
        if method.verb == SOCKET or method.path == "/healthz":
            continue
        path, bearer = _path(method), server.job.token
        if method.keyed:
            path, bearer = f"/t/{server.job.token}{path}", ""
        code, body = await server.asked(method.verb, path, bearer)
        if not method.storage:
            assert (code, URL in body) == (400, True), method
        elif method.permission.value != "buckets.write":
            assert code == 204, (method, body)


async def test_the_owner_opens_no_session_there_whatever_else_is_sent(server: PlainServer):
    cut = server.job.token[:-1]
    forged = "job.1." + "x" * 43
    for token in ("", "job.x", forged, cut, server.owner):
        for verb, path in (
            ("POST", "/v1/console:signIn"),
            ("POST", "/v1/logins:redeem"),
            ("POST", "/v1/logins"),
            ("GET", "/console/"),
            ("GET", "/signin"),
            ("GET", "/storage/v1/b/x/o"),
            ("GET", f"/t/{token}/storage/v1/b/x/o"),
        ):
            code, body = await server.asked(verb, path, token)
            assert code == 400, (verb, path, token)
            assert URL in json.loads(body)["error"]["message"]


async def test_a_job_on_another_machine_comes_by_tls(server: PlainServer):
    assert (await server.asked("GET", "/storage/v1/b/x/o", server.job.token))[0] == 204
    assert (await server.asked("GET", "/storage/v1/b/x/o", server.job.token, "192.0.2.7"))[0] == 400


async def test_health_is_told_to_all(server: PlainServer):
    assert (await server.asked("GET", "/healthz", ""))[0] == 204
    assert (await server.asked("POST", "/healthz", ""))[0] == 404
