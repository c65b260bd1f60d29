"""axe-core finds nothing wrong, on every page, in both themes, at both widths."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.addresses import REFUSALS, visit_all
from tests.browser.page import ON_BOTH_SCREENS, Complaints, Screen, axe_in_both_themes
from tests.live import LiveServer, pool, python

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "8", "--memory", "64GiB", "--engine", "none") as server:
        yield server


@pytest.fixture(scope="module")
def job(server: LiveServer) -> str:
    """A job that failed, beside one that succeeded and one that cannot start."""
    server.wait(server.submit(python("print('step 1')"), name="good", labels={"team": "vision"}))
    server.submit(pools=[pool(python("pass"), machine="n1-standard-96")], name="waits")
    failed = server.submit(python("print('step 1'); raise ValueError('no such column: price')"), name="bad")
    server.wait(failed)
    return failed


@ON_BOTH_SCREENS
def test_axe_finds_nothing_on_any_page(console: Page, no_complaints: Complaints, job: str, screen: Screen):
    no_complaints.but(*REFUSALS)
    wrong: list[str] = []
    for address in visit_all(console, job):
        assert no_complaints.unexpected() == [], address
        wrong += [f"{address}: {sentence}" for sentence in axe_in_both_themes(console, str(address))]
    assert wrong == []


@ON_BOTH_SCREENS
def test_axe_finds_nothing_where_people_sign_in(visitor: Page, no_complaints: Complaints, screen: Screen):
    no_complaints.but("status of 401", "status of 403")
    visitor.goto("/console/jobs")
    expect(visitor.get_by_label("Your token, or the server's")).to_be_visible()
    assert axe_in_both_themes(visitor, "sign-in") == []


@ON_BOTH_SCREENS
def test_axe_finds_nothing_in_the_help_of_keys_and_the_settings(console: Page, screen: Screen):
    console.goto("/console/jobs")
    console.locator("summary", has_text="⋯").click()
    assert axe_in_both_themes(console, "menu") == []
    console.get_by_role("button", name="Keys").click()
    expect(console.get_by_role("dialog")).to_be_visible()
    assert axe_in_both_themes(console, "keys") == []
