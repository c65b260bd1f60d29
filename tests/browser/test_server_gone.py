"""A server that is killed and comes back while a page is open: the page says so, and goes on by itself."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import Page, Route, expect

from tests.browser.addresses import JOB, visit
from tests.browser.page import Complaints
from tests.live import LiveServer, python

AWAY = "The server does not answer"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "8", "--memory", "64GiB", "--engine", "none") as server:
        yield server


def test_a_page_says_that_the_server_is_gone_and_goes_on_when_it_is_back(
    console: Page, server: LiveServer, no_complaints: Complaints
):
    no_complaints.but("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET")
    name = server.submit(python("import time; time.sleep(1000)"), name="stays")
    server.wait_for(name, ["JOB_STATE_RUNNING"])
    visit(console, JOB, name)
    console.evaluate("window.isSamePage = true")
    server.kill()
    expect(console.get_by_text(AWAY)).to_be_visible()
    expect(console.get_by_role("heading", level=1)).to_have_text("stays")  # what was read is still shown
    server.start()
    expect(console.get_by_text(AWAY)).to_have_count(0)
    server.cancel(name)
    server.wait(name)
    expect(console.locator("main header").get_by_text("cancelled").first).to_be_visible()
    assert console.evaluate("window.isSamePage") is True


def test_a_page_of_which_a_part_did_not_come_is_loaded_again(console: Page, no_complaints: Complaints):
    no_complaints.but("ERR_FAILED")
    dropped: list[str] = []

    def drop_first(route: Route) -> None:
        name = route.request.url.rpartition("/")[2]
        if name in dropped:
            route.continue_()
        else:
            dropped.append(name)
            route.abort()

    for file in ("lib/keys.js", "pages/machines.js"):
        console.route(f"**/{file}", drop_first)
    console.route("**/locations/-/nodes", drop_first)
    console.goto("/console/machines")
    expect(console.get_by_role("heading", name="Machines and queue")).to_be_visible()
    expect(console.get_by_role("table").first).to_be_visible()
    assert dropped == ["keys.js", "machines.js", "nodes"]


DRAWN_LATE = """async () => {
        const base = document.querySelector("script[src$='main.js']").src.replace("main.js", "");
        const [{ html, render }, { load, Module }] = await Promise.all(
            [import(base + "lib/ui.js"), import(base + "parts/module.js")]);
        load("runtimes");
        await import(base + "pages/runtimes.js");
        const place = document.body.appendChild(document.createElement("section"));
        render(html`<${Module} name="runtimes" />`, place);
        document.querySelector("link[href$='runtimes.css']").onload();
    }"""


def test_a_part_that_comes_after_it_was_drawn_and_before_anybody_waits_for_it_is_shown(
    console: Page, no_complaints: Complaints
):
    """It happens to one visit in four where module and answer of the server come in the same moment."""
    no_complaints.but("Failed to fetch")  # see below
    console.goto("/console/jobs")
    console.route(
        "**/pages/runtimes.css", lambda _: None
    )  # the module is not complete before its looks are here
    for tries in range(5):
        try:
            console.evaluate(DRAWN_LATE)
            break
        except PlaywrightError:  # a container began elsewhere, and the browser dropped the module
            assert tries < 4
            console.reload()
    expect(console.locator("body > section").get_by_role("heading", name="Runtimes")).to_be_visible()
