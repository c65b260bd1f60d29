"""Jobs of several regions on one server: an id means one job everywhere, and no list hides the others."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live import JOBS, PROJECT, LiveServer, by_id, pool, python
from tests.shared_server import forget_jobs
from tests.shell import Shell

AWAY = f"/v1/projects/{PROJECT}/locations/europe-west4/customJobs"
ANYWHERE = f"/v1/projects/{PROJECT}/locations/-/customJobs"


@pytest.fixture(scope="module")
def shared_server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "8", "--memory", "32GiB") as live:
        yield live


@pytest.fixture
def server(shared_server: LiveServer) -> Iterator[LiveServer]:
    """The same for all, without jobs."""
    yield shared_server
    forget_jobs(shared_server, ANYWHERE)


@pytest.fixture
def bash(server: LiveServer, tmp_path: Path) -> Shell:
    return Shell(server, tmp_path, {"TRAINSHED_PROJECT": PROJECT})


def away(server: LiveServer, name: str, program: str = "print('from afar')") -> str:
    body = {"displayName": name, "jobSpec": {"workerPoolSpecs": [pool(python(program))]}}
    return str(server.post(AWAY, body)["name"])


def test_a_job_of_another_region_is_found_by_its_id_by_every_command(server: LiveServer, bash: Shell) -> None:
    job = away(server, "far")
    server.wait(job)
    identity = by_id(job)
    for called in (identity, job, "far", identity[:15]):
        assert job in bash(f"trainshed show {called}").stdout
        assert bash(f"trainshed logs {called}").stdout == "from afar\n"
    for command in ("events", "why", "wait", "top --once", "retry"):
        done = bash(f"trainshed {command} {identity}")
        assert done.returncode == 0, f"{command}: {done.stderr}"
    done = bash(f"trainshed ai custom-jobs describe {identity}")
    assert job in done.stdout, done.stderr
    assert bash(f"trainshed delete {identity}").stdout == f"deleted {identity} (far)\n"


def test_a_list_counts_the_jobs_of_other_regions(server: LiveServer, bash: Shell) -> None:
    server.submit(["true"], name="near")
    for _ in range(3):
        away(server, "far")
    done = bash("trainshed ls")
    assert "near" in done.stdout
    assert "far" not in done.stdout
    assert done.stderr == "3 more in other locations: trainshed ls --location=-\n"
    assert "3 more" not in bash("trainshed ls --filter 'display_name=near'").stderr
    for flag in ("--location=-", "--region=-", "--all-locations"):
        done = bash(f"trainshed ls {flag}")
        assert done.stdout.count("europe-west4") == 3
        assert done.stderr == ""


def test_cancelling_by_name_means_the_one_that_has_not_ended(server: LiveServer, bash: Shell) -> None:
    over = [server.submit(["true"], name="digits") for _ in range(12)]
    alive = server.submit(python("import time; time.sleep(600)"), name="digits")
    over.append(server.submit(["true"], name="digits"))
    for job in over:
        server.wait(job)
    done = bash("trainshed cancel digits")
    assert (done.returncode, done.stdout) == (0, f"cancelling {by_id(alive)} (digits)\n"), done.stderr
    server.wait(alive)
    done = bash("trainshed cancel digits")
    assert done.returncode == 1
    assert "could mean several jobs" in done.stderr


def test_a_dash_is_every_location_for_questions_and_none_for_new_jobs(server: LiveServer) -> None:
    job = away(server, "far")
    assert server.get(f"{ANYWHERE}/{by_id(job)}")["name"] == job
    assert server.request("GET", f"{JOBS}/{by_id(job)}").status == 404
    body = {"displayName": "x", "jobSpec": {"workerPoolSpecs": [pool(["true"])]}}
    for path in (ANYWHERE, f"{ANYWHERE}:explain"):
        answer = server.request("POST", path, body)
        assert answer.status == 400
        assert "one location" in answer.violations["parent"]
