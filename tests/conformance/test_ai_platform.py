"""The older API over HTTP, by the requests that the real gcloud was recorded to send."""

import base64
import itertools
import json
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.ai_platform_model import JOBS, OPERATIONS, AiPlatform, printed
from tests.live import IMAGE, Answer, LiveServer, python, until

TWINS = "/v1/projects/p1/locations/-/customJobs"
FINAL = ("SUCCEEDED", "FAILED", "CANCELLED")
_numbers = itertools.count()

Name = Callable[[str], str]


@pytest.fixture
def gcloud(server: LiveServer) -> AiPlatform:
    return AiPlatform(server)


@pytest.fixture
def fresh() -> Name:
    """Makes a jobId nobody else uses."""
    return lambda stem: f"{stem}_{os.getpid()}_{next(_numbers)}"


def container(job: str, source: str, **training_input: object) -> dict[str, Any]:
    """A job whose every replica runs a piece of Python."""
    command = {"imageUri": IMAGE, "containerCommand": python(source)}
    said = {"region": "asia-southeast1", "masterConfig": command, **training_input}
    return {"jobId": job, "trainingInput": said}


def good(answer: Answer) -> Any:
    assert answer.status == 200, answer.body
    return answer.json


def ended(gcloud: AiPlatform, job: str) -> Any:
    def final() -> Any:
        told = good(gcloud.describe(job))
        return told if told["state"] in FINAL else None

    return until(final)


def in_state(gcloud: AiPlatform, job: str, state: str) -> None:
    until(lambda: good(gcloud.describe(job))["state"] == state)


def test_a_submitted_job_is_answered_run_described_and_listed(gcloud: AiPlatform, fresh: Name) -> None:
    job = fresh("plain")
    created = good(gcloud.submit(container(job, "print('hello')", enableWebAccess=False)))
    assert (created["jobId"], created["state"]) == (job, "QUEUED")
    told = ended(gcloud, job)
    assert told["state"] == "SUCCEEDED"
    assert told["createTime"] <= told["startTime"] <= told["endTime"]
    assert told["trainingInput"]["scaleTier"] == "CUSTOM"
    base64.b64decode(told["etag"], validate=True)
    assert told in good(gcloud.list())["jobs"]


def test_the_command_with_three_images_starts_thirteen_tasks(
    gcloud: AiPlatform, fresh: Name, tmp_path: Path
) -> None:
    """Seed 000 as gcloud sends it: no scaleTier, counts as text, an image per role.

    Parameter servers are ended once all others have: those wait for them here.
    """
    job = fresh("three_images")
    source = (
        "import os, json, sys, time\n"
        "print(json.loads(os.environ['TF_CONFIG'])['task'], sys.argv[1:], flush=True)\n"
        f"open(os.path.join({str(tmp_path)!r}, os.environ['TRAINSHED_TASK']), 'w').close()\n"
        f"while len(os.listdir({str(tmp_path)!r})) < 13: time.sleep(0.02)\n"
    )
    role = {"imageUri": IMAGE, "containerCommand": python(source)}
    body = {
        "jobId": job,
        "trainingInput": {
            "args": ["--model-dir=gs://bucket/model", "--epochs=10"],
            "enableWebAccess": False,
            "masterConfig": role,
            "masterType": "complex_model_m",
            "parameterServerConfig": role,
            "parameterServerCount": "3",
            "parameterServerType": "large_model",
            "region": "us-central1",
            "workerConfig": {"imageUri": "trainshed/python", "containerCommand": python(source)},
            "workerCount": "9",
            "workerType": "complex_model_m",
        },
    }
    good(gcloud.submit(body))
    assert ended(gcloud, job)["state"] == "SUCCEEDED"
    lines = {printed(e)[1:] for e in gcloud.stream_logs(job) if printed(e)[1] != "service"}
    tail = "['--model-dir=gs://bucket/model', '--epochs=10']"
    names = [("master", 0), *(("worker", n) for n in range(9)), *(("ps", n) for n in range(3))]
    assert lines == {
        (f"{role}-replica-{n}", f"{{'type': '{role}', 'index': {n}}} {tail}") for role, n in names
    }


