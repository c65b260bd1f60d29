"""The console with a real provider on another site: people sign in there, come back, and let `login` in."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from tests.browser.page import Complaints, axe, open_context, screenshot
from tests.live import LiveServer, pool, python
from tests.oidc import LoginCommand, RealProvider, real_provider, server_of

pytestmark = [pytest.mark.slow, pytest.mark.needs_provider, pytest.mark.timeout(300)]
ANN, BOB = "ann@example.org", "bob@example.org"


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealProvider]:
    # Of localhost and 127.0.0.1 a browser says that they are two sites, as a provider's and ours are.
    with real_provider(tmp_path_factory.mktemp("provider"), server_host="localhost") as provider:
        yield provider


@pytest.fixture(scope="module")
def server(provider: RealProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with server_of(provider, tmp_path_factory.mktemp("server"), "--cpus", "2", "--memory", "4GiB") as server:
        body = {"displayName": "of vision", "jobSpec": {"workerPoolSpecs": [pool(python("pass"))]}}
        server.post("/v1/projects/vision/locations/us-central1/customJobs", body)
        for name in (ANN, BOB):
            server.post("/v1/accounts", {"name": name})
        binding = {"role": "viewer", "members": [f"user:{ANN}"]}
        server.post("/v1/projects/vision:setIamPolicy", {"policy": {"bindings": [binding]}})
        yield server


@pytest.fixture
def context(browser: Browser, server: LiveServer) -> Iterator[BrowserContext]:
    with open_context(browser, server) as context:
        yield context


@pytest.fixture
def page(context: BrowserContext, no_complaints: Complaints, provider: RealProvider) -> Page:
    """Of somebody who is not signed in. The provider's pages ask for fonts elsewhere, and get none."""

    def nothing(route: Route) -> None:
        route.fulfill(status=200, content_type="text/css", body="")

    context.route("**/fonts.googleapis.com/**", nothing)
    page = context.new_page()
    # Before somebody has signed in, and when the page's stream ends with the session.
    no_complaints.but("status of 403", "ERR_INCOMPLETE_CHUNKED_ENCODING")
    no_complaints.watch(page)
    return page


def here(server: LiveServer, path: str) -> str:
    return f"http://localhost:{server.port}{path}"


def sign_in(page: Page, login: str) -> None:
    page.get_by_role("link", name="Sign in with Test House").click()
    page.locator("input[name=login]").fill(login)
    page.locator("input[name=password]").fill("any")
    page.get_by_role("button", name="Sign-in").click()
    page.get_by_role("button", name="Continue").click()


def test_who_signs_in_at_the_provider_comes_back_to_the_page_they_wanted(page: Page, server: LiveServer):
    before = server.get(f"/v1/tokens?account={ANN}")
    page.goto(here(server, "/console/jobs?state=all"))
    expect(page.get_by_role("link", name="Sign in with Test House")).to_be_visible()
    assert axe(page) == []
    screenshot(page, "provider")
    sign_in(page, "ann-1")
    expect(page.get_by_role("link", name="of vision")).to_be_visible()
    assert page.url == here(server, "/console/jobs?state=all")
    session = next(
        item
        for item in page.context.cookies()
        if item.get("name", "").startswith("trainshed-") and not item.get("name", "").endswith("-signin")
    )
    assert session.get("httpOnly") and session.get("sameSite") == "Strict"
    page.reload()
    expect(page.get_by_role("link", name="of vision")).to_be_visible()
    page.get_by_label("Settings").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("link", name="Sign in with Test House")).to_be_visible()
    assert server.get(f"/v1/tokens?account={ANN}") == before  # the session is gone


def test_who_has_no_role_is_told_so_and_can_sign_out(page: Page, server: LiveServer):
    page.goto(here(server, "/console/"))
    sign_in(page, "bob-1")
    expect(page.get_by_role("heading", name="You have no role yet")).to_be_visible()
    expect(page.get_by_text(BOB).first).to_be_visible()
    assert axe(page) == []
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("link", name="Sign in with Test House")).to_be_visible()


def test_who_is_refused_reads_why_and_gets_back(page: Page, server: LiveServer):
    page.goto(here(server, "/console/"))
    sign_in(page, "eve-1")
    expect(page.get_by_role("alert")).to_contain_text("has not verified that ann@example.org is yours")
    assert axe(page) == []
    screenshot(page, "provider-refused")
    page.get_by_role("link", name="Back to the console").click()
    expect(page.get_by_role("link", name="Sign in with Test House")).to_be_visible()


def test_login_is_allowed_in_the_browser_of_its_machine(page: Page, server: LiveServer, tmp_path: Path):
    command = LoginCommand(server, tmp_path / "home", "--browser")
    try:
        page.goto(command.opened().replace("127.0.0.1", "localhost", 1))
        sign_in(page, "ann-1")
        expect(page.get_by_role("heading", name="Sign in a command line?")).to_be_visible()
        assert axe(page) == []
        screenshot(page, "provider-login")
        page.get_by_role("button", name="Allow").click()
        expect(page.get_by_text("The command line goes on")).to_be_visible()
        expect(page).to_have_url(re.compile(r"http://127\.0\.0\.1:"))
        code, output, errors = command.end()
        assert code == 0 and output.startswith(ANN), errors
    finally:
        command.close()
    assert ANN in command.run("whoami")


def test_login_elsewhere_is_allowed_by_its_code(page: Page, server: LiveServer, tmp_path: Path):
    command = LoginCommand(server, tmp_path / "home", "--no-browser")
    try:
        command.line()
        code = command.line().split()[-1]
        page.goto(here(server, "/console/login"))
        sign_in(page, "ann-1")
        page.get_by_label("The code that").fill(code.lower())
        page.get_by_role("button", name="Go on").click()
        expect(page.get_by_text(code, exact=True)).to_be_visible()
        assert axe(page) == []
        screenshot(page, "provider-code")
        page.get_by_role("button", name="Allow").click()
        expect(page.get_by_text("The command line is signed in")).to_be_visible()
        returned, output, errors = command.end()
        assert returned == 0 and output.startswith(ANN), errors
    finally:
        command.close()
