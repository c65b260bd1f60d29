"""Machines, queue, images without an engine, and runtimes: what a person sees and does in the console."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.acceptance.test_runtimes import OWN_ROWS
from tests.browser.page import ON_BOTH_SCREENS, Complaints, Screen, axe, screenshot
from tests.contracts.test_venv_runtimes import a_wheel
from tests.live import LOCATION, PROJECT, LiveServer, pool, python

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

FOREVER = python("import time; time.sleep(600)")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """Two CPUs, of which a job holds one; two jobs wait for both."""
    folder: Path = tmp_path_factory.mktemp("wheels")
    a_wheel(folder, "smalla")
    (folder / "rows.toml").write_text(OWN_ROWS)
    env = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder), "PIP_CONFIG_FILE": os.devnull}
    flags = ("--cpus", "2", "--memory", "8GiB", "--runtimes", str(folder / "rows.toml"))
    with LiveServer(*flags, env=env) as server:
        holder = server.submit(pools=[pool(FOREVER, machine="n1-standard-1")], name="<b>holder</b>")
        server.wait_for(holder, ["JOB_STATE_RUNNING"])
        for name in ("first", "second"):
            gang(server, name)
        yield server
        assert "Traceback" not in server.said(), server.said()


def gang(server: LiveServer, name: str) -> str:
    return server.submit(pools=[pool(FOREVER, replicas=2, machine="n1-standard-1")], name=name)


def row(page: Page, table: str, text: str) -> Locator:
    return page.get_by_role("table", name=table).locator("tbody tr").filter(has_text=text)


@ON_BOTH_SCREENS
def test_a_person_sees_what_is_free_who_holds_the_rest_and_who_waits_why_and_until_when(
    console: Page, screen: Screen, server: LiveServer
) -> None:
    console.goto("/console/machines")
    expect(row(console, "Machines", "local")).to_contain_text("1 of 2 free")
    holder = row(console, "Replicas and what they hold", "<b>holder</b>")
    expect(holder).to_contain_text("workerpool0-0")
    queue = console.get_by_role("table", name="Waiting jobs in their order").locator("tbody tr")
    expect(queue.nth(0)).to_contain_text("first")
    expect(queue.nth(0)).to_contain_text("Needs 2 CPUs")
    expect(queue.nth(0)).to_contain_text("within")
    expect(queue.nth(1)).to_contain_text("first in the queue is job")
    assert axe(console) == []
    assert console.evaluate("document.documentElement.scrollWidth <= innerWidth")
    screenshot(console, f"machines-{screen}")
    if screen.width > 640:
        late = gang(server, "late")
        expect(queue.nth(2)).to_contain_text("late")  # by a hint: nobody asked again
        server.post(f"/v1/{late}:cancel")
        expect(queue).to_have_count(2)
    link = queue.nth(0).get_by_role("link", name="first")
    expect(link).to_have_attribute("href", re.compile(f"/console/jobs/{PROJECT}/{LOCATION}/[0-9]+$"))


@ON_BOTH_SCREENS
def test_without_an_engine_the_page_of_images_says_why_and_what_to_do(
    console: Page, screen: Screen, no_complaints: Complaints
) -> None:
    no_complaints.but("status of 503")
    console.goto("/console/images")
    expect(console.get_by_text("containers are switched off by --engine none")).to_be_visible()
    expect(console.get_by_role("button", name="Look again")).to_be_visible()
    assert axe(console) == []
    screenshot(console, f"images-without-engine-{screen}")


@ON_BOTH_SCREENS
def test_a_runtime_is_built_from_a_form_watched_and_removed(
    console: Page, screen: Screen, no_complaints: Complaints
) -> None:
    no_complaints.but("status of 400")
    console.goto("/console/runtimes")
    expect(row(console, "Runtimes", "trainshed/python")).to_contain_text("ready")
    console.get_by_label("Runtime", exact=True).fill("team/trainer")
    lines = console.get_by_label("Requirements on top, one a line")
    lines.fill("smalla\n--no-such-option")
    console.get_by_role("button", name="Build", exact=True).click()
    expect(console.get_by_text("Line 2:")).to_be_visible()
    assert axe(console) == []
    lines.fill("smalla")
    console.get_by_role("button", name="Build", exact=True).click()
    built = row(console, "Runtimes", "with smalla")
    expect(built).to_contain_text("ready")
    screenshot(console, f"runtimes-{screen}")
    built.get_by_role("button", name="Remove").click()
    expect(console.get_by_role("dialog")).to_contain_text("A job that needs one later has it built again.")
    assert axe(console) == []
    console.get_by_role("dialog").get_by_role("button", name="Remove", exact=True).click()
    expect(built).to_have_count(0)
    expect(console.get_by_text("Removed team/trainer.")).to_be_visible()


def test_a_build_that_fails_shows_the_last_lines_of_its_log(console: Page) -> None:
    console.goto("/console/runtimes")
    console.get_by_label("Runtime", exact=True).fill("team/trainer")
    console.get_by_label("Requirements on top, one a line").fill("nosuchthing==7")
    console.get_by_role("button", name="Build", exact=True).click()
    failed = console.get_by_label("The last lines of the build that failed")
    expect(failed).to_contain_text("nosuchthing==7")
    assert axe(console) == []
    screenshot(console, "runtimes-failed")