def test_a_name_that_is_taken_is_a_conflict_with_its_reason(gcloud: AiPlatform, fresh: Name) -> None:
    job = fresh("twice")
    good(gcloud.submit(container(job, "pass")))
    for again in (container(job, "pass"), container(job, "print('other')")):
        answer = gcloud.submit(again)
        assert (answer.status, answer.error["status"]) == (409, "ALREADY_EXISTS")
        assert f"A job named {job} exists already" in answer.error["message"]


def test_of_many_who_want_a_name_at_once_one_gets_it(gcloud: AiPlatform, fresh: Name) -> None:
    job = fresh("race")
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: gcloud.submit(container(job, "pass")), range(16)))
    assert sorted(answer.status for answer in answers) == [200, *[409] * 15]


def test_a_request_repeated_with_its_key_is_one_job(server: LiveServer, fresh: Name) -> None:
    body = container(fresh("key"), "pass")
    first, again = (server.request("POST", JOBS, body, headers={"Idempotency-Key": "k"}) for _ in range(2))
    assert first.json["createTime"] == again.json["createTime"]
    assert server.request("POST", JOBS, body).status == 409


def test_a_repeated_request_is_answered_though_the_bucket_of_its_job_has_gone(
    server: LiveServer, gcloud: AiPlatform, fresh: Name
) -> None:
    job, key, bucket = fresh("key"), {"Idempotency-Key": fresh("again")}, "gone-with-it"
    body = container(job, "pass", jobDir=f"gs://{bucket}/run")
    server.post("/storage/v1/b?project=p1", {"name": bucket})
    first = server.request("POST", JOBS, body, headers=key)
    assert first.status == 200, first.body
    ended(gcloud, job)
    assert server.request("DELETE", f"/storage/v1/b/{bucket}").status == 204
    assert server.request("POST", JOBS, body, headers=key).json["createTime"] == first.json["createTime"]


def test_everything_wrong_is_told_at_once(gcloud: AiPlatform) -> None:
    answer = gcloud.submit({"jobId": "bad-name", "trainingInput": {"workerCount": "many", "colour": "red"}})
    assert (answer.status, answer.error["status"]) == (400, "INVALID_ARGUMENT")
    assert set(answer.violations) >= {
        "job_id",
        "training_input.worker_count",
        "training_input.colour",
        "training_input.region",
    }


def test_an_image_that_cannot_run_here_is_refused_by_name(gcloud: AiPlatform) -> None:
    said = {"region": "r", "masterConfig": {"imageUri": "somewhere/mine:1"}}
    answer = gcloud.submit({"jobId": "images", "trainingInput": said})
    assert "somewhere/mine:1" in answer.violations["training_input.master_config.image_uri"]


def test_a_failed_job_says_why_in_its_error_message(gcloud: AiPlatform, fresh: Name) -> None:
    job = fresh("fails")
    good(gcloud.submit(container(job, "raise SystemExit('no data')")))
    told = ended(gcloud, job)
    assert told["state"] == "FAILED"
    assert "no data" in told["errorMessage"]


def test_cancel_ends_a_running_job_and_refuses_one_that_is_over(gcloud: AiPlatform, fresh: Name) -> None:
    job = fresh("cancelled")
    good(gcloud.submit(container(job, "import time; time.sleep(600)")))
    in_state(gcloud, job, "RUNNING")
    assert good(gcloud.cancel(job)) == {}
    assert ended(gcloud, job)["state"] == "CANCELLED"
    again = gcloud.cancel(job)
    assert (again.status, again.error["status"]) == (400, "FAILED_PRECONDITION")
    assert job in again.error["message"]


def test_labels_are_replaced_whole_emptied_and_guarded_by_their_etag(gcloud: AiPlatform, fresh: Name) -> None:
    job = fresh("labels")
    body = container(job, "pass") | {"labels": {"team": "vision"}}
    first = good(gcloud.submit(body))
    assert first["labels"] == {"team": "vision"}
    changed = good(gcloud.update(job, {"owner": "me"}))
    assert changed["labels"] == {"owner": "me"}
    stale = gcloud.update(job, {"owner": "you"}, etag=first["etag"])
    assert (stale.status, "etag" in stale.error["message"]) == (400, True)
    assert "labels" not in good(gcloud.update(job, {}, etag=changed["etag"]))
    assert "labels" not in good(gcloud.describe(job))


