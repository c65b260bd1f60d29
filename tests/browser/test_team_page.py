"""The console of accounts: each sees its projects, chooses between them, and nothing of others."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.page import Complaints, axe, screenshot
from tests.live import LiveServer, pool, python

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "2", "--memory", "4GiB") as server:
        for project in ("speech", "vision", "walking"):
            body = {"displayName": f"of {project}", "jobSpec": {"workerPoolSpecs": [pool(python("pass"))]}}
            server.post(f"/v1/projects/{project}/locations/us-central1/customJobs", body)
        server.post("/v1/accounts", {"name": "ann"})
        for project in ("speech", "vision"):
            binding = {"role": "viewer", "members": ["user:ann"]}
            server.post(f"/v1/projects/{project}:setIamPolicy", {"policy": {"bindings": [binding]}})
        yield server
        assert "Traceback" not in server.said(), server.said()


def test_an_account_signs_in_sees_its_projects_and_no_others(
    visitor: Page, server: LiveServer, no_complaints: Complaints
) -> None:
    no_complaints.but("status of 403")  # before somebody has signed in
    token = server.post("/v1/tokens", {"account": "ann"})["token"]
    visitor.goto("/console/jobs")
    visitor.get_by_label("Token").fill(token)
    visitor.get_by_role("button", name="Sign in").click()
    expect(visitor.get_by_role("link", name="of speech")).to_be_visible()
    assert not visitor.get_by_text("of vision").count() and not visitor.get_by_text("of walking").count()
    visitor.get_by_label("Settings").click()
    visitor.locator("#project").select_option("vision")
    expect(visitor.get_by_role("link", name="of vision")).to_be_visible()
    assert not visitor.get_by_text("of speech").count() and not visitor.get_by_text("of walking").count()
    visitor.get_by_label("Settings").click()
    assert visitor.locator("#project").input_value() == "vision"
    screenshot(visitor, "team")
    assert axe(visitor) == []
    for page in ("machines", "studies"):
        visitor.goto(f"/console/{page}")
        expect(visitor.get_by_role("main").get_by_role("heading").first).to_be_visible()
