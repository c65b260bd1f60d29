"""Who may use the console: a ticket or the token gives a session, which only pages of the server can use."""

import re
from collections.abc import Iterator

import pytest

from tests.live import Answer, LiveServer

PAGE = {"Sec-Fetch-Site": "same-origin"}
USERS = {"role": "user", "members": ["user:ann", "user:eve"]}


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer("--engine", "none") as server:
        yield server


def anonymous(server: LiveServer, verb: str, path: str, body: object = None, **headers: str) -> Answer:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return server.request(verb, path, body, headers=sent, token=None)


@pytest.fixture(scope="module")
def behind_a_proxy() -> Iterator[LiveServer]:
    names = ("--public-url", "https://gpu.example", "--allowed-host", "gpu.example")
    with LiveServer("--engine", "none", *names) as live:
        yield live


def ticket(server: LiveServer) -> str:
    return server.request("POST", "/v1/console:ticket", {}).json["ticket"]


def session(server: LiveServer, **proof: str) -> str:
    answer = anonymous(server, "POST", "/v1/console:signIn", proof)
    assert answer.status == 200, answer.json
    return answer.headers["set-cookie"]


def test_a_ticket_becomes_a_session_once(server: LiveServer):
    word = ticket(server)
    cookie = session(server, ticket=word)
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and server.token not in cookie
    assert anonymous(server, "GET", "/v1/server", Cookie=cookie.split(";")[0], **PAGE).status == 200
    again = anonymous(server, "POST", "/v1/console:signIn", {"ticket": word})
    assert again.status == 403 and "was used" in again.json["error"]["message"]


def test_a_ticket_of_somebody_else_replaces_no_session_unasked(server: LiveServer):
    for name in ("ann", "eve"):
        server.post("/v1/accounts", {"name": name})
    ann, eve = (server.post("/v1/tokens", {"account": name})["token"] for name in ("ann", "eve"))

    def entered(token: str, cookie: str, **more: object) -> Answer:
        word = server.request("POST", "/v1/console:ticket", {}, token=token).json["ticket"]
        body = {"ticket": word, **more}
        answer = anonymous(server, "POST", "/v1/console:signIn", body, Cookie=cookie, **PAGE)
        if "set-cookie" not in answer.headers:  # being asked costs no ticket
            assert (
                anonymous(server, "POST", "/v1/console:signIn", {**body, "replaceSession": True}).status
                == 200
            )
        return answer

    server.post("/v1/projects/p:setIamPolicy", {"policy": {"bindings": [USERS]}})
    own = session(server, token=ann).partition(";")[0]
    asked = entered(eve, own)
    assert asked.json == {"signedInAs": "ann", "ticketOf": "eve"} and "set-cookie" not in asked.headers
    assert entered(server.token, own).json["ticketOf"] == "the owner of the server"
    assert entered(ann, own).headers["set-cookie"]
    assert entered(eve, "").headers["set-cookie"]
    assert entered(eve, own.replace("=", "=1")).headers["set-cookie"]
    cookie = entered(eve, own, replaceSession=True).headers["set-cookie"].partition(";")[0]
    me = anonymous(server, "GET", "/v1/accounts:me", Cookie=cookie, **PAGE)
    assert me.json["name"] == "eve"


def test_the_token_becomes_a_session_and_a_wrong_one_does_not(server: LiveServer):
    cookie = session(server, token=server.token).split(";")[0]
    assert anonymous(server, "GET", "/v1/server", Cookie=cookie, **PAGE).status == 200
    assert anonymous(server, "POST", "/v1/console:signIn", {"token": "not-the-token"}).status == 401
    for body in ({}, {"token": server.token, "ticket": "x"}):
        answer = anonymous(server, "POST", "/v1/console:signIn", body)
        assert answer.status == 400 and "not both" in answer.json["error"]["message"]


def test_a_ticket_needs_the_token(server: LiveServer):
    assert anonymous(server, "POST", "/v1/console:ticket", {}).status == 403


