"""The page of a job: why first, where its time went, its history and results; and what one can do to it."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from playwright.sync_api import Page, expect

from tests.browser.page import ON_BOTH_SCREENS, Complaints, axe, screenshot
from tests.live import JOBS, LiveServer, pool, python, until

pytestmark = pytest.mark.slow

BAD = "<script>alert(1)</script>"
FAILS = python(f"raise ValueError('no column {BAD}')")
STAYS = python("import time; print('up', flush=True); time.sleep(1000)")
RESULTS = python(
    "import os\n"
    "for name, place in (('AIP_CHECKPOINT_DIR', 'step-7'), ('AIP_MODEL_DIR', '')):\n"
    "    folder = os.path.join(os.environ[name].replace('gs://', '/gcs/'), place)\n"
    "    os.makedirs(folder, exist_ok=True)\n"
    "    open(os.path.join(folder, 'weights'), 'w').write('w')\n"
)
ONE_CPU = "custom-1-512"


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "4", "--memory", "64GiB") as server:
        server.post("/storage/v1/b", {"name": "results"}, project="p1")
        yield server


@pytest.fixture(autouse=True)
def nothing_is_left(server: LiveServer) -> Iterator[None]:
    """The machine is free again for the next test."""
    yield
    jobs = server.get(JOBS, filter="NOT state=SUCCEEDED AND NOT state=FAILED AND NOT state=CANCELLED")
    for job in jobs.get("customJobs", []):
        server.request("POST", f"/v1/{job['name']}:cancel", {})  # unless it has ended meanwhile
        server.wait(job["name"])


def open_job(page: Page, name: str, rest: str = "") -> None:
    _, project, _, location, _, job = name.split("/")
    page.goto(f"/console/jobs/{project}/{location}/{job}{rest}")


def small(command: list[str], **more: Any) -> dict[str, Any]:
    return pool(command, machine=ONE_CPU, **more)


@ON_BOTH_SCREENS
def test_a_failed_job_says_why_first_then_where_its_time_went(console: Page, server: LiveServer):
    rule = {
        "restartRule": {
            "maxJobRetries": 1,
            "retryExitCodes": ["1-255"],
            "maxReplicaRestarts": 0,
            "backoff": "0.1s",
        }
    }
    name = server.submit(
        pools=[small(FAILS), small(STAYS)],
        name=f"odd {BAD}",
        spec={"scheduling": rule},
        labels={"team": "vision"},
    )
    server.wait(name)
    open_job(console, name)
    expect(console.get_by_role("heading", level=1)).to_have_text(f"odd {BAD}")
    why = console.get_by_role("region", name="Why it failed")
    expect(why).to_contain_text(f"ValueError: no column {BAD}")
    expect(why).to_contain_text("A retry would most likely fail the same way.")
    row = console.get_by_role("img", name=re.compile("^workerpool0-0: .*ran"))
    expect(row).to_be_visible()
    assert axe(console) == []
    screenshot(console, f"job-failed-{console.viewport_size['width']}")  # type: ignore[index]

    console.get_by_text("As a table").click()
    table = console.get_by_role("table", name="What the time of each replica went into")
    expect(table.get_by_text("exited with code 1").first).to_be_visible()
    console.get_by_label("Severity of events").select_option("errors")
    expect(console).to_have_url(re.compile("severity=ERROR"))
    expect(console.get_by_role("table", name="Events")).not_to_contain_text("SUBMITTED")
    log = console.get_by_role("link", name="The log of workerpool0-0")
    expect(log).to_have_attribute("href", re.compile(r"/logs\?task=workerpool0-0$"))


def test_a_click_on_the_timeline_leads_to_the_log_of_that_moment(console: Page, server: LiveServer):
    name = server.submit(pools=[small(python("import time; time.sleep(1)"))], name="short")
    server.wait(name)
    open_job(console, name)
    # The page of a log without lines forgets the moment soon.
    with console.expect_navigation(url=re.compile(r"/logs\?task=workerpool0-0&time=20\d\d-")):
        console.locator(".spent-COMPUTED").last.click()


def test_a_job_s_results_are_linked_and_what_is_complete_is_told(console: Page, server: LiveServer):
    output = {"baseOutputDirectory": {"outputUriPrefix": "gs://results/digits"}}
    name = server.submit(pools=[small(RESULTS)], name="stores", spec=output)
    server.wait(name)
    results = server.get(f"/v1/{name}:results")
    assert results["outputUriPrefix"] == "gs://results/digits"
    assert results["model"]["uri"] == "gs://results/digits/model/"
    assert [unit["uri"] for unit in results["checkpoints"]] == ["gs://results/digits/checkpoints/step-7/"]
    open_job(console, name)
    checkpoint = console.get_by_role("link", name="step-7")
    expect(checkpoint).to_have_attribute("href", "/console/buckets/results/digits/checkpoints/step-7/")
    expect(console.get_by_text("a new attempt goes on from it")).to_be_visible()
    elsewhere = {"baseOutputDirectory": {"outputUriPrefix": "s3://elsewhere/x"}}
    away = server.submit(pools=[small(python("pass"))], name="elsewhere", spec=elsewhere)
    assert "elsewhere" in server.get(f"/v1/{away}:results")["note"]
    assert server.get(f"/v1/{server.submit(pools=[small(python('pass'))])}:results") == {}


@ON_BOTH_SCREENS
def test_a_waiting_job_says_why_and_is_started_by_the_change_it_names(console: Page, server: LiveServer):
    holder = server.submit(pools=[small(STAYS, replicas=3)], name="holder")
    server.wait_for(holder, ["JOB_STATE_RUNNING"])
    name = server.submit(pools=[small(STAYS, replicas=2, env={"HF_TOKEN": "hush"})], name="waiter")
    until(lambda: "waiting" in server.get(f"/v1/{name}:status"))
    open_job(console, name)
    why = console.get_by_role("region", name="Why it waits")
    expect(why).to_contain_text("place 1 of 1 in the queue")
    expect(why).to_contain_text("'holder' holds 3 CPUs")
    why.get_by_role("link", name=f"Open job {holder.rsplit('/', 1)[1]}").click()
    expect(console.get_by_role("heading", level=1)).to_have_text("holder")
    console.go_back()
    assert axe(console) == []
    screenshot(console, f"job-waits-{console.viewport_size['width']}")  # type: ignore[index]
    why.get_by_role("button", name="replicaCount: 1").click()
    dialog = console.get_by_role("dialog")
    expect(dialog).to_contain_text("this one is cancelled")
    assert axe(console) == []
    dialog.get_by_role("button", name="Submit it so").click()
    expect(console).not_to_have_url(re.compile(name.rsplit("/", 1)[1]))
    assert server.wait(name)["state"] == "JOB_STATE_CANCELLED"
    expect(console.locator(".job-head .state")).to_have_text(re.compile("running"))
    made = console.url.rsplit("/", 1)[1]
    assert server.get(f"{JOBS}/{made}")["jobSpec"]["workerPoolSpecs"][0]["replicaCount"] == "1"


@ON_BOTH_SCREENS
def test_a_waiting_job_starts_once_the_job_that_it_waits_for_is_cancelled_from_its_page(
    console: Page, server: LiveServer
):
    holder = server.submit(pools=[small(STAYS, replicas=4)], name="in the way")
    server.wait_for(holder, ["JOB_STATE_RUNNING"])
    name = server.submit(pools=[small(STAYS)], name="patient")
    until(lambda: "waiting" in server.get(f"/v1/{name}:status"))
    open_job(console, name)
    why = console.get_by_role("region", name="Why it waits")
    why.get_by_role("button", name="Cancel that job").click()
    dialog = console.get_by_role("dialog", name="Cancel the other job?")
    expect(dialog).to_contain_text(f"Job {holder.rsplit('/', 1)[1]} is cancelled")
    assert axe(console) == []
    dialog.get_by_role("button", name="Leave it").click()
    assert server.state(holder) == "JOB_STATE_RUNNING"
    why.get_by_role("button", name="Cancel that job").click()
    dialog.get_by_role("button", name="Cancel that job").click()
    expect(dialog).to_have_count(0)
    expect(console.locator(".job-head .state")).to_have_text(re.compile("running"))
    expect(why).to_have_count(0)
    assert server.wait(holder)["state"] == "JOB_STATE_CANCELLED"


@ON_BOTH_SCREENS
def test_a_failed_job_is_held_for_a_look_until_somebody_ends_the_hold(console: Page, server: LiveServer):
    name = server.submit(pools=[small(FAILS)], name="kept", spec={"scheduling": {"holdOnFailure": "600s"}})
    open_job(console, name)
    held = console.get_by_role("region", name="Held for a look")
    shell = held.get_by_role("link", name="Open a shell in it")
    expect(shell).to_have_attribute("href", re.compile("/shell$"))
    assert axe(console) == []
    expect(console.get_by_role("button", name="Cancel", exact=True)).to_have_count(0)
    console.get_by_role("button", name="End the hold").click()
    dialog = console.get_by_role("dialog", name="End the hold?")
    expect(dialog).to_contain_text("shells in them end")
    assert axe(console) == []
    dialog.get_by_role("button", name="End the hold").click()
    expect(console.get_by_role("region", name="Why it failed")).to_contain_text("ValueError: no column")
    expect(held).to_have_count(0)
    expect(console.get_by_role("button", name="End the hold")).to_have_count(0)
    assert server.wait(name)["state"] == "JOB_STATE_FAILED"


def test_a_job_is_cancelled_retried_and_deleted_from_its_page(
    console: Page, server: LiveServer, no_complaints: Complaints
):
    no_complaints.but("status of 404", "status of 400")
    name = server.submit(pools=[small(STAYS)], name="acted-on")
    server.wait_for(name, ["JOB_STATE_RUNNING"])
    open_job(console, name)
    state = console.locator(".job-head .state")
    expect(state).to_have_text(re.compile("running"))
    console.get_by_role("button", name="More").click()
    expect(console.get_by_role("menuitem", name="Delete")).to_have_attribute("aria-disabled", "true")
    console.keyboard.press("Escape")
    console.get_by_role("button", name="Cancel", exact=True).click()
    expect(console.get_by_role("dialog")).to_contain_text("Its log, outputs and history stay")
    console.get_by_role("button", name="Cancel the job").click()
    expect(state).to_have_text(re.compile("cancelled"))

    console.get_by_role("button", name="More").click()
    console.get_by_role("menuitem", name="Retry, keep it if it fails").click()
    console.get_by_role("button", name="Submit again").click()
    expect(console).not_to_have_url(re.compile(name.rsplit("/", 1)[1]))
    made = f"{JOBS}/{console.url.rsplit('/', 1)[1]}"[4:]
    assert server.job(made)["jobSpec"]["scheduling"]["holdOnFailure"] == "1800s"
    server.cancel(made)
    expect(state).to_have_text(re.compile("cancelled"))

    server.request("DELETE", f"/v1/{made}")
    expect(console.get_by_text("This job was deleted.")).to_be_visible()
    console.reload()
    expect(console.get_by_role("heading", name="There is no such job")).to_be_visible()
    open_job(console, name)
    console.get_by_role("button", name="More").click()
    console.get_by_role("menuitem", name="Delete").click()
    console.get_by_role("button", name="Delete the job").click()
    expect(console).to_have_url(re.compile("/console/jobs$"))


@ON_BOTH_SCREENS
def test_the_spec_is_shown_as_yaml_with_the_environment_and_ways_to_copy_it(
    console: Page, server: LiveServer
):
    text = "two\nlines, \"quoted\" and 'so'"
    name = server.submit(pools=[small(STAYS, args=[text]), small(STAYS)], name="specified")
    server.wait_for(name, ["JOB_STATE_RUNNING"])
    open_job(console, name)
    expect(console.get_by_role("heading", name="Replicas")).to_be_visible()
    console.keyboard.press("g")
    console.keyboard.press("y")
    shown = console.get_by_label("The job as YAML").inner_text()
    job = server.job(name)
    assert yaml.safe_load(shown) == {field: job[field] for field in ("displayName", "jobSpec")}
    console.get_by_label("Replica of the environment").select_option("workerpool1-0")
    expect(console.get_by_role("table", name="Environment of workerpool1-0")).to_contain_text(
        "TRAINSHED_TASK"
    )
    console.get_by_role("button", name="gcloud").click()
    expect(console).to_have_url(re.compile("as=gcloud"))
    expect(console.get_by_label("The job for gcloud")).to_contain_text("gcloud ai custom-jobs create")
    assert axe(console) == []
    screenshot(console, f"job-spec-{console.viewport_size['width']}")  # type: ignore[index]


def test_the_page_tells_what_kind_of_job_it_is(console: Page, server: LiveServer):
    body = {
        "displayName": "piped",
        "trainingTaskDefinition": "gs://google-cloud-aiplatform/schema/trainingjob/definition/custom_task_1.0.0.yaml",
        "trainingTaskInputs": {"workerPoolSpecs": [small(python("pass"))]},
    }
    pipeline = server.post("/v1/projects/p1/locations/us-central1/trainingPipelines", body)["name"]
    name = pipeline.replace("trainingPipelines", "customJobs")
    assert server.get(f"/v1/{name}:status")["kind"] == "pipeline"
    open_job(console, name)
    expect(console.locator(".job-facts")).to_contain_text("Pipeline")
