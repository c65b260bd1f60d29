"""The log of a job in a browser: followed, searched, filtered, linked by line, with colours and folds."""

import re
import time
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from tests.browser.page import ON_BOTH_SCREENS, Screen, axe, axe_in_both_themes, screenshot
from tests.live import LiveServer, pool, python

pytestmark = pytest.mark.slow

PROGRAM = r"""
import sys
for number in range(1, 3001):
    print(f"step {number} loss {1 / number:.4f}")
red, title = "\x1b[1;31mred alert\x1b[0m", "\x1b]0;title\x07"
print(red, "and \x1b[38;2;10;200;30mtrue\x1b[0m" + title, "<script>alert(1)</script>")
print("10%\r50%\r100% done")
print("WARNING: it gets warm", flush=True)
print("the needle in the hay", flush=True)
def deeper(depth):
    if depth == 0: raise ValueError("the input is bad")
    deeper(depth - 1)
import time; time.sleep(0.1)  # files that were written in one tick have no order
deeper(5)
"""
SLOW = "import time\nfor number in range(10_000): print('tick', number, flush=True); time.sleep(0.3)"


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer("--engine", "none", "--cpus", "16") as server:
        yield server


@pytest.fixture(scope="module")
def failed(server: LiveServer) -> str:
    worker = python("for number in range(500): print('worker', number)")
    name = server.submit(pools=[pool(python(PROGRAM)), pool(worker)], name="<script>alert(2)</script>")
    server.wait(name)
    return name


def logs_of(name: str, query: str = "") -> str:
    _, project, _, location, _, job = name.split("/")
    return f"/console/jobs/{project}/{location}/{job}/logs{query}"


def row(page: Page, text: str | re.Pattern[str]):
    return page.locator(".log-row:not(.log-event)").filter(has_text=text)


@ON_BOTH_SCREENS
def test_a_whole_log_is_read_searched_and_linked(console: Page, server: LiveServer, failed: str) -> None:
    console.goto(logs_of(failed, "?task=workerpool0-0"))
    log = console.get_by_role("region", name="Lines of the log")
    expect(row(console, "ValueError: the input is bad")).to_be_visible()  # it opens at the end
    expect(row(console, "red alert and true <script>alert(1)</script>")).to_have_count(1)
    expect(console.locator(".log .bold.fore-1")).to_have_text("red alert")
    expect(row(console, "100% done")).not_to_contain_text("50%")
    assert console.locator(".verdict").count() >= 1

    stack = row(console, "Traceback (most recent call last)")
    expect(row(console, "in deeper")).to_have_count(0)
    stack.get_by_role("button").click()
    expect(row(console, "in deeper").first).to_be_attached()

    console.keyboard.press("g")
    console.keyboard.press("g")
    expect(row(console, re.compile(r"step 1 loss"))).to_be_visible()
    expect(console).to_have_url(re.compile(r"line=1\b"))
    console.get_by_label("Go to a line or a time").fill("1500")
    console.get_by_role("button", name="Go", exact=True).click()
    expect(row(console, "step 1500 loss")).to_be_visible()
    expect(console.locator(".log-row.marked")).to_contain_text("step 1500 loss")
    log.hover()
    console.mouse.wheel(0, 400)
    expect(row(console, "step 1515 loss")).to_be_visible()

    console.keyboard.press("/")
    console.get_by_label("Search the log").fill("NEEDLE")
    expect(console.locator(".log-matches")).to_have_text("1 line")
    console.keyboard.press("Enter")
    expect(console.locator(".log-row.marked mark")).to_have_text("needle")
    expect(console.locator(".log-matches")).to_have_text("1 of 1")
    console.get_by_label("Search the log").fill("/step \\d+0 /")
    console.get_by_label("Only matches").check()
    expect(console.locator(".log-matches")).to_have_text("300 lines")
    expect(row(console, "step 20 loss")).to_be_visible()
    expect(row(console, "step 21 loss")).to_have_count(0)
    with console.expect_download() as download:
        console.get_by_role("link", name="Download").click()
    assert download.value.suggested_filename == f"{failed.rpartition('/')[2]}-workerpool0-0.log"


