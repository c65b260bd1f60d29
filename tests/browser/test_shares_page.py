"""Shares in the console: what each has and uses, and how a job stands."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.page import ON_BOTH_SCREENS, Screen, axe, screenshot
from tests.live import PROJECT, LiveServer, pool, python

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    """Four CPUs: speech borrows two of them, and a job of vision waits for more than is free."""
    with LiveServer("--cpus", "4", "--memory", "16GiB") as server:
        shares = {
            "research": {"nominal": {"cpus": 3}, "projects": []},
            "vision": {"parent": "research", "nominal": {"cpus": 2}, "projects": ["vision"]},
            "speech": {"nominal": {"cpus": 1}, "projects": [PROJECT]},
        }
        assert server.request("PUT", "/v1/shares", {"share": shares}).status == 200
        command = python("import time; time.sleep(600)")
        name = server.submit(pools=[pool(command, machine="n1-standard-2")], name="borrows")
        server.wait_for(name, ["JOB_STATE_RUNNING"])
        yield server
        assert "Traceback" not in server.said(), server.said()


@ON_BOTH_SCREENS
def test_a_person_sees_the_shares_and_how_a_job_stands(
    console: Page, screen: Screen, server: LiveServer
) -> None:
    console.goto("/console/machines")
    table = console.get_by_role("table", name="Shares of the machines")
    expect(table.locator("tbody tr")).to_have_count(4)
    row = table.locator("tbody tr").filter(has_text="speech")
    expect(row).to_contain_text("2 cpus")
    expect(row).to_contain_text("1 borrowed")
    screenshot(console, f"shares-{screen}")
    assert axe(console) == []
    console.goto("/console/jobs")
    console.get_by_role("link", name="borrows").click()
    expect(console.get_by_text("it is stopped where another share wants its own back")).to_be_visible()
