"""Everything without a mouse: keys lead on, and the focus is where one expects it."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.page import Complaints
from tests.live import LiveServer, python

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "8", "--memory", "64GiB") as server:
        yield server


@pytest.fixture(scope="module")
def job(server: LiveServer) -> str:
    """The name of a job that runs."""
    name = server.submit(python("import time; print('up', flush=True); time.sleep(1000)"), name="stays")
    server.wait_for(name, ["JOB_STATE_RUNNING"])
    return name


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def test_a_job_is_found_opened_and_cancelled_by_keys_alone(console: Page, server: LiveServer):
    name = server.submit(python("import time; time.sleep(1000)"), name="cancel me")
    console.goto("/console/jobs")
    link = console.get_by_role("link", name="cancel me")
    expect(link).to_be_visible()
    press(console, "/")
    console.keyboard.type("cancel")
    press(console, "Enter", "Escape")
    expect(console.get_by_text("1 job", exact=True)).to_be_visible()
    press(console, "j")
    expect(link).to_be_focused()
    assert link.evaluate("link => getComputedStyle(link).outlineStyle") == "solid"  # and it is seen
    press(console, "Enter")
    expect(console.get_by_role("heading", name="cancel me")).to_be_visible()
    expect(console.locator("main")).to_be_focused()  # not lost with the list
    cancel = console.get_by_role("button", name="Cancel", exact=True)
    cancel.focus()
    press(console, "Enter")
    expect(console.get_by_role("button", name="Leave it")).to_be_focused()  # a second Enter does no harm
    press(console, "Escape")
    expect(console.get_by_role("dialog")).to_have_count(0)
    expect(cancel).to_be_focused()
    press(console, "Enter", "Tab", "Enter")
    server.wait(name)


def test_a_menu_gives_the_focus_to_a_dialog_and_gets_it_back(console: Page, job: str):
    console.goto("/console/jobs?filter=stays")
    console.get_by_role("link", name="stays").click()
    more = console.get_by_role("button", name="More")
    more.focus()
    press(console, "Enter")
    expect(console.get_by_role("menuitem").first).to_be_focused()
    press(console, "Enter")
    expect(console.get_by_role("button", name="Leave it")).to_be_focused()
    press(console, "Escape")
    expect(more).to_be_focused()
    press(console, "Enter", "Shift+Tab", "Shift+Tab")
    expect(console.get_by_role("menu")).to_have_count(0)  # left behind, it closes


def test_settings_close_and_a_form_begins_in_its_first_field(console: Page):
    console.goto("/console/jobs")
    settings = console.locator("summary[aria-label=Settings]")
    settings.focus()
    press(console, "Enter", "Tab")
    expect(console.get_by_label("Colours")).to_be_focused()
    press(console, "Escape")
    expect(console.get_by_label("Colours")).to_be_hidden()
    expect(settings).to_be_focused()
    press(console, "g", "b")
    expect(console.get_by_role("heading", name="Buckets")).to_be_visible()
    press(console, "n")
    expect(console.get_by_label("Name")).to_be_focused()
    press(console, "Escape", "?")
    expect(console.get_by_role("dialog", name="Keys")).to_be_visible()


def test_a_terminal_can_be_left(console: Page, job: str, no_complaints: Complaints):
    console.goto("/console/jobs?filter=stays")
    console.get_by_role("link", name="stays").click()
    expect(console.get_by_role("heading", name="stays")).to_be_visible()
    press(console, "g", "s")
    expect(console.get_by_text("leaves the terminal")).to_be_visible()
    expect(console.locator(".xterm-helper-textarea")).to_be_focused()
    press(console, "Tab")
    expect(console.locator(".xterm-helper-textarea")).to_be_focused()  # Tab is the shell's
    press(console, "Control+Shift+L")
    expect(console.get_by_role("button", name="workerpool0-0", exact=True)).to_be_focused()
