"""What a person would call ugly: text that is cut off, tabs that jump, a log that ends below the window."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.addresses import JOB, REFUSALS, visit, visit_all
from tests.browser.page import NARROW, ON_BOTH_SCREENS, Complaints, Screen
from tests.live import LiveServer, pool, python

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "8", "--memory", "64GiB") as server:
        yield server


@pytest.fixture(scope="module")
def job(server: LiveServer) -> str:
    """A job with replicas, lines and a verdict, beside one that was cancelled before it ran."""
    holds = server.submit(pools=[pool(["sleep", "1000"], machine="n1-standard-8")], name="holds")
    server.wait_for(holds, ["JOB_STATE_RUNNING"])
    waits = server.submit(pools=[pool(python("pass"), machine="n1-standard-8")], name="never ran")
    for other in (waits, holds):
        server.cancel(other)
        server.wait(other)
    name = server.submit(["sh", "-c", "for i in $(seq 500); do echo line $i; done; exit 3"], name="fails")
    server.wait(name)
    return name


def left_edges(links: Locator) -> list[float]:
    return links.evaluate_all("all => all.map(link => link.getBoundingClientRect().left)")


@pytest.mark.parametrize("screen", [NARROW], ids=str)
def test_no_page_is_wider_than_a_phone(console: Page, job: str, no_complaints: Complaints):
    no_complaints.but(*REFUSALS)
    for address in visit_all(console, job):
        assert console.evaluate("document.documentElement.scrollWidth <= innerWidth"), address


def test_tabs_and_pages_stay_where_they_are_when_one_is_opened(console: Page, job: str):
    visit(console, JOB, job)
    tabs = console.get_by_role("navigation", name="Parts of the job").get_by_role("link")
    names = console.get_by_role("navigation", name="Pages").get_by_role("link")
    before = left_edges(tabs)
    tabs.filter(has_text="Logs").click()
    expect(console.get_by_label("Lines of the log")).to_be_visible()
    assert left_edges(tabs) == before
    before = left_edges(names)
    names.filter(has_text="Machines").click()
    expect(console.get_by_role("heading", name="Machines and queue")).to_be_visible()
    assert left_edges(names) == before


@pytest.mark.parametrize("screen", [NARROW], ids=str)
def test_a_phone_shows_the_tab_that_is_open(console: Page, job: str):
    visit(console, JOB, job)
    console.goto(f"{console.url}/spec")
    expect(console.get_by_role("link", name="Spec", exact=True)).to_be_in_viewport(ratio=0.99)


@ON_BOTH_SCREENS
def test_a_log_ends_where_the_window_ends(console: Page, job: str, screen: Screen):
    visit(console, JOB, job)
    console.goto(f"{console.url}/logs")
    expect(console.get_by_text("500 lines")).to_be_in_viewport(ratio=1)
    expect(console.get_by_text("line 500", exact=True)).to_be_in_viewport()
    log = console.get_by_label("Lines of the log").bounding_box()
    assert log is not None and log["height"] > 300
    assert console.evaluate("document.documentElement.scrollHeight <= innerHeight")


@ON_BOTH_SCREENS
def test_every_state_is_told_in_the_list(console: Page, job: str, screen: Screen):
    console.goto("/console/jobs")
    row = console.get_by_role("row").filter(has_text="never ran")
    expect(row.get_by_text("cancelled")).to_be_visible()


@ON_BOTH_SCREENS
def test_a_menu_is_seen_whole_and_says_what_cannot_be_done(console: Page, server: LiveServer, screen: Screen):
    name = server.submit(["sleep", "1000"], name="runs")
    visit(console, JOB, name)
    console.get_by_role("button", name="More").click()
    for item in console.get_by_role("menuitem").all():
        expect(item).to_be_in_viewport(ratio=0.99)
    refused = console.get_by_role("menuitem", name="Delete")
    expect(refused).to_have_attribute("aria-disabled", "true")
    colour = "item => getComputedStyle(item).color"
    assert refused.evaluate(colour) != console.get_by_role("button", name="Cancel").evaluate(colour)
    server.cancel(name)
    server.wait(name)


def test_the_button_that_submits_is_in_sight_however_much_there_is_to_say(
    console: Page, server: LiveServer, no_complaints: Complaints
):
    no_complaints.but("status of 503")  # there is no engine to ask for images
    holds = server.submit(pools=[pool(["sleep", "1000"], machine="n1-standard-8")], name="holds")
    server.wait_for(holds, ["JOB_STATE_RUNNING"])
    waits = [
        server.submit(pools=[pool(["true"], machine="n1-standard-8")], name=f"waits {at}") for at in range(8)
    ]
    console.goto(f"/console/new?from={waits[0]}")
    expect(console.get_by_text("Would wait, at place 9 of 9")).not_to_contain_text("now")
    expect(console.get_by_role("button", name="Submit the job")).to_be_in_viewport(ratio=0.99)
    for name in (*waits, holds):
        server.cancel(name)
        server.wait(name)


def test_a_job_says_what_a_program_without_a_traceback_did_and_that_no_replica_came(
    console: Page, server: LiveServer, job: str
):
    visit(console, JOB, job)
    why = console.get_by_role("region", name="Why it failed")
    expect(why.get_by_role("heading")).to_have_text("workerpool0-0 exited with code 3")
    console.goto("/console/jobs?filter=never")
    console.get_by_role("link", name="never ran").click()
    expect(console.get_by_text("None: the job ended before any started.")).to_be_visible()
