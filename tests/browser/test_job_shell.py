"""Shells of a job in a real Chromium, where webAccessUris lead: typed into, and their screens read."""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.acceptance.test_shell import FLAGS, NO_PROFILE
from tests.browser.page import Complaints
from tests.live import LiveServer, python, until

STAYS = python("open('note', 'w').write('here'); import time; print('up', flush=True); time.sleep(1000)")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer(*FLAGS, env=NO_PROFILE) as server:
        yield server


@pytest.fixture
def address(server: LiveServer) -> Iterator[str]:
    """That of a terminal in a job that runs."""
    name = server.submit(STAYS, spec={"enableWebAccess": True})
    until(lambda: server.lines(name))
    uri = server.wait_for(name, ["JOB_STATE_RUNNING"])["webAccessUris"]["workerpool0-0"]
    yield uri
    server.request("POST", f"/v1/{name}:cancel", {})  # unless it is over


@pytest.fixture
def shell(visitor: Page, server: LiveServer, no_complaints: Complaints, address: str) -> Page:
    """The page, open, with the token given to it."""
    no_complaints.but("status of 401", "status of 403")  # how the page learns that a token is wanted
    visitor.goto(address)
    give_token(visitor, server.token)
    is_at(visitor, "connected")
    return visitor


def give_token(page: Page, token: str) -> None:
    page.get_by_label("Your token, or the server's").fill(token)
    page.keyboard.press("Enter")


def is_at(page: Page, state: str | re.Pattern[str]) -> None:
    expect(page.locator(".shell:not([hidden]) [role=status]")).to_have_text(state)


def enter(page: Page, words: str) -> None:
    page.locator(".shell:not([hidden]) .xterm-helper-textarea").focus()
    page.keyboard.insert_text(words)
    page.keyboard.press("Enter")


def shows(page: Page, text: str | re.Pattern[str]) -> None:
    expect(page.locator(".shell:not([hidden]) .xterm-rows")).to_contain_text(text)


def test_the_page_asks_for_the_token_and_opens_a_terminal(
    visitor: Page, server: LiveServer, no_complaints: Complaints, address: str
):
    no_complaints.but("status of 401", "status of 403")
    visitor.goto(address)
    give_token(visitor, "not-the-token")
    expect(visitor.get_by_role("alert")).to_contain_text("is not the one")
    give_token(visitor, server.token)
    is_at(visitor, "connected")
    expect(visitor.get_by_role("region", name="Shell in workerpool0-0")).to_be_visible()
    kept = "location.href + document.cookie + JSON.stringify(sessionStorage) + JSON.stringify(localStorage)"
    assert server.token not in visitor.evaluate(kept)


def test_what_is_typed_reaches_the_shell_and_what_it_prints_the_screen(shell: Page):
    enter(shell, "cat note; echo $((40 + 2)) grüße")
    shows(shell, "here42 grüße")
    enter(shell, "python3 -c 'import time; print(1111 * 3, flush=True); time.sleep(1000)'")
    shows(shell, "3333")
    shell.keyboard.press("Control+c")
    shows(shell, "KeyboardInterrupt")
    enter(shell, r"printf '\033[38;2;250;100;50mwarm%s\033[0m\n' est")
    warmest = shell.locator(".xterm-rows span").get_by_text("warmest", exact=True)
    expect(warmest).to_have_css("color", "rgb(250, 100, 50)")


def test_the_exit_code_is_told_and_another_shell_opened(shell: Page):
    enter(shell, "exit 21")
    is_at(shell, "ended with exit code 21")
    shell.get_by_role("button", name="Open again").click()
    is_at(shell, "connected")
    enter(shell, "echo $((50 + 5))")
    shows(shell, "55")


def test_several_shells_are_open_at_once(shell: Page):
    enter(shell, "first=41")
    shell.get_by_role("button", name="Open another").click()
    is_at(shell, "connected")
    enter(shell, "echo second $((1 + first))")
    shows(shell, "second 1")
    shell.get_by_role("group", name="Open shells").get_by_role(
        "button", name="workerpool0-0", exact=True
    ).click()
    enter(shell, "echo first $((1 + first))")
    shows(shell, "first 42")
    shell.get_by_role("button", name="Close the shell in workerpool0-0").last.click()
    expect(shell.get_by_role("region", name="Shell in workerpool0-0")).to_have_count(1)


def test_the_terminal_has_the_size_of_the_window(shell: Page):
    shell.set_viewport_size({"width": 700, "height": 500})
    enter(shell, "clear; sleep 0.5; echo size $(stty size).")
    shows(shell, re.compile(r"size \d+ \d+\."))
    rows = shell.locator(".xterm-rows > *").count()
    shows(shell, f"size {rows} ")


def test_a_flood_is_shown_to_its_end_and_can_be_stopped(shell: Page):
    enter(shell, "seq 1 300000; echo over$((1 + 1))")
    shows(shell, "300000over2")
    enter(shell, "yes")
    shows(shell, "yyyy")
    shell.keyboard.press("Control+c")
    enter(shell, "clear; echo stopped$((1 + 2))")
    shows(shell, "stopped3")


def test_the_end_of_the_job_is_seen_and_explained(
    shell: Page, server: LiveServer, no_complaints: Complaints, address: str
):
    no_complaints.but("status of 400")  # the refusal that the page explains
    name = f"projects/p1/locations/us-central1/customJobs/{urlsplit(address).path.split('/')[4]}"
    server.cancel(name)
    is_at(shell, re.compile("^ended with exit code"))
    server.wait(name)
    shell.get_by_role("button", name="Open again").click()
    expect(shell.get_by_role("alert")).to_contain_text("is over (CANCELLED)")


def test_without_xterm_the_page_says_what_works(console: Page, no_complaints: Complaints, address: str):
    no_complaints.but("ERR_FAILED")
    console.route("**/xterm.js", lambda route: route.abort())
    console.goto(address)
    expect(console.get_by_role("alert")).to_contain_text("trainshed shell")
