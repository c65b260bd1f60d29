"""What the audit log of a team says of each call, and to whom: nothing is left out, and nobody chooses."""

import base64
import json
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.live import PATIENCE, Answer, LiveServer

UPLOAD = "/upload/storage/v1/b/pictures/o?uploadType=media&name="
OBJECTS = "/storage/v1/b/pictures/o"


@dataclass
class Team:
    """ann is a user of vision and bob one of speech; each project has an administrator."""

    server: LiveServer
    tokens: dict[str, str] = field(default_factory=dict[str, str])

    def ask(self, who: str, verb: str, path: str, body: object = None, **headers: str) -> Answer:
        token = self.tokens[who] if who else None
        return self.server.request(verb, path, body, headers=headers, token=token)

    def rows(self, who: str, **query: str) -> list[Any]:
        """The newest first."""
        asked = "&".join(f"{name}={value}" for name, value in query.items())
        return self.ask(who, "GET", f"/v1/audit?pageSize=1000&{asked}").json["rows"]

    def newest(self, who: str = "owner") -> Any:
        return self.rows(who)[0]


@pytest.fixture(scope="module")
def team() -> Iterator[Team]:
    with LiveServer("--cpus", "4", "--memory", "8GiB") as server:
        team = Team(server, {"owner": server.token})
        for name, role, project in (
            ("ann", "user", "vision"),
            ("bob", "user", "speech"),
            ("vera", "admin", "vision"),
            ("saul", "admin", "speech"),
        ):
            server.post("/v1/accounts", {"name": name})
            bindings = server.post(f"/v1/projects/{project}:getIamPolicy").get("bindings", [])
            bindings.append({"role": role, "members": [f"user:{name}"]})
            server.post(f"/v1/projects/{project}:setIamPolicy", {"policy": {"bindings": bindings}})
            team.tokens[name] = server.post("/v1/tokens", {"account": name})["token"]
        assert team.ask("ann", "POST", "/storage/v1/b?project=vision", {"name": "pictures"}).status == 200
        yield team
        assert "Traceback" not in server.said(), server.said()
        written = "".join(file.read_text() for file in (server.home / "audit").iterdir())
        assert not any(token.rpartition(".")[2] in written for token in team.tokens.values())


def batch(*lines: str) -> bytes:
    parts = [f"--x\r\nContent-Type: application/http\r\n\r\n{line} HTTP/1.1\r\n\r\n\r\n" for line in lines]
    return "".join([*parts, "--x--\r\n"]).encode()


def test_what_is_done_in_a_batch_is_written_down_part_by_part(team: Team):
    for name in ("one", "two"):
        assert team.ask("ann", "POST", UPLOAD + name, b"x").status == 200
    kind = {"Content-Type": "multipart/mixed; boundary=x"}
    lines = (f"DELETE {OBJECTS}/one", f"GET {OBJECTS}/two", f"DELETE {OBJECTS}/gone?project=speech")
    assert team.ask("ann", "POST", "/batch/storage/v1", batch(*lines), **kind).status == 200
    assert team.ask("bob", "POST", "/batch/storage/v1", batch(f"DELETE {OBJECTS}/two"), **kind).status == 200
    refused, gone, done = team.rows("vera")[:3]
    assert (done["who"], done["path"], done["permission"]) == (
        "account ann",
        f"{OBJECTS}/one",
        "objects.write",
    )
    assert (done["code"], gone["code"], gone["project"]) == (204, 404, "vision")
    assert (refused["who"], refused["allowed"]) == ("account bob", False)
    assert "may not use bucket 'pictures'" in refused["reason"]


@pytest.mark.parametrize("who", ["ann", "owner"])
def test_the_administrator_of_a_bucket_reads_what_was_done_in_it_whatever_the_caller_says(
    team: Team, who: str
):
    path = f"{UPLOAD}{who}&project=speech"
    assert team.ask(who, "POST", path, b"x").status == 200
    row = team.newest("vera")
    assert (row["project"], row["method"], row["path"]) == ("vision", "POST", path.partition("?")[0])
    assert not [row for row in team.rows("saul") if row["path"] == path.partition("?")[0]]
    assert team.ask(who, "POST", "/storage/v1/b?project=vision", {"name": f"{who}-bucket"}).status == 200
    assert team.ask(who, "DELETE", f"/storage/v1/b/{who}-bucket?project=speech").status in (204, 403)
    assert team.ask(who, "DELETE", f"/storage/v1/b/{who}-bucket").status in (204, 404)
    rows = team.rows("vera")
    made = next(row for row in rows if row["method"] == "POST" and row["path"] == "/storage/v1/b")
    removed = next(row for row in rows if row["method"] == "DELETE")
    assert made["project"] == removed["project"] == "vision"
    assert removed["path"] == f"/storage/v1/b/{who}-bucket"


def test_a_copy_is_written_down_where_it_went(team: Team):
    assert team.ask("ann", "POST", f"{UPLOAD}here", b"x").status == 200
    assert team.ask("bob", "POST", "/storage/v1/b?project=speech", {"name": "sounds"}).status == 200
    copy = f"{OBJECTS}/here/copyTo/b/sounds/o/there"
    assert team.ask("owner", "POST", copy).status == 200
    assert team.newest("saul")["path"] == copy
    assert team.ask("bob", "POST", copy).status == 403
    assert team.newest("vera")["path"] == copy and team.newest("vera")["who"] == "account bob"


