"""Costs in a real Chromium: the month, its days, its jobs and labels, budgets."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.page import ON_BOTH_SCREENS, Screen, axe, screenshot
from tests.live import JOBS, LiveServer, pool, python, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

PRICES = """
currency = "EUR"
[[prices]]
cpu_hour = 3600
gib_hour = 36
[budgets]
p1 = 1
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """Two jobs have ended, and have spent the budget of their project."""
    prices: Path = tmp_path_factory.mktemp("prices") / "prices.toml"
    prices.write_text(PRICES)
    with LiveServer("--cpus", "4", "--memory", "8GiB", "--prices", str(prices)) as server:
        second = python("import time; time.sleep(1.5)")
        jobs = [
            {
                "displayName": name,
                "labels": {"team": team},
                "jobSpec": {"workerPoolSpecs": [pool(second, machine="n1-standard-1")]},
            }
            for name, team in (("<b>resnet</b>", "vision"), ("digits", "speech"))
        ]
        user = {"X-Trainshed-User": "ada"}
        answers = [server.request("POST", JOBS, job, headers=user) for job in jobs]
        for answer in answers:
            server.wait(answer.json["name"])
        until(lambda: any(item["level"] == 100 for item in server.get("/v1/costs")["budgets"]))
        yield server
        assert "Traceback" not in server.said(), server.said()


def rows(page: Page, name: str) -> Locator:
    return page.get_by_role("table", name=name).locator("tbody tr")


@ON_BOTH_SCREENS
def test_a_person_sees_what_a_month_cost_by_day_job_label_user_and_class(
    console: Page, screen: Screen, server: LiveServer
) -> None:
    console.goto("/console/costs")
    by_job = rows(console, "Costs by job, in EUR")
    expect(by_job).to_have_count(2)
    expect(by_job.filter(has_text="<b>resnet</b>")).to_contain_text("%")
    expect(console.get_by_role("img", name="EUR by day")).to_be_visible()
    expect(console.get_by_role("list", name="What the time was spent on")).to_contain_text("ran")
    expect(console.get_by_text("New jobs wait.")).to_be_visible()
    assert axe(console) == []
    assert console.evaluate("document.documentElement.scrollWidth <= innerWidth")
    screenshot(console, f"costs-{screen}")
    console.get_by_role("combobox").select_option("label")
    by_label = rows(console, "Costs by team, in EUR")
    expect(by_label.filter(has_text="vision")).to_have_count(1)
    expect(by_label.filter(has_text="speech")).to_have_count(1)
    console.get_by_role("combobox").select_option("user")
    expect(rows(console, "Costs by user, in EUR").filter(has_text="ada")).to_have_count(1)
    console.get_by_role("combobox").select_option("class")
    expect(rows(console, "Costs by spent on, in EUR").filter(has_text="ran")).to_have_count(1)
    assert "by=class" in console.url


def test_another_month_is_chosen_and_stands_in_the_address(console: Page, server: LiveServer) -> None:
    console.goto("/console/costs")
    expect(rows(console, "Costs by job, in EUR")).to_have_count(2)
    console.get_by_role("button", name="The month before").click()
    expect(console.get_by_text("Nothing was used in this month")).to_be_visible()
    assert "month=" in console.url
    console.get_by_role("button", name="The month after").click()
    link = rows(console, "Costs by job, in EUR").get_by_role("link", name="digits")
    link.click()
    expect(console.get_by_role("heading", name="digits")).to_be_visible()
