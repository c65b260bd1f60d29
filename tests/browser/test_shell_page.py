"""The page behind webAccessUris in a real Chromium: typed into, and its screen read."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.browser.driver import CONTROL, ENTER, Browser, why_not
from tests.live import LiveServer, python, until

XTERM = Path(__file__).parents[2] / "src" / "trainshed" / "console" / "xterm" / "xterm.js"
STAYS = python("open('note', 'w').write('here'); import time; print('up', flush=True); time.sleep(1000)")
KEYS = ".xterm-helper-textarea"
ROWS = ".xterm-rows"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if reason := why_not():
        pytest.skip(reason)
    with Browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "64", "--memory", "512GiB", "--engine", "none") as server:
        yield server


@pytest.fixture
def page(server: LiveServer) -> Iterator[str]:
    """The address of a terminal in a job that runs."""
    name = server.submit(STAYS, spec={"enableWebAccess": True})
    until(lambda: server.lines(name))
    uri = server.wait_for(name, ["JOB_STATE_RUNNING"])["webAccessUris"]["workerpool0-0"]
    yield uri
    server.request("POST", f"/v1/{name}:cancel", {})  # unless it is over


def enter(browser: Browser, server: LiveServer, page: str) -> None:
    """Open the page, and give it the token."""
    if not XTERM.exists():
        pytest.skip("xterm.js is not here: get it with scripts/console-assets (npm and a registry)")
    browser.go(page)
    browser.until(lambda: browser.text("#state") == "locked")
    browser.type("#token", server.token + ENTER)
    browser.until(lambda: browser.text("#state") == "connected")


def test_the_page_asks_for_the_token_and_opens_a_terminal(browser: Browser, server: LiveServer, page: str):
    if not XTERM.exists():
        pytest.skip("xterm.js is not here: get it with scripts/console-assets (npm and a registry)")
    browser.go(page)
    browser.until(lambda: browser.text("#state") == "locked")
    browser.type("#token", "not-the-token" + ENTER)
    browser.until(lambda: "is not the one" in browser.text("#sentence"))
    browser.type("#token", server.token + ENTER)
    browser.until(lambda: browser.text("#state") == "connected")
    assert "workerpool0-0" in browser.text("#where")
    kept = "JSON.stringify(sessionStorage) + JSON.stringify(localStorage)"
    assert server.token not in browser.run(f"return location.href + document.cookie + {kept}")


def test_what_is_typed_reaches_the_shell_and_what_it_prints_the_screen(
    browser: Browser, server: LiveServer, page: str
):
    enter(browser, server, page)
    browser.complaints()
    browser.type(KEYS, "cat note; echo $((40 + 2)) grüße" + ENTER)
    browser.until(lambda: "here42 grüße" in browser.text(ROWS))
    browser.type(KEYS, "python3 -c 'import time; print(1111 * 3, flush=True); time.sleep(1000)'" + ENTER)
    browser.until(lambda: "3333" in browser.text(ROWS))
    browser.press(CONTROL, "c")
    browser.until(lambda: "KeyboardInterrupt" in browser.text(ROWS))
    colour = r"printf '\033[38;2;250;100;50mwarm%s\033[0m\n' est"
    browser.type(KEYS, colour + ENTER)
    browser.until(lambda: "warmest" in browser.text(ROWS))
    shown = browser.run(
        f"return [...document.querySelectorAll('{ROWS} span')].filter(e => e.textContent === 'warmest')"
        ".map(e => getComputedStyle(e).color)"
    )
    assert shown == ["rgb(250, 100, 50)"]
    assert browser.complaints() == []  # nothing was refused by the policy


def test_the_exit_code_is_told_and_another_shell_opened(browser: Browser, server: LiveServer, page: str):
    enter(browser, server, page)
    browser.type(KEYS, "exit 21" + ENTER)
    browser.until(lambda: browser.text("#state") == "ended with exit code 21")
    browser.click("#again")
    browser.until(lambda: browser.text("#state") == "connected")
    browser.type(KEYS, "echo $((50 + 5))" + ENTER)
    browser.until(lambda: "55" in browser.text(ROWS))


def test_the_terminal_has_the_size_of_the_window(browser: Browser, server: LiveServer, page: str):
    enter(browser, server, page)
    browser.resize(700, 500)
    browser.type(KEYS, "clear; sleep 0.5; echo size $(stty size)." + ENTER)
    browser.until(lambda: re.search(r"size \d+ \d+\.", browser.text(ROWS)) is not None)
    rows = browser.run(f"return document.querySelector('{ROWS}').children.length")
    assert f"size {rows} " in browser.text(ROWS)
    browser.resize(1000, 640)


def test_a_flood_is_shown_to_its_end_and_can_be_stopped(browser: Browser, server: LiveServer, page: str):
    enter(browser, server, page)
    browser.type(KEYS, "seq 1 300000; echo over$((1 + 1))" + ENTER)
    browser.until(lambda: "300000over2" in browser.text(ROWS))
    browser.type(KEYS, "yes" + ENTER)
    browser.until(lambda: "yyyy" in browser.text(ROWS))
    browser.press(CONTROL, "c")
    browser.type(KEYS, "clear; echo stopped$((1 + 2))" + ENTER)
    browser.until(lambda: "stopped3" in browser.text(ROWS))


def test_the_end_of_the_job_is_seen_and_explained(browser: Browser, server: LiveServer, page: str):
    enter(browser, server, page)
    name = f"projects/p1/locations/us-central1/customJobs/{urlsplit(page).path.split('/')[4]}"
    server.cancel(name)
    browser.until(lambda: browser.text("#state").startswith("ended with exit code"))
    server.wait(name)
    browser.click("#again")
    browser.until(lambda: "is over (CANCELLED)" in browser.text("#sentence"))


def test_without_xterm_the_page_says_what_is_missing(browser: Browser, page: str):
    browser.cdp("Network.enable", {})
    browser.cdp("Network.setBlockedURLs", {"urls": ["*/console/xterm.js"]})
    try:
        browser.go(page)
        browser.until(lambda: "xterm.js is not installed" in browser.text("#headline"))
        assert "scripts/console-assets" in browser.text("#sentence")
        assert "trainshed shell" in browser.text("#sentence")
    finally:
        browser.cdp("Network.setBlockedURLs", {"urls": []})
        browser.complaints()