def test_a_link_to_a_line_shows_that_line_and_replicas_can_be_told_apart(
    console: Page, server: LiveServer, failed: str
) -> None:
    total = int(server.get(f"/v1/{failed}:lines", count=0)["total"]["lines"])
    wanted = server.get(f"/v1/{failed}:lines", line=777, count=1)["lines"][0]
    console.goto(logs_of(failed, "?line=777"))
    expect(console.locator(".log-row.marked")).to_contain_text(wanted["text"])
    expect(console.locator(".log-replica").first).to_be_visible()
    console.get_by_label("Replica").select_option("workerpool1-0")
    expect(row(console, "worker 499")).to_be_visible()
    console.get_by_label("Replica").select_option("")
    expect(console.locator(".log-state")).to_contain_text(f"{total:,} lines")
    console.get_by_label("Severity").select_option("ERROR")
    expect(row(console, "ValueError: the input is bad")).to_be_visible()
    expect(row(console, "worker 499")).to_have_count(0)
    console.get_by_label("Severity").select_option("")
    console.get_by_role("button", name="Why it failed").click()
    expect(console.locator(".log-row.marked.verdict")).to_be_visible()
    console.goto(logs_of(failed, f"?time={quote(wanted['time'])}"))
    expect(console.locator(".log-row.marked")).to_contain_text(wanted["text"])


def test_a_live_log_is_followed_lets_go_and_goes_on(console: Page, server: LiveServer) -> None:
    name = server.submit(python("for n in range(200): print('before', n)\n" + SLOW))
    console.goto(logs_of(name))
    expect(row(console, re.compile(r"tick \d"))).not_to_have_count(0)
    seen = console.locator(".log-row").last.inner_text()
    expect(console.locator(".log-row").last).not_to_have_text(seen)
    console.get_by_role("region", name="Lines of the log").hover()
    console.mouse.wheel(0, -1500)
    button = console.get_by_role("button", name="To the end")
    expect(button).to_be_visible()
    first = console.locator(".log-row").first.inner_text()
    time.sleep(1.5)
    assert console.locator(".log-row").first.inner_text() == first
    button.click()
    expect(button).to_be_hidden()
    expect(console.locator(".log-state")).to_contain_text("following")
    server.cancel(name)


@ON_BOTH_SCREENS
def test_it_can_be_read_by_everybody(console: Page, screen: Screen, failed: str, server: LiveServer) -> None:
    console.goto(logs_of(failed))
    expect(row(console, "ValueError: the input is bad")).to_be_visible()
    assert axe_in_both_themes(console, "logs") == []
    console.goto(logs_of(failed, "?find=needle&task=workerpool0-0"))
    expect(console.locator(".log-matches")).to_have_text("1 line")
    screenshot(console, f"logs-search-{screen}")


@ON_BOTH_SCREENS
def test_what_happened_to_the_job_stands_between_the_lines_and_can_be_left_out(
    console: Page, server: LiveServer, screen: Screen
) -> None:
    rule = {"maxJobRetries": 1, "retryExitCodes": ["1-255"], "maxReplicaRestarts": 0, "backoff": "0.5s"}
    command = python("import time; print('try me', flush=True); time.sleep(1); raise SystemExit(3)")
    name = server.submit(pools=[pool(command)], spec={"scheduling": {"restartRule": rule}}, name="twice")
    server.wait(name)
    console.goto(logs_of(name))
    rows = console.locator(".log-row")
    retried = rows.filter(has_text="[JOB_RETRIED]")
    expect(retried).to_be_visible()
    texts = rows.all_inner_texts()
    places = [at for at, text in enumerate(texts) if "try me" in text]
    event = next(at for at, text in enumerate(texts) if "[JOB_RETRIED]" in text)
    assert places[0] < event < places[1], texts
    assert "[SUBMITTED]" in texts[0] and "[RETRIES_EXHAUSTED]" in "".join(texts[places[1] :]), texts
    expect(console.get_by_text("2 lines")).to_be_visible()  # events are no lines
    assert axe(console) == []
    screenshot(console, f"logs-events-{screen}")
    console.get_by_role("button", name="Events").click()
    expect(retried).to_have_count(0)
    expect(row(console, "try me")).to_have_count(2)
    console.reload()
    expect(row(console, "try me")).to_have_count(2)
    expect(retried).to_have_count(0)  # the choice is kept