def test_a_session_works_from_pages_of_the_server_only(server: LiveServer):
    cookie = session(server, ticket=ticket(server)).split(";")[0]
    path = "/v1/projects/p1/locations/us-central1/customJobs"
    assert anonymous(server, "GET", path, Cookie=cookie, **PAGE).status == 200
    assert anonymous(server, "GET", path, Cookie=cookie, Origin=server.url).status == 200
    for foreign in (
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {},
    ):
        assert anonymous(server, "GET", path, Cookie=cookie, **foreign).status == 403, foreign
        assert anonymous(server, "POST", path, {}, Cookie=cookie, **foreign).status == 403, foreign


@pytest.mark.parametrize(
    ("origin", "is_secure"),
    [("https://gpu.example", True), ("", True), ("http://gpu.example", False)],
    ids=["by the proxy", "by who sends no origin", "past the proxy"],
)
def test_behind_a_proxy_with_tls_a_session_is_sent_over_tls_only(
    behind_a_proxy: LiveServer, origin: str, is_secure: bool
):
    told = {"Host": "gpu.example", **({"Origin": origin} if origin else {})}
    body = {"token": behind_a_proxy.token}
    for path in ("signIn", "signOut"):
        answer = anonymous(behind_a_proxy, "POST", f"/v1/console:{path}", body, **told)
        assert answer.headers["set-cookie"].endswith("; Secure") is is_secure, path


def test_signing_out_takes_the_cookie_away(server: LiveServer):
    answer = anonymous(server, "POST", "/v1/console:signOut", {})
    assert "Max-Age=0" in answer.headers["set-cookie"]


def test_signing_out_ends_the_session_for_who_kept_the_cookie_and_others_go_on_also_after_a_kill(
    server: LiveServer,
):
    server.post("/v1/accounts", {"name": "zoe"})
    zoe = server.post("/v1/tokens", {"account": "zoe"})["token"]
    proofs = [{"token": server.token}, {"ticket": ticket(server)}, {"token": zoe}]
    more = [{"token": zoe}, {"ticket": ticket(server)}]
    kept = [session(server, **proof).split(";")[0] for proof in (*proofs, *more)]

    def codes() -> list[int]:
        asked = [anonymous(server, "GET", "/v1/accounts:me", Cookie=cookie, **PAGE) for cookie in kept]
        return [answer.status for answer in asked]

    assert codes() == [200] * 5
    for cookie in kept[:3]:
        answer = anonymous(server, "POST", "/v1/console:signOut", {}, Cookie=cookie, **PAGE)
        assert answer.status == 200
    assert codes() == [403] * 3 + [200] * 2
    server.kill()
    server.start()
    assert codes() == [403] * 3 + [200] * 2


def test_the_page_has_a_strict_policy_and_its_files_are_kept_by_browsers(server: LiveServer):
    page = anonymous(server, "GET", "/console/jobs")
    assert page.status == 200
    assert "unsafe" not in page.headers["content-security-policy"]
    addresses = re.findall(r'(?:href|src)="(/console/files/[^"]+)"', page.body.decode())
    assert addresses
    for address in addresses:
        file = anonymous(server, "GET", address)
        assert file.status == 200 and "immutable" in file.headers["cache-control"], address
    assert anonymous(server, "GET", "/console/files/x/../__init__.py").status == 404
    root = anonymous(server, "GET", "/")
    assert root.status == 303 and root.headers["location"] == "/console/jobs"


def test_a_page_says_where_hints_go_on_to_those_only_who_are_signed_in(server: LiveServer):
    address = "/console/jobs/p/us-central1/7/logs"
    cookie = session(server, token=server.token).partition(";")[0]
    name = cookie.partition("=")[0]
    assert b"last-hint" not in anonymous(server, "GET", address).body
    assert b"last-hint" not in anonymous(server, "GET", address, Cookie=f"{name}=invented").body
    page = anonymous(server, "GET", address, Cookie=cookie).body.decode()
    told = server.get("/v1/server")["lastHint"]
    assert f'<meta name="last-hint" content="{told}">' in page
    assert 'as="fetch" crossorigin href="/v1/projects/p/locations/us-central1/customJobs/7:status?' in page
