"""Why and when on a real server of two CPUs: one job holds them, two wait, and what is named does help."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.live import JOBS, LOCATION, PATIENCE, PROJECT, LiveServer, by_id, pool, python
from tests.shared_server import forget_jobs

FOREVER = python("import time; time.sleep(600)")


@pytest.fixture(scope="module")
def shared_server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "2", "--memory", "8GiB") as found:
        yield found


@pytest.fixture
def server(shared_server: LiveServer) -> Iterator[LiveServer]:
    """All tests have the same one, and each finds it without jobs."""
    yield shared_server
    forget_jobs(shared_server)


@pytest.fixture
def holder(server: LiveServer) -> str:
    """Runs, on one of the two CPUs."""
    name = server.submit(pools=[pool(FOREVER, machine="n1-standard-1")], name="holder")
    server.wait_for(name, ["JOB_STATE_RUNNING"])
    return name


def a_gang(server: LiveServer, name: str) -> str:
    """Two replicas, which want both CPUs."""
    return server.submit(pools=[pool(FOREVER, replicas=2, machine="n1-standard-1")], name=name)


def command(server: LiveServer, *args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("TRAINSHED_", "CLOUDSDK_"))}
    env |= {"TRAINSHED_HOME": str(server.home), "TRAINSHED_URL": server.url}
    env |= {"TRAINSHED_PROJECT": PROJECT, "TRAINSHED_LOCATION": LOCATION}
    return subprocess.run(
        [sys.executable, "-m", "trainshed.cli", *args],
        env=env,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def why(server: LiveServer, name: str) -> Any:
    return server.get(f"/v1/{name}:why")


def facts(cause: Any, reason: str) -> list[Any]:
    return [part for part in cause.get("because", []) if part["reason"] == reason]


def set_field(spec: Any, path: str, value: str) -> None:
    """Do what a change says, as a person would in the job file."""
    *way, last = path.replace("[", ".").replace("]", "").removeprefix("jobSpec.").split(".")
    for step in way:
        spec = spec[int(step)] if isinstance(spec, list) else spec.setdefault(step, {})
    spec[last] = value


def test_two_jobs_that_wait_are_told_who_holds_what_and_in_which_place_they_are(
    server: LiveServer, holder: str
) -> None:
    first, second = a_gang(server, "first"), a_gang(server, "second")
    told = why(server, first)
    assert (told["would"], told["position"], told["queueLength"]) == ("wait", 1, 2)
    assert told["because"]["reason"] == "WAITS_FOR_CAPACITY"
    assert [held["job"] for held in facts(told["because"], "HOLDS")] == [by_id(holder)]
    told = why(server, second)
    assert told["position"] == 2
    [before] = facts(told["because"], "BEFORE")
    assert before["job"] == by_id(first)
    shown = command(server, "why", "second")
    assert shown.returncode == 0, shown.stderr
    assert "place 2 of 2 in the queue" in shown.stdout
    assert f"Job {by_id(first)} 'first' is before it" in shown.stdout


def test_a_job_submitted_again_with_the_first_change_it_names_starts(server: LiveServer, holder: str) -> None:
    waiting = a_gang(server, "waiting")
    change = why(server, waiting)["changes"][0]
    assert (change["field"], change["to"]) == ("jobSpec.workerPoolSpecs[0].replicaCount", "1")
    server.cancel(waiting)
    server.wait(waiting)
    spec = server.job(waiting)["jobSpec"]
    set_field(spec, change["field"], change["to"])
    again = server.submit(pools=spec["workerPoolSpecs"], name="again")
    server.wait_for(again, ["JOB_STATE_RUNNING"])


def test_a_job_with_the_timeout_it_is_advised_passes_the_first_in_the_queue(
    server: LiveServer, holder: str
) -> None:
    first = a_gang(server, "first")
    small = {"displayName": "small", "jobSpec": {"workerPoolSpecs": [pool(FOREVER, machine="n1-standard-1")]}}
    told = server.post(f"{JOBS}:explain", small)
    assert (told["accepted"], told["would"]) == (True, "wait")
    change = next(c for c in told["changes"] if c["field"] == "jobSpec.scheduling.timeout")
    set_field(small["jobSpec"], change["field"], change["to"])
    assert server.post(f"{JOBS}:explain", small)["would"] == "start now"
    name = server.post(JOBS, small)["name"]
    server.wait_for(name, ["JOB_STATE_RUNNING"])
    assert server.state(first) == "JOB_STATE_QUEUED"


def test_a_job_starts_once_the_one_it_names_is_cancelled(server: LiveServer, holder: str) -> None:
    waiting = a_gang(server, "waiting")
    [change] = [c for c in why(server, waiting)["changes"] if c["field"] == "cancel"]
    assert change["job"] == by_id(holder)
    server.post(f"{JOBS}/{change['job']}:cancel")
    server.wait_for(waiting, ["JOB_STATE_RUNNING"])
    assert why(server, waiting)["because"]["reason"] == "RUNNING"
    assert why(server, holder)["because"]["reason"] == "CANCELLED"


def test_a_dry_run_says_so_before_and_keeps_nothing(server: LiveServer, holder: str) -> None:
    job = json.dumps({"workerPoolSpecs": [pool(FOREVER, replicas=2, machine="n1-standard-1")]})
    before = server.get(JOBS)
    done = command(server, "submit", "-", "--dry-run", stdin=job)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("job is accepted and would wait, place 1 of 1 in the queue.")
    assert f"trainshed cancel {by_id(holder)}" in done.stdout
    assert server.get(JOBS) == before
    small = job.replace('"replicaCount": 2', '"replicaCount": 1')
    told = json.loads(command(server, "submit", "-", "--dry-run", "--json", stdin=small).stdout)
    assert told["would"] == "start now"
    assert server.get(JOBS) == before


def test_what_a_submit_would_refuse_a_dry_run_refuses(server: LiveServer) -> None:
    wrong = {"displayName": "x", "jobSpec": {"workerPoolSpecs": [pool(FOREVER, machine="n1-imaginary-4")]}}
    refused, asked = server.request("POST", JOBS, wrong), server.request("POST", f"{JOBS}:explain", wrong)
    assert asked.status == refused.status == 400
    assert asked.violations == refused.violations


def test_what_such_jobs_have_taken_before_tells_when(server: LiveServer) -> None:
    nap = python("import os, time; time.sleep(float(os.environ.get('NAP', '600')))")
    for _ in range(2):
        server.wait(server.submit(pools=[pool(nap, env={"NAP": "0.1"})], name="nap"))
    running = server.submit(pools=[pool(nap)], name="nap", spec={"scheduling": {"timeout": "3600s"}})
    server.wait_for(running, ["JOB_STATE_RUNNING"])
    eta = why(server, a_gang(server, "waiting"))["eta"]
    assert eta["earliest"] <= eta.get("likely", eta["latest"]) <= eta["latest"]
    assert "nap" in eta["basis"]


def test_a_failed_job_says_why_and_an_unknown_one_is_not_found(server: LiveServer) -> None:
    failed = server.submit(python("raise SystemExit(3)"), name="failed")
    server.wait(failed)
    told = why(server, failed)
    assert told["because"]["reason"] == "PROGRAM_FAILED"
    assert "position" not in told
    assert server.request("GET", f"{JOBS}/123:why").status == 404
