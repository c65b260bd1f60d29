"""The console at size: 100,000 jobs, and a log of 1 GB. LOG_LINES=1000000 makes the log smaller."""

import os
import re
import sys
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.page import NARROW, Screen, axe, screenshot
from tests.homes.many_jobs import keep_ended_jobs
from tests.live import LiveServer
from tests.long_log import NEEDLE, prints

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

JOBS = 100_000  # one of ten failed
LINES = int(os.environ.get("LOG_LINES", "10000000"))  # of 100 bytes
MOST_HEAP = 100_000_000  # bytes


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    server = LiveServer("--cpus", "4", "--memory", "8GiB", "--engine", "none")
    keep_ended_jobs(server.home, JOBS)
    with server:
        yield server


@pytest.fixture(scope="module")
def long_log(server: LiveServer) -> str:
    """The address of the log."""
    name = server.submit([sys.executable, "-c", prints(LINES)], name="prints much")
    server.wait(name, 300)
    while server.request("GET", f"/v1/{name}:lines", timeout=300).status == 503:
        time.sleep(1)  # its lines are counted once: a page that comes sooner asks again, and says so
    _, project, _, location, _, job = name.split("/")
    return f"/console/jobs/{project}/{location}/{job}/logs"


def first_job(page: Page) -> Locator:
    return page.locator("a.job").first


def row(page: Page, number: int) -> Locator:
    return page.locator(".log-row").filter(has_text=f"{number:08d} ")


def texts_at_rest(page: Page) -> list[str]:
    """The lines shown once the view stands still and all of them have come: a wheel moves it for a while."""
    before: list[str] = []
    for _ in range(100):
        texts = page.locator(".log-text").all_inner_texts()
        if texts == before and all(texts):
            return texts
        before = texts
        page.wait_for_timeout(200)
    raise AssertionError("the log still moves, or lines of it are missing")


@pytest.mark.parametrize("screen", [NARROW], ids=str)  # test_jobs_page.py sorts and pages on a wide one
def test_a_hundred_thousand_jobs_are_counted_filtered_sorted_and_paged(console: Page, screen: Screen) -> None:
    console.goto("/console/jobs?project=old")
    expect(first_job(console)).to_have_text(f"old {JOBS - 1}")
    expect(console.get_by_text("100,000 jobs")).to_be_visible()
    field = console.get_by_label("Filter jobs")
    field.fill("state=FAILED")
    expect(console.get_by_text("10,000 jobs")).to_be_visible()
    expect(console.locator("a.job").nth(1)).to_have_text(f"old {JOBS - 11}")
    field.fill("54321")
    expect(console.locator("a.job")).to_have_text(["old 54321"])
    expect(console.get_by_text("1 job", exact=True)).to_be_visible()
    field.fill("labels.seed=7 state=FAILED")
    expect(console.get_by_text("No job matches")).to_be_visible()  # every tenth and every fiftieth never meet

    field.fill("")
    field.press("Enter")
    expect(first_job(console)).to_have_text(f"old {JOBS - 1}")
    for page in (2, 3):
        console.get_by_role("button", name="Next").click()
        expect(console.get_by_text(f"Page {page}")).to_be_visible()
        expect(first_job(console)).to_have_text(f"old {JOBS - 1 - 50 * (page - 1)}")
    console.get_by_role("button", name="Previous").click()
    expect(first_job(console)).to_have_text(f"old {JOBS - 51}")

    # The last pages are the first ones of the other order.
    console.get_by_label("Sort by").select_option("Submitted ↑")
    expect(first_job(console)).to_have_text("old 000")
    console.get_by_role("button", name="Next").click()
    expect(first_job(console)).to_have_text("old 050")
    expect(console.locator("a.job").last).to_have_text("old 099")
    assert axe(console) == []
    screenshot(console, f"large-jobs-{screen}")


# Once: test_logs_page.py has both screens, and only the length of this one is special.
def test_a_log_of_a_gigabyte_is_opened_at_its_end_searched_and_scrolled_in_little_memory(
    console: Page, long_log: str, screen: Screen
) -> None:
    session = console.context.new_cdp_session(console)
    session.send("Performance.enable")
    console.goto(long_log)
    expect(row(console, LINES)).to_be_visible()
    expect(console.locator(".log-state")).to_contain_text(f"{LINES:,} lines")

    middle = LINES // 2
    console.get_by_label("Go to a line or a time").fill(f"{middle:,}")
    console.get_by_role("button", name="Go", exact=True).click()
    expect(row(console, middle)).to_be_visible()
    expect(console.locator(".log-row.marked")).to_contain_text(f"{middle:08d} ")
    expect(console).to_have_url(re.compile(rf"line={middle}\b"))
    console.get_by_role("region", name="Lines of the log").hover()
    for _ in range(60):
        console.mouse.wheel(0, 3000)
        console.wait_for_timeout(20)
    expect(row(console, middle)).to_have_count(0)
    numbers = [int(text[:8]) for text in texts_at_rest(console)]
    assert numbers == [*range(numbers[0], numbers[0] + len(numbers))], "a line is missing or twice there"
    assert middle < numbers[0] < LINES

    console.get_by_label("Search the log").fill(NEEDLE)
    expect(console.locator(".log-matches")).to_have_text("1 line")
    console.get_by_label("Search the log").press("Enter")
    expect(console.locator(".log-row.marked mark")).to_have_text(NEEDLE)
    expect(row(console, LINES)).to_be_visible()
    assert console.locator(".log-row").count() < 300, "lines that nobody sees are not drawn"
    metrics = {entry["name"]: entry["value"] for entry in session.send("Performance.getMetrics")["metrics"]}
    assert metrics["JSHeapUsedSize"] < MOST_HEAP
    screenshot(console, f"large-log-{screen}")


def test_a_link_to_a_line_of_a_long_log_leads_there(console: Page, long_log: str) -> None:
    number = LINES // 3
    console.goto(f"{long_log}?line={number}")
    expect(console.locator(".log-row.marked")).to_contain_text(f"{number:08d} ")
    console.get_by_role("button", name="To the end").click()
    expect(row(console, LINES)).to_be_visible()
