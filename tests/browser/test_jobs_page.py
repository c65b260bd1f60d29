"""The list of jobs in a real Chromium: looked at, filtered, sorted, paged, and many jobs changed at once."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.page import ON_BOTH_SCREENS, Complaints, Screen, axe, open_context, screenshot, sign_in
from tests.homes.many_jobs import keep_ended_jobs
from tests.live import JOBS, LiveServer, pool, python

HOSTILE = "<script>document.title = 'mine'</script> \x1b[31m"
OLD = 120  # ended jobs of long ago: three pages

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    server = LiveServer("--cpus", "4", "--memory", "16GiB", "--engine", "none")
    keep_ended_jobs(server.home, OLD)
    with server:
        submit(server, "fails", python("raise ValueError('too few digits')"), {"team": "vision"})
        submit(server, HOSTILE, ["true"])
        submit(server, "runs long", ["sleep", "1000"], machine="n1-standard-2")
        submit(server, "waits", ["true"], machine="n1-standard-4")
        yield server


def submit(
    server: LiveServer,
    name: str,
    command: list[str],
    labels: dict[str, str] | None = None,
    machine: str = "n1-standard-1",
) -> str:
    body = {"displayName": name, "labels": labels or {}}
    spec = {"workerPoolSpecs": [pool(command, machine=machine)]}
    said = {"X-Trainshed-User": "ada"}
    return server.request("POST", JOBS, body | {"jobSpec": spec}, headers=said).json["name"]


def row(page: Page, name: str) -> Locator:
    return page.locator("tbody tr").filter(has=page.get_by_role("link", name=name, exact=True))


def names(page: Page) -> list[str]:
    return page.locator("a.job").all_inner_texts()


@ON_BOTH_SCREENS
def test_a_person_sees_why_and_finds_a_job(console: Page, server: LiveServer, screen: Screen) -> None:
    console.goto("/console/jobs")
    expect(row(console, "fails")).to_contain_text("too few digits")
    expect(row(console, "fails")).to_contain_text("ada")
    expect(row(console, "waits")).to_contain_text("Needs 4 CPUs")
    expect(console.locator("tbody")).to_contain_text(HOSTILE[:30])
    assert "mine" not in console.title()
    assert axe(console) == []
    later = submit(server, f"later {screen}", ["true"])
    expect(row(console, f"later {screen}")).to_contain_text("queued")  # nobody reloads the page
    server.cancel(later)
    expect(row(console, f"later {screen}")).to_contain_text("cancelled")
    screenshot(console, f"jobs-{screen}")

    console.keyboard.press("/")
    console.keyboard.type("sta")
    expect(console.get_by_role("option", name="state=")).to_be_visible()
    assert axe(console) == []
    console.keyboard.press("ArrowDown")
    console.keyboard.press("Enter")
    console.get_by_role("option", name="state=FAILED").click()
    expect(console.locator("a.job")).to_have_count(1 + OLD // 10)
    expect(console).to_have_url(re.compile(r"filter=state%3DFAILED"))
    console.get_by_label("Filter jobs").fill("labels.team=vision too")
    expect(console.get_by_text("No job matches")).to_be_visible()
    console.get_by_label("Filter jobs").fill("VISION")
    expect(console.locator("a.job")).to_have_text(["fails"])
    console.go_back()
    width = console.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert width <= 0, "the page is wider than the screen"


def test_pages_and_orders_are_the_servers_and_in_the_address(console: Page) -> None:
    console.goto("/console/jobs?project=old")
    expect(console.get_by_text(f"{OLD} jobs")).to_be_visible()
    console.get_by_role("button", name="Name").click()
    expect(console.locator("a.job").first).to_have_text("old 000")
    console.get_by_role("button", name="Next").click()
    expect(console.locator("a.job").first).to_have_text("old 050")
    console.reload()
    expect(console.locator("a.job").first).to_have_text("old 050")
    expect(console.get_by_text("Page 2")).to_be_visible()
    console.keyboard.press("n")
    expect(console.locator("a.job").first).to_have_text("old 100")
    assert names(console) == [f"old {number}" for number in range(100, OLD)]
    console.keyboard.press("p")
    expect(console.locator("a.job").first).to_have_text("old 050")


def test_a_filter_that_is_not_understood_says_why(console: Page, no_complaints: Complaints) -> None:
    no_complaints.but("status of 400")
    console.goto("/console/jobs")
    field = console.get_by_label("Filter jobs")
    field.fill("colour=red")
    field.press("Enter")
    expect(console.get_by_text('"colour" is not known here')).to_be_visible()
    expect(field).to_have_attribute("aria-invalid", "true")
    assert axe(console) == []
    field.fill("old 11")
    expect(console.locator("a.job").first).to_have_text("old 119")


def test_columns_are_chosen_and_kept(console: Page) -> None:
    console.goto("/console/jobs")
    console.get_by_role("button", name="Columns").click()
    console.get_by_label("Labels").check()
    console.get_by_label("Kind").uncheck()
    assert axe(console) == []
    console.get_by_role("button", name="Done").click()
    console.reload()
    expect(row(console, "fails")).to_contain_text("team=vision")
    expect(console.get_by_role("columnheader", name="Kind")).to_have_count(0)


@ON_BOTH_SCREENS
def test_many_are_cancelled_retried_and_deleted(
    console: Page, server: LiveServer, screen: Screen, no_complaints: Complaints
) -> None:
    no_complaints.but("status of 404")
    word = f"many-{screen}"
    jobs = [submit(server, f"{word} {number}", ["sleep", "1000"]) for number in range(3)]
    console.goto(f"/console/jobs?filter={word}")
    expect(console.locator("a.job")).to_have_count(3)
    console.locator("tbody input").first.click()
    console.locator("tbody input").last.click(modifiers=["Shift"])
    expect(console.get_by_text("3 chosen")).to_be_visible()

    console.get_by_role("button", name="Cancel …").click()
    expect(console.get_by_role("dialog")).to_contain_text("asked to stop")
    assert axe(console) == []
    console.get_by_role("button", name="Cancel 3 jobs").click()
    expect(console.locator("tbody .state.dim")).to_have_count(3)  # cancelled
    expect(console.get_by_role("dialog")).to_have_count(0)

    console.keyboard.press("j")
    console.keyboard.press("x")
    expect(console.get_by_text("1 chosen")).to_be_visible()
    console.get_by_role("button", name="Retry …").click()
    console.get_by_role("button", name="Retry 1 job").click()
    expect(console.locator("a.job")).to_have_count(4)
    expect(console.get_by_role("dialog")).to_have_count(0)

    for job in jobs:
        console.locator(f'input[value="{job}"]').check()
    console.get_by_role("button", name="Delete …").click()
    server.request("DELETE", f"/v1/{jobs[0]}")  # by somebody else
    console.get_by_role("button", name="Delete 3 jobs").click()
    expect(console.get_by_role("dialog")).to_contain_text("2 of 3 jobs deleted, 1 failed")
    expect(console.get_by_role("dialog")).to_contain_text("There is no job")
    assert axe(console) == []
    console.get_by_role("button", name="Close", exact=True).last.click()
    expect(console.locator("a.job")).to_have_count(1)
    [left] = server.get(JOBS, view="trainshed", filter=word)["customJobs"]
    server.cancel(left["name"])


def test_a_job_is_opened_by_keys(console: Page) -> None:
    console.goto("/console/jobs")
    expect(row(console, "fails")).to_be_visible()
    console.keyboard.press("?")
    expect(console.get_by_role("dialog")).to_contain_text("Choose the job, or not")
    console.keyboard.press("Escape")
    console.keyboard.press("j")
    console.keyboard.press("j")
    console.keyboard.press("k")
    expect(console.locator("a.job").first).to_be_focused()
    address = console.locator("a.job").first.get_attribute("href") or ""
    console.keyboard.press("Enter")
    expect(console).to_have_url(re.compile(re.escape(address) + "$"))


def test_a_server_without_jobs_says_how_to_submit_the_first(browser: Browser) -> None:
    with LiveServer("--engine", "none") as server, open_context(browser, server) as context:
        page = context.new_page()
        sign_in(page, server)
        page.goto("/console/jobs")
        expect(page.get_by_text("No jobs yet")).to_be_visible()
        expect(page.get_by_text("trainshed submit train.py")).to_be_visible()
        assert axe(page) == []
        screenshot(page, "jobs-none")
        submit(server, "first", ["true"])
        expect(row(page, "first")).to_be_visible()
