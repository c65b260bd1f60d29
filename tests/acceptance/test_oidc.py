"""People sign in with a real OpenID Connect provider: in a browser without pages, and by the command line."""

import http.client
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.live import LiveServer, until
from tests.oidc import CLIENT, LoginCommand, PlainBrowser, RealProvider, real_provider, server_of

pytestmark = [pytest.mark.needs_provider, pytest.mark.slow]
ANN, BOB = "ann@example.org", "bob@example.org"


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealProvider]:
    with real_provider(tmp_path_factory.mktemp("provider")) as provider:
        yield provider


@pytest.fixture(scope="module")
def shared(provider: RealProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with server_of(provider, tmp_path_factory.mktemp("server"), "--oidc-groups-claim", "groups") as server:
        yield server


@pytest.fixture
def server(shared: LiveServer) -> LiveServer:
    """With Ann and Bob, whom nobody has signed in as."""
    for account in shared.get("/v1/accounts")["accounts"]:
        shared.request("DELETE", f"/v1/accounts/{account['name']}")
    for name in (ANN, BOB):
        shared.post("/v1/accounts", {"name": name})
    shared.request("PUT", "/v1/groups/vision", {"members": [BOB]})
    return shared


def tried(server: LiveServer) -> tuple[str, int, str]:
    """Who the audit log says signed in or was refused last, the answer and the reason."""
    rows = [row for row in server.get("/v1/audit")["rows"] if row["path"] == "/signin/callback"]
    last = max(rows, key=lambda row: row["time"])  # refusals that are alike are counted, and written later
    return last["who"], last["code"], last.get("reason", "")


def test_who_the_provider_knows_gets_a_session_of_their_account_and_its_groups(server: LiveServer):
    browser = PlainBrowser(server).sign_in("ann-1", "/console/machines?a=b")
    assert browser.url == f"{server.url}/console/machines?a=b" and browser.status == 200, browser.message()
    assert browser.name() == ANN
    assert tried(server) == (f"account {ANN}", 303, "")
    groups = {row["name"]: row["members"] for row in server.get("/v1/groups")["groups"]}
    assert groups == {"vision": [ANN, BOB]}
    PlainBrowser(server).sign_in("bob-1")  # whom the provider names in no group
    assert server.get("/v1/groups")["groups"][0]["members"] == [ANN]


def test_signing_out_ends_the_session_also_for_who_kept_the_cookie(server: LiveServer):
    browser = PlainBrowser(server).sign_in("ann-1")
    [token] = server.get("/v1/tokens?account=" + ANN)["tokens"]
    assert token["title"] == "console (OIDC)" and "expireTime" in token
    assert browser.ask("POST", "/v1/console:signOut", {}).status == 200
    assert browser.name() == "" and not server.get("/v1/tokens?account=" + ANN)["tokens"]


def test_an_address_that_was_given_to_somebody_else_opens_nothing(server: LiveServer):
    first = PlainBrowser(server).sign_in("ann-1")
    token = first.ask("POST", "/v1/tokens", {"title": "laptop"}).json["token"]
    browser = PlainBrowser(server).sign_in("new-ann")
    assert browser.status == 403 and "belongs to another person" in browser.message()
    assert browser.name() == ""
    who, code, reason = tried(server)
    assert (who, code) == ("anonymous", 403) and ANN in reason
    unlinked = server.cli("users", "unlink", ANN)
    assert unlinked.returncode == 0 and "all tokens and sessions before have ended" in unlinked.stdout
    assert first.name() == "" and server.request("GET", "/v1/accounts:me", token=token).status == 401
    assert PlainBrowser(server).sign_in("new-ann").name() == ANN


@pytest.mark.parametrize(
    ("login", "words"),
    [("eve-1", "has not verified that ann@example.org is yours"), ("robot-1", "There is no account 'robot'")],
)
def test_who_is_refused_is_told_why_on_a_page(server: LiveServer, login: str, words: str):
    browser = PlainBrowser(server).sign_in(login)
    assert browser.status == 403 and words in browser.message() and browser.name() == ""
    assert words in tried(server)[2]


def test_a_disabled_account_stays_out_and_its_session_ends(server: LiveServer):
    browser = PlainBrowser(server).sign_in("ann-1")
    server.request("PATCH", f"/v1/accounts/{ANN}", {"disabled": True})
    assert browser.name() == ""
    assert "is disabled" in PlainBrowser(server).sign_in("ann-1").message()


def test_the_answer_of_the_provider_counts_once_and_in_its_own_browser(server: LiveServer):
    browser = PlainBrowser(server)
    callback = led_back(browser, "ann-1")
    other = PlainBrowser(server).open("/signin").open(callback)
    assert other.status == 403 and "not the one that this browser began" in other.message()
    stranger = PlainBrowser(server).open(callback)
    assert stranger.status == 403 and "not begun in this browser" in stranger.message()
    assert browser.open(callback).status == 200 and browser.name() == ANN
    assert "was used already" in browser.open(callback).message()


def led_back(browser: PlainBrowser, login: str) -> str:
    """The address to which the provider leads a browser back, which does not go there."""
    connection = http.client.HTTPConnection("127.0.0.1", browser.server.port)
    connection.request("GET", "/signin")
    answer = connection.getresponse()
    answer.read()
    cookie = (answer.getheader("Set-Cookie") or "").partition(";")[0]
    connection.close()
    helper = PlainBrowser(browser.server)
    helper.open(answer.getheader("Location") or "").answer_provider(login)
    assert helper.status == 403  # it came back without the cookie, which uses nothing up
    name, _, word = cookie.partition("=")
    browser.open("/signin")  # for a cookie of that name, whose value is replaced
    [own] = [item for item in browser.jar if item.name == name]
    own.value = word
    return helper.url


def test_a_signed_in_provider_leads_nobody_elsewhere(server: LiveServer):
    browser = PlainBrowser(server).sign_in("ann-1", "https://evil.example/console/")
    assert browser.url == f"{server.url}/console/jobs"


def test_another_site_cannot_begin_a_sign_in(server: LiveServer):
    browser = PlainBrowser(server).open("/signin", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate")
    assert browser.status == 403 and not list(browser.jar)


def test_new_keys_of_the_provider_are_found(server: LiveServer, provider: RealProvider):
    assert PlainBrowser(server).sign_in("ann-1").name() == ANN
    provider.stop()
    provider.start()
    # Keys are fetched again at most every half minute.
    until(lambda: PlainBrowser(server).sign_in("ann-1").name() == ANN)


def test_a_provider_that_is_away_is_named_and_tokens_count(server: LiveServer, provider: RealProvider):
    token = server.post("/v1/tokens", {"account": ANN})["token"]
    provider.stop()
    try:
        server.restart()
        browser = PlainBrowser(server).open("/signin")
        assert browser.status == 503, browser.text
        assert f"(--oidc-issuer {provider.issuer}): Connection refused" in browser.message()
        assert server.request("GET", "/v1/accounts:me", token=token).json["name"] == ANN
    finally:
        provider.start()
    until(lambda: PlainBrowser(server).sign_in("ann-1").name() == ANN)


@pytest.mark.parametrize("algorithm", ["ES256", "PS256", "EdDSA"])
def test_a_public_client_and_other_signatures(tmp_path: Path, algorithm: str):
    with (
        real_provider(tmp_path, secret="", algorithm=algorithm) as provider,
        server_of(provider, tmp_path, "--oidc-new-accounts") as server,
    ):
        browser = PlainBrowser(server).sign_in("ann-1")
        assert browser.name() == ANN, browser.message()
        [account] = server.get("/v1/accounts")["accounts"]
        assert (account["displayName"], account["roles"], account["issuer"]) == (
            "Ann Lee",
            [],
            provider.issuer,
        )


@pytest.mark.parametrize("public", ["", "https://gpu-box.example.org"])
def test_over_tls_the_browser_comes_back_by_https_and_the_cookie_stays_there(tmp_path: Path, public: str):
    flags = ["--public-url", public, "--no-tls"] if public else ["--tls"]
    with real_provider(tmp_path) as provider, server_of(provider, tmp_path, *flags) as server:
        answer = server.request("GET", "/signin", token=None)
        query = parse_qs(urlsplit(answer.headers["location"]).query)
        assert query["redirect_uri"] == [f"{public or server.url}/signin/callback"]
        assert query["redirect_uri"][0].startswith("https://")
        for word in ("Secure", "HttpOnly", "SameSite=Lax", "Path=/signin"):
            assert word in answer.headers["set-cookie"].split("; ")


def test_a_wrong_secret_names_the_settings(tmp_path: Path):
    with real_provider(tmp_path) as provider, server_of(provider, tmp_path) as server:
        (tmp_path / "client-secret").write_text("wrong")
        browser = PlainBrowser(server).sign_in("ann-1")
        assert browser.status == 503 and f"--oidc-client-id {CLIENT}" in browser.message()


def test_login_by_a_browser_here_ends_with_a_token_of_the_account(server: LiveServer, tmp_path: Path):
    command = LoginCommand(server, tmp_path / "home", "--browser", "--project", "vision")
    try:
        address = urlsplit(command.opened())
        assert address.path == "/console/login" and server.url.endswith(address.netloc)
        query = {name: values[0] for name, values in parse_qs(address.query).items()}
        browser = PlainBrowser(server).sign_in("ann-1", f"{address.path}?{address.query}")
        assert browser.url.endswith(f"?{address.query}")
        port = int(query.pop("port"))
        # Whatever else asks at that port gets nothing, and ends nothing.
        assert browser.open(f"http://127.0.0.1:{port}/?word=x&state=y").status == 404
        assert browser.open(f"http://127.0.0.1:{port}/x?state={query['state']}").status == 404
        allowed = browser.ask("POST", "/v1/logins:allow", {**query, "port": port}).json["address"]
        assert browser.open(allowed).text.startswith("The command line goes on")
        code, output, errors = command.end()
        assert code == 0, errors
        assert f"{ANN} at {server.url}: has no role yet" in output
    finally:
        command.close()
    assert ANN in command.run("whoami")
    titles = {token["title"] for token in server.get(f"/v1/tokens?account={ANN}")["tokens"]}
    assert "console (OIDC)" in titles and any(
        title.endswith("(OIDC)") for title in titles - {"console (OIDC)"}
    )
    login = json.loads((command.home / "login.json").read_text())
    assert login["project"] == "vision" and login["token"].startswith("ts.")
    word = parse_qs(urlsplit(allowed).query)["word"][0]
    again = server.request("POST", "/v1/logins:redeem", {"word": word, "verifier": "x"}, token=None)
    assert again.status == 403 and "was used" in again.error["message"]
    redeemed = [row["who"] for row in server.get("/v1/audit")["rows"] if row["path"].endswith(":redeem")]
    assert redeemed[:2] == ["anonymous", f"account {ANN}"]


def test_login_by_a_browser_elsewhere_waits_until_the_code_is_allowed(server: LiveServer, tmp_path: Path):
    command = LoginCommand(server, tmp_path / "home", "--no-browser")
    try:
        address = command.line().split()[-1]
        code = command.line().split()[-1]
        assert address == f"{server.url}/console/login?code={code}"
        browser = PlainBrowser(server).sign_in("bob-1")
        login = browser.ask("GET", f"/v1/logins/{code}").json
        assert login["code"] == code and login["address"] == "127.0.0.1"
        assert server.request("GET", f"/v1/logins/{code}", token=None).status == 403
        assert browser.ask("POST", f"/v1/logins/{code}:allow", {}).status == 200
        returned, output, errors = command.end()
        assert returned == 0 and output.startswith(f"{BOB} at "), errors
    finally:
        command.close()
    assert BOB in command.run("whoami")


def test_at_a_terminal_the_provider_comes_first_and_a_token_where_it_is_asked_for(
    server: LiveServer, tmp_path: Path
):
    token = server.post("/v1/tokens", {"account": ANN})["token"]
    person, terminal = os.openpty()
    command = LoginCommand(server, tmp_path / "home", terminal=terminal)  # without a display
    try:
        assert command.line().startswith(
            f"Open this address in any browser: {server.url}/console/login?code="
        )
        command.close()
        command = LoginCommand(server, tmp_path / "home", "--token", terminal=terminal)
        command.question("token: ")
        os.write(person, f"{token}\n".encode())
        code, output, errors = command.end()
        assert code == 0 and output.startswith(ANN), errors
    finally:
        command.close()
        os.close(person)
        os.close(terminal)


def test_a_login_that_is_refused_ends_with_a_sentence(server: LiveServer, tmp_path: Path):
    command = LoginCommand(server, tmp_path / "home", "--no-browser")
    try:
        command.line()
        code = command.line().split()[-1]
        browser = PlainBrowser(server).sign_in("bob-1")
        assert browser.ask("POST", f"/v1/logins/{code}:refuse", {}).status == 200
        returned, _, errors = command.end()
        assert returned == 1 and "run trainshed login again" in errors
        assert not (command.home / "login.json").exists()
    finally:
        command.close()


def test_the_owner_cannot_allow_a_login_and_a_pipe_still_brings_a_token(server: LiveServer, tmp_path: Path):
    body = {"challenge": "a" * 43, "title": "laptop", "port": 40000, "state": "s"}
    refused = server.request("POST", "/v1/logins:allow", body)
    assert refused.status == 403 and "sign in as an account" in refused.error["message"]
    wrong = server.request("POST", "/v1/logins:allow", {**body, "port": 80})
    assert wrong.status == 400 and "port" in wrong.violations
    token = server.post("/v1/tokens", {"account": ANN})["token"]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "trainshed.cli", "login", "--url", server.url],
        env={"TRAINSHED_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        input=token,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0 and ANN in done.stdout, done.stderr


def test_a_server_without_a_provider_says_so_and_has_none_of_its_methods(tmp_path: Path):
    with LiveServer() as server:
        for verb, path in (("GET", "/signin"), ("GET", "/signin/callback"), ("POST", "/v1/logins")):
            assert server.request(verb, path, {} if verb == "POST" else None).status == 404
        assert "provider" not in server.request("GET", "/healthz").json
        assert b'name="provider"' not in server.request("GET", "/console/jobs").body
        command = LoginCommand(server, tmp_path / "home", "--browser")
        try:
            code, _, errors = command.end()
        finally:
            command.close()
        assert code == 1 and "knows no provider" in errors
