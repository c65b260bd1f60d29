"""Runtimes, as people meet them: packages on top, names that stand in, a build seen, failed, killed, removed.

The packages are wheels made here, laid on the server's own interpreter: nothing is downloaded.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.contracts.test_venv_runtimes import a_wheel
from tests.live import JOBS, PARENT, PATIENCE, LiveServer, pool, python, until
from tests.shared_server import forget_jobs, forget_runtimes

IMPORTS = python("import smalla, sys, os; print(smalla.version, sys.prefix == os.environ['VIRTUAL_ENV'])")
OWN_ROWS = """
[[runtimes]]
name = "team/trainer"
images = ["registry.example/team/trainer:*"]
"""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    wheels = tmp_path_factory.mktemp("wheels")
    rows = wheels / "rows.toml"
    a_wheel(wheels, "smalla")
    rows.write_text(OWN_ROWS)
    env = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PIP_CONFIG_FILE": os.devnull}
    with LiveServer("--cpus", "8", "--memory", "64GiB", "--runtimes", str(rows), env=env) as live:
        yield live
        assert "Traceback" not in live.said(), live.said()


@pytest.fixture
def server(shared_server: LiveServer) -> Iterator[LiveServer]:
    """The same for all, without jobs and built runtimes."""
    yield shared_server
    forget_jobs(shared_server)
    forget_runtimes(shared_server)


def cli(server: LiveServer, *args: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "TRAINSHED_HOME": str(server.home), "TRAINSHED_PROJECT": "p1"}
    words = [sys.executable, "-m", "trainshed.cli", *args]
    return subprocess.run(words, env=env, capture_output=True, text=True, timeout=PATIENCE * 2, check=False)


def events(server: LiveServer, job: str) -> list[Any]:
    return server.get(f"/v1/{job}:events")["events"]


def with_image(image: str, command: Sequence[str]) -> dict[str, Any]:
    made = pool(command)
    made["containerSpec"]["imageUri"] = image
    return made


def test_requirements_are_installed_once_and_the_second_job_does_not_wait(server: LiveServer) -> None:
    first = server.submit(IMPORTS, spec={"requirements": ["smalla"]})
    assert server.wait(first)["state"] == "JOB_STATE_SUCCEEDED"
    assert [line["text"] for line in server.lines(first)] == ["1.0 True"]
    assert "PREPARING" in [event["reason"] for event in events(server, first)]
    times = server.get(f"/v1/{first}:status")["times"]
    assert list(times) == ["created", "preparing", "prepared", "admitted", "started", "ended"]
    second = server.submit(IMPORTS, spec={"requirements": ["smalla"]})
    server.wait(second)
    assert "PREPARING" not in [event["reason"] for event in events(server, second)]


def test_a_build_that_fails_is_the_job_s_verdict_with_pip_s_words(server: LiveServer) -> None:
    job = server.wait(server.submit(IMPORTS, spec={"requirements": ["nosuchthing==7"]}))
    assert job["state"] == "JOB_STATE_FAILED"
    assert job["error"]["code"] == 9
    head, *rest = job["error"]["message"].splitlines()
    assert head == "The runtime trainshed/python with 1 requirement on top could not be built."
    assert rest[0].startswith("Cause: NO_SUCH_PACKAGE")
    assert any("No matching distribution found for nosuchthing==7" in line for line in rest)


def test_a_killed_server_s_build_dies_with_it_and_the_next_server_builds_anew(server: LiveServer) -> None:
    job = server.submit(IMPORTS, spec={"requirements": ["smalla"]})
    until(lambda: any("guard.py" in line for line in server.commands()), "the build")
    server.kill()
    until(lambda: not any("guard.py" in line for line in server.commands()), "the end of the build")
    server.start()
    assert server.wait(job)["state"] == "JOB_STATE_SUCCEEDED"
    [built] = [p for p in (server.home / "runtimes").iterdir() if (p / "complete").exists()]
    assert built.is_dir()


def test_a_cancel_does_not_wait_for_the_build(server: LiveServer) -> None:
    job = server.submit(IMPORTS, spec={"requirements": ["smalla"]})
    server.cancel(job)
    assert server.wait(job)["state"] == "JOB_STATE_CANCELLED"


def test_names_of_the_operator_s_file_run_and_others_are_refused_with_a_sentence(server: LiveServer) -> None:
    refused = server.request(
        "POST", JOBS, {"displayName": "x", "jobSpec": {"workerPoolSpecs": [with_image("example/x:1", [])]}}
    )
    assert refused.status == 400
    [sentence] = refused.violations.values()
    assert "example/x:1" in sentence and "trainshed/pytorch" in sentence and "container engine" in sentence
    job = server.submit(pools=[with_image("registry.example/team/trainer:v7", python("print('hello')"))])
    assert server.wait(job)["state"] == "JOB_STATE_SUCCEEDED"


def test_a_job_that_might_be_is_told_what_would_have_to_be_built_first(server: LiveServer) -> None:
    image = "us-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-0:latest"
    asked = {"displayName": "x", "jobSpec": {"workerPoolSpecs": [with_image(image, ["python"])]}}
    told = server.post(f"{JOBS}:explain", asked)["because"]  # nothing is begun by asking
    assert told["reason"] == "PREPARING"
    assert "trainshed/pytorch:2.13.0 is not built here yet" in told["message"]
    assert not any(one["state"] == "BUILDING" for one in server.get(f"{PARENT}/runtimes")["runtimes"])


def test_people_see_build_and_remove_them(server: LiveServer, tmp_path: Path) -> None:
    lines = tmp_path / "requirements.txt"
    lines.write_text("# what we need\nsmalla==1.0\n")
    built = cli(server, "runtimes", "build", "trainshed/python", "--requirements", str(lines))
    assert (built.returncode, built.stdout) == (0, "trainshed/python is ready\n"), built.stderr
    assert "Building trainshed/python with 1 requirement on top" in built.stderr
    table = cli(server, "runtimes", "ls").stdout
    assert "trainshed/jax" in table and "ABSENT" in table and "smalla==1.0" in table
    shown = json.loads(cli(server, "runtimes", "ls", "--json").stdout)
    [one] = [row for row in shown if row.get("requirements") == ["smalla==1.0"]]
    assert (one["state"], int(one["sizeBytes"]) > 0) == ("READY", True)

    job = server.submit(python("import time; time.sleep(1000)"), spec={"requirements": ["smalla==1.0"]})
    server.wait_for(job, ["JOB_STATE_RUNNING"])
    kept = cli(server, "runtimes", "rm", one["id"][:8])
    assert kept.returncode == 1 and "not over yet" in kept.stderr
    assert "nothing to remove" in cli(server, "runtimes", "rm", "--unused").stderr
    server.cancel(job)
    server.wait(job)
    gone = cli(server, "runtimes", "rm", "--unused")
    assert gone.returncode == 0 and gone.stdout.startswith("removed trainshed/python with 1 on top")
    assert not (server.home / "runtimes" / one["id"]).exists()


def test_a_build_that_fails_fails_the_command_and_wrong_words_are_misuse(
    server: LiveServer, tmp_path: Path
) -> None:
    lines = tmp_path / "requirements.txt"
    lines.write_text("nosuchthing==7\n")
    failed = cli(server, "runtimes", "build", "trainshed/python", "--requirements", str(lines))
    assert failed.returncode == 1
    assert "could not be built" in failed.stderr and "No matching distribution" in failed.stderr
    lines.write_text("-r other.txt\n")
    for content, told in ((None, "cannot read"), ("nosuchthing==8\n", "nosuchthing==8")):
        if content:
            (tmp_path / "other.txt").write_text(content)
        failed = cli(server, "runtimes", "build", "trainshed/python", "--requirements", str(lines))
        assert failed.returncode == 1 and told in failed.stderr
    assert "example/x" in cli(server, "runtimes", "build", "example/x").stderr
    assert cli(server, "runtimes", "rm").returncode == 2
    assert cli(server, "runtimes", "rm", "trainshed/jax").returncode == 1