@pytest.mark.parametrize(
    ("query", "body", "path"),
    [
        ("?updateMask=jobId", {"jobId": "x"}, "update_mask"),
        ("", {"labels": {}}, "update_mask"),
        ("?updateMask=labels", {"labels": {"Bad": "x"}}, "labels.Bad"),
        ("?updateMask=labels", {"labels": 5}, "labels"),
    ],
)
def test_nothing_but_labels_can_be_changed(
    server: LiveServer, gcloud: AiPlatform, fresh: Name, query: str, body: object, path: str
) -> None:
    job = fresh("fixed")
    good(gcloud.submit(container(job, "pass")))
    answer = server.request("PATCH", f"{JOBS}/{job}{query}", body)
    assert answer.status == 400
    assert path in answer.violations


def test_lists_go_page_by_page_and_can_be_filtered(
    server: LiveServer, gcloud: AiPlatform, fresh: Name
) -> None:
    jobs = [fresh("census") for _ in range(5)]
    for job in jobs:
        good(gcloud.submit(container(job, "pass") | {"labels": {"set": f"of{os.getpid()}"}}))
    for job in jobs:
        ended(gcloud, job)
    found: list[str] = []
    token = ""
    while True:
        page = good(gcloud.list(token, size=2))
        assert len(page["jobs"]) <= 2
        found += [one["jobId"] for one in page["jobs"]]
        if not (token := page.get("nextPageToken", "")):
            break
    assert [one for one in found if one in jobs] == jobs[::-1], "newest first, each once"
    for where, expected in (
        (f"jobId:{jobs[0][:-2]}* AND state:SUCCEEDED AND labels.set=of{os.getpid()}", jobs[::-1]),
        (f"jobId={jobs[2]}", [jobs[2]]),
        (f"jobId={jobs[2]} AND state:FAILED", []),
        (f"labels.set=of{os.getpid()} AND NOT jobId={jobs[0]}", jobs[:0:-1]),
    ):
        told = server.get(JOBS, filter=where)
        assert [one["jobId"] for one in told.get("jobs", [])] == expected
    assert server.request("GET", f"{JOBS}?filter=colour%3Dred").status == 400
    assert server.request("GET", f"{JOBS}?pageToken=abc").status == 400


def test_a_job_of_the_older_api_is_a_custom_job_of_its_region_too(
    server: LiveServer, gcloud: AiPlatform, fresh: Name
) -> None:
    job = fresh("both")
    good(gcloud.submit(container(job, "pass")))
    where = f'display_name="{job}"'
    (twin,) = server.get(TWINS, filter=where)["customJobs"]
    assert twin["name"].startswith("projects/p1/locations/asia-southeast1/customJobs/")
    assert "legacy" not in twin
    (own,) = server.get(TWINS, filter=where, view="trainshed")["customJobs"]
    assert own["kind"] == "legacy"
    other = server.submit(python("pass"), name=job)
    assert server.wait(other)["state"] == "JOB_STATE_SUCCEEDED", "names are free for jobs of the newer API"
    assert [one["jobId"] for one in server.get(JOBS, filter=f"jobId={job}")["jobs"]] == [job]


def test_what_is_not_there_is_not_found(server: LiveServer, gcloud: AiPlatform) -> None:
    for verb, path in (
        ("GET", f"{JOBS}/nobody"),
        ("POST", f"{JOBS}/nobody:cancel"),
        ("PATCH", f"{JOBS}/nobody?updateMask=labels"),
        ("GET", f"{JOBS}/nobody:dance"),
        ("GET", f"{JOBS}/%ED%A0%80"),
        ("GET", f"{OPERATIONS}/nobody"),
        ("POST", f"{OPERATIONS}/nobody:cancel"),
    ):
        answer = server.request(verb, path, {"labels": {}} if verb != "GET" else None)
        assert (answer.status, answer.error["status"]) == (404, "NOT_FOUND"), path


@pytest.mark.parametrize("odd", ["\ud800", "\0", "\n", "%", "*", "x" * 5000])
def test_odd_names_in_a_log_filter_find_nothing(server: LiveServer, odd: str) -> None:
    filter = f"resource.labels.job_id={json.dumps(odd, ensure_ascii=False)}"
    answer = server.request("POST", "/v2/entries:list", {"resourceNames": ["projects/p1"], "filter": filter})
    assert answer.status in (200, 400), answer.body
    assert "entries" not in answer.json