def test_whoever_is_not_known_plants_no_row_in_a_project(team: Team):
    before = team.rows("saul")
    team.ask("", "GET", "/v1/accounts?project=speech")
    team.ask("", "POST", "/v1/projects/speech:setIamPolicy?project=speech", {"policy": {}})
    team.ask("", "GET", "/storage/v1/b?project=speech")
    assert team.rows("saul") == before
    assert {row.get("project", "") for row in team.rows("owner") if row["who"] == "anonymous"} == {""}


@pytest.mark.parametrize(
    ("name", "value", "words"), [("Host", "evil.example", "Host"), ("Origin", "http://evil.example", "pages")]
)
def test_calls_of_other_sites_are_written_down_as_refused(team: Team, name: str, value: str, words: str):
    for path in (f"/v1/accounts?{name}", f"/nothing-{name}"):
        assert team.ask("ann", "GET", path, **{name: value}).status == 403
        row = team.newest()
        assert (row["who"], row["path"], row["allowed"]) == ("anonymous", path.partition("?")[0], False)
        assert words in row["reason"]


def test_a_wrong_ticket_for_a_shell_is_written_down(team: Team):
    path = "/shell/vision/us-central1/1/workerpool0-0"
    key = base64.b64encode(os.urandom(16)).decode()
    lines = (
        f"GET {path} HTTP/1.1",
        f"Host: 127.0.0.1:{team.server.port}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Key: {key}",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Protocol: trainshed.shell, wrong-ticket",
    )
    with socket.create_connection(("127.0.0.1", team.server.port), timeout=PATIENCE) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        assert b" 403 " in connection.recv(1000)
    row = team.newest()
    assert (row["path"], row["code"]) == (path, 403)
    assert "ticket" in row["reason"] and "wrong-ticket" not in json.dumps(row)


def test_signing_in_and_out_is_written_down_with_who_it_was_or_why_not(team: Team):
    own = {"Origin": team.server.url}
    entered = team.ask("", "POST", "/v1/console:signIn", {"token": team.tokens["ann"]}, **own)
    row = team.newest()
    assert (row["who"], row["path"], row["code"]) == ("account ann", "/v1/console:signIn", 200)
    assert row["token"] == team.tokens["ann"].split(".")[1]
    cookie = entered.headers["set-cookie"].partition(";")[0]
    team.ask("", "POST", "/v1/console:signOut", {}, **own, Cookie=cookie)
    row = team.newest()
    assert (row["who"], row["path"]) == ("account ann", "/v1/console:signOut")
    wrong = team.tokens["ann"][:-3] + "xyz"
    for body in ({"token": wrong}, {"ticket": "wrong"}):
        assert team.ask("", "POST", "/v1/console:signIn", body, **own).status in (401, 403)
        row = team.newest()
        assert row["who"] == "anonymous" and row["reason"], row
    before = team.rows("owner")
    team.ask("", "POST", "/v1/console:signOut", {}, **own)
    assert team.rows("owner") == before


def test_rows_of_accounts_name_what_was_changed(team: Team):
    def told(verb: str, path: str, body: object = None) -> tuple[str, Any]:
        answer = team.ask("owner", verb, path, body)
        assert answer.status == 200, answer.body
        return team.newest().get("what", ""), answer.json

    assert told("POST", "/v1/accounts", {"name": "max"})[0] == "adds max"
    assert told("PATCH", "/v1/accounts/max", {"disabled": True})[0] == "disables max"
    assert told("PATCH", "/v1/accounts/max", {"disabled": False})[0] == "enables max"
    assert told("PUT", "/v1/groups/crew", {"members": ["max", "ann"]})[0] == "adds ann, max"
    assert told("PUT", "/v1/groups/crew", {"members": ["bob", "ann"]})[0] == "adds bob; removes max"

    def policy(place: str, role: str) -> str:
        bindings = [{"role": role, "members": ["group:crew"]}]
        return told("POST", f"/v1/{place}:setIamPolicy", {"policy": {"bindings": bindings}})[0]

    assert policy("projects/new", "viewer") == "in new: gives viewer to group:crew"
    assert (
        policy("projects/new", "admin") == "in new: gives admin to group:crew; takes viewer from group:crew"
    )
    assert policy("projects/new", "admin") == ""
    assert policy("server", "viewer") == "everywhere: gives viewer to group:crew"
    limits = {"account": "max", "role": "viewer", "projects": ["vision"]}
    what, made = told("POST", "/v1/tokens", limits)
    assert what == f"makes token {made['id']} of max (viewer, vision)"
    assert told("DELETE", f"/v1/tokens/{made['id']}")[0] == f"revokes token {made['id']} of max"
    assert f"revokes token {made['id']} of max" in team.server.cli("audit").stdout


@pytest.mark.parametrize(
    ("flags", "address"), [((), "127.0.0.1"), (("--trusted-proxy", "127.0.0.0/8"), "192.0.2.7")]
)
def test_the_address_is_that_of_the_caller_where_the_proxy_is_trusted(flags: tuple[str, ...], address: str):
    with LiveServer(*flags) as server:
        forwarded = {"X-Forwarded-For": "6.6.6.6, 192.0.2.7"}
        assert server.request("POST", "/v1/accounts", {"name": "ann"}, headers=forwarded).status == 200
        assert server.get("/v1/audit")["rows"][0]["address"] == address
