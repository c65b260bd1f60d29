"""The tabs of a job: its stacks and its code, used as a person would, and what opening a tab costs."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.page import ON_BOTH_SCREENS, axe, screenshot
from tests.live import LiveServer, until

pytestmark = pytest.mark.slow

PROGRAM = """import os, time
def prepare_for_long(): time.sleep(1000)
def stuck_in_loading():
    time.sleep(1000)
print("up", flush=True)
stuck_in_loading() if os.environ["TRAINSHED_TASK"] == "workerpool1-1" else prepare_for_long()
"""


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "64", "--memory", "512GiB") as server:
        yield server


@pytest.fixture(scope="module")
def job(server: LiveServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One of three replicas is elsewhere than the others; its folder has a text and a file that is none."""
    folder: Path = tmp_path_factory.mktemp("code")
    (folder / "train.py").write_text(PROGRAM)
    (folder / "weights.bin").write_bytes(b"\0\1\2" * 100)
    done = server.cli("submit", str(folder / "train.py"), "--replicas", "4", "--detach", "--name", "tabs")
    assert done.returncode == 0, done.stderr
    jobs = server.get("/v1/projects/p1/locations/us-central1/customJobs")["customJobs"]
    [row] = [each for each in jobs if each["displayName"] == "tabs"]
    until(lambda: len([line for line in server.lines(row["name"]) if line["text"] == "up"]) == 4)
    yield row["name"]
    server.cancel(row["name"])


def tab(job: str, name: str) -> str:
    _, project, _, location, _, identity = job.split("/")
    return f"/console/jobs/{project}/{location}/{identity}/{name}"


@ON_BOTH_SCREENS
def test_the_odd_replica_is_marked_among_the_stacks(console: Page, job: str):
    console.goto(tab(job, "stacks"))
    odd = console.locator(".stack-group.odd")
    expect(odd).to_contain_text("unlike the others")
    expect(odd).to_contain_text("stuck_in_loading")
    expect(odd.get_by_role("heading", level=2)).to_have_text("workerpool1-1")
    assert axe(console) == []
    screenshot(console, "stacks")


@ON_BOTH_SCREENS
def test_the_code_of_a_job_can_be_read_and_a_line_linked(console: Page, job: str):
    console.goto(tab(job, "code"))
    console.get_by_role("button", name="train.py").click()
    expect(console.locator(".source")).to_contain_text("prepare_for_long")
    console.get_by_role("button", name="Link to line 2", exact=True).click()
    console.reload()
    expect(console.locator(".source .marked")).to_contain_text("def prepare_for_long")
    console.get_by_role("button", name="weights.bin").click()
    expect(console.get_by_text("This is no text")).to_be_visible()
    assert axe(console) == []
    screenshot(console, "code")


@pytest.mark.parametrize(("name", "question"), [("logs", ":lines"), ("graphs", ":graphs")])
def test_a_tab_asks_its_first_question_beside_those_of_the_page_and_only_once(
    console: Page, server: LiveServer, name: str, question: str
):
    done = server.submit(["python", "-c", "import time; print('said'); time.sleep(5)"], name="short")
    server.wait(done)
    console.goto("/console/jobs")  # what all pages load is there
    expect(console.get_by_role("link", name="short").first).to_be_visible()
    console.wait_for_timeout(3000)  # after its end there may be more to read of it, which pages are told
    asked: list[str] = []
    console.on("request", lambda request: asked.append(request.url.partition("?")[0]))
    console.on("requestfinished", lambda request: asked.append(f"answer of {request.url.partition('?')[0]}"))
    console.goto(tab(done, name))
    wanted = ".log-row" if name == "logs" else "figure.plot canvas"
    expect(console.locator(wanted).first).to_be_visible()
    console.wait_for_timeout(500)
    own = [text for text in asked if text.startswith("http") and text.endswith(question)]
    assert len(own) == 1
    before = asked[: asked.index(own[0])]
    answers = [text for text in before if text.startswith("answer of ") and text.endswith(":status")]
    assert answers == [], "the tab waited for what the page asked"
    api = [text for text in asked if f"/v1/{done}" in text and text.startswith("http")]
    assert api[:3] == [f"{server.url}/v1/{done}{suffix}" for suffix in ("", ":status", question)]
    assert len(set(api)) == len(api), "something was asked twice"