def test_operations_are_listed_described_and_done(
    server: LiveServer, gcloud: AiPlatform, fresh: Name
) -> None:
    job = fresh("operation")
    good(gcloud.submit(container(job, "pass")))
    ended(gcloud, job)
    (twin,) = server.get(TWINS, filter=f'display_name="{job}"')["customJobs"]
    deleted = server.request("DELETE", f"/v1/{twin['name']}").json
    identity = deleted["name"].rpartition("/")[2]
    told = good(gcloud.call("GET", f"{OPERATIONS}/{identity}", "operations.describe"))
    assert (told["name"], told["done"]) == (f"projects/p1/operations/{identity}", True)
    listed = good(gcloud.call("GET", OPERATIONS, "operations.list", query="&pageSize=100"))
    assert told in listed["operations"]
    assert good(gcloud.call("POST", f"{OPERATIONS}/{identity}:cancel", "operations.cancel", {})) == {}
    first = server.get(OPERATIONS, pageSize=1)
    assert len(first["operations"]) == 1
    assert gcloud.describe(job).status == 404


def test_the_older_api_asks_for_the_token_as_all_do(server: LiveServer) -> None:
    assert server.request("GET", JOBS, token=None).status == 403
    assert server.request("POST", JOBS, {}, token="wrong").status == 401


def test_a_stream_begun_on_a_running_job_has_every_line_by_its_task_and_ends(
    gcloud: AiPlatform, fresh: Name
) -> None:
    job = fresh("stream")
    source = (
        "import sys, time\n"
        "for n in range(40):\n"
        "    print(n, file=sys.stderr if n % 2 else sys.stdout); time.sleep(0.02)\n"
    )
    good(gcloud.submit(container(job, source, masterType="standard", workerType="standard", workerCount="2")))
    in_state(gcloud, job, "RUNNING")
    stream = gcloud.stream_logs(job)
    rows = [printed(entry) for entry in stream]
    assert good(gcloud.describe(job))["state"] == "SUCCEEDED", "the stream ended before the job"
    assert stream.dropped == []
    tasks = ("master-replica-0", "worker-replica-0", "worker-replica-1")
    expected = {("ERROR" if n % 2 else "INFO", task, str(n)) for n in range(40) for task in tasks}
    lines = [row for row in rows if row[1] != "service"]
    assert len(lines) == len(expected)
    assert set(lines) == expected
    one = [printed(entry) for entry in gcloud.stream_logs(job, task="worker-replica-1")]
    assert one == [row for row in lines if row[1] == "worker-replica-1"]
    assert list(gcloud.stream_logs(job, task="worker-replica-2")) == []


def test_submit_with_stream_logs_ends_after_the_job_although_it_is_silent(
    gcloud: AiPlatform, fresh: Name
) -> None:
    job = fresh("silent")
    good(gcloud.submit(container(job, "import time; print('before'); time.sleep(4); print('after')")))
    stream = gcloud.stream_logs(job, "jobs.submit.training")
    lines = [row[2] for row in map(printed, stream) if row[1] == "master-replica-0"]
    assert lines == ["before", "after"]
    assert good(gcloud.describe(job))["state"] == "SUCCEEDED"


def test_a_cancelled_job_ends_its_stream(gcloud: AiPlatform, fresh: Name) -> None:
    job = fresh("cut")
    good(gcloud.submit(container(job, "import time; print('up', flush=True); time.sleep(600)")))
    in_state(gcloud, job, "RUNNING")
    timer = threading.Timer(1.0, gcloud.cancel, (job,))
    timer.start()
    try:
        rows = [printed(entry) for entry in gcloud.stream_logs(job)]
    finally:
        timer.join()
    assert [row for row in rows if row[1] != "service"] == [("INFO", "master-replica-0", "up")]


def test_events_tell_tasks_by_the_names_of_the_older_api(gcloud: AiPlatform, fresh: Name) -> None:
    job = fresh("again")
    source = (
        "import os, signal\nif os.environ['TRAINSHED_RESTART'] == '0': os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    good(gcloud.submit(container(job, source)))
    assert ended(gcloud, job)["state"] == "SUCCEEDED"
    told = [e["jsonPayload"] for e in gcloud.stream_logs(job) if printed(e)[1] == "service"]
    assert {one["task"] for one in told if one["reason"] == "REPLICA_RESTARTED"} == {"master-replica-0"}
