"""A trainer folder as a package in a bucket, run as a module: as people and Google's clients submit it.

The packages are made here and built with what the server has: it may ask no index.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests import packages
from tests.faults import Sentence
from tests.live import JOBS, PROJECT, LiveServer, until
from tests.shared_server import forget_jobs, forget_runtimes

URI = "gs://staging/trainer-0.1.tar.gz"
DIES_ONCE = """import os, signal, sys, time, trainer
print(trainer.version, flush=True)
mark = os.path.join(os.environ["TRAINSHED_RUN_DIR"], "..", "again")
if not os.path.exists(mark):
    open(mark, "w").close()
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.02)
    os.kill(os.getpid(), signal.SIGKILL)
"""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    wheels = tmp_path_factory.mktemp("wheels")
    (wheels / "other-1.0-py3-none-any.whl").write_bytes(packages.wheel("other", "1.0"))
    flags = ("--cpus", "8", "--memory", "64GiB", "--wheels", str(wheels), "--offline")
    with LiveServer(*flags, env={"PIP_CONFIG_FILE": os.devnull}) as live:
        live.post("/storage/v1/b", {"name": "staging"}, project=PROJECT)
        yield live
        assert "Traceback" not in live.said(), live.said()


@pytest.fixture
def server(shared_server: LiveServer) -> Iterator[LiveServer]:
    """The same for all, without jobs and installed packages."""
    yield shared_server
    forget_jobs(shared_server)
    forget_runtimes(shared_server)


def put(server: LiveServer, uri: str, content: bytes) -> str:
    _, _, bucket, name = uri.split("/", 3)
    path = f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name={quote(name, safe='')}"
    answer = server.request("POST", path, content, headers={"Content-Type": "application/gzip"})
    assert answer.status == 200, answer.body
    return uri


def pool(*uris: str, args: tuple[str, ...] = (), replicas: int = 1) -> dict[str, Any]:
    spec = {"executorImageUri": "trainshed/python:3", "packageUris": list(uris or (URI,))}
    spec |= {"pythonModule": "trainer.task", "args": list(args)}
    machine = {"machineType": "n1-standard-4"}
    return {"machineSpec": machine, "replicaCount": replicas, "pythonPackageSpec": spec}


def events(server: LiveServer, job: str) -> list[tuple[str, str]]:
    return [(one["reason"], one["message"]) for one in server.get(f"/v1/{job}:events")["events"]]


def texts(server: LiveServer, job: str) -> list[str]:
    return [line["text"] for line in server.lines(job)]


def test_a_package_is_installed_once_and_its_module_runs_in_every_replica(server: LiveServer) -> None:
    put(server, URI, packages.sdist(packages.files(needs=("other",))))
    job = server.submit(pools=[pool(args=("--epochs", "3")), pool(args=("worker",), replicas=2)])
    assert server.wait(job)["state"] == "JOB_STATE_SUCCEEDED", server.job(job)
    assert sorted(texts(server, job)) == ["0.1 --epochs 3", "0.1 worker", "0.1 worker"]
    told = server.job(job)["jobSpec"]["workerPoolSpecs"][0]["pythonPackageSpec"]
    assert told["packageUris"] == [URI]
    [installed] = [message for reason, message in events(server, job) if reason == "INSTALLED"]
    assert URI in installed and "sha256" in installed
    again = server.submit(pools=[pool()])
    server.wait(again)
    assert texts(server, again) == ["0.1"]
    assert len([p for p in (server.home / "runtimes").iterdir() if (p / "complete").exists()]) == 1
    words = [sys.executable, "-m", "trainshed.cli", "runtimes", "ls"]
    env = {**os.environ, "TRAINSHED_HOME": str(server.home)}
    listed = subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout
    assert "trainer-0.1.tar.gz" in listed


def test_an_object_replaced_meanwhile_does_not_change_what_a_restarted_replica_runs(
    server: LiveServer, tmp_path: Path
) -> None:
    put(server, URI, packages.sdist(packages.files(task=DIES_ONCE)))
    job = server.submit(pools=[pool(args=(str(tmp_path / "go"),))])
    until(lambda: texts(server, job) == ["0.1"], "the first line")
    put(server, URI, packages.sdist(packages.files(version="0.2")))
    server.kill()
    server.start()
    (tmp_path / "go").touch()
    assert server.wait(job)["state"] == "JOB_STATE_SUCCEEDED"
    assert texts(server, job) == ["0.1", "0.1"]
    later = server.submit(pools=[pool()])
    server.wait(later)
    assert texts(server, later) == ["0.2"]


@pytest.mark.fault(
    "Packages and code",
    "The server is killed while it installs packages",
    "Nothing half installed is left. The next server installs them anew.",
)
def test_a_server_killed_while_it_installs_leaves_nothing_half_and_the_next_one_goes_on(
    server: LiveServer,
) -> None:
    slow = packages.files()
    slow["setup.py"] = "import time\ntime.sleep(2)\n" + slow["setup.py"]
    put(server, URI, packages.sdist(slow))
    job = server.submit(pools=[pool()])
    until(lambda: any("pip install" in line for line in server.commands()), "the install")
    server.kill()
    until(lambda: not any("pip install" in line for line in server.commands()), "the end of the install")
    put_while_down = server.home / "runtimes"
    assert not [p for p in put_while_down.iterdir() if (p / "complete").exists()]
    server.start()
    put(server, URI, packages.sdist(packages.files(version="0.2")))  # too late for that job
    assert server.wait(job)["state"] == "JOB_STATE_SUCCEEDED"
    assert texts(server, job) == ["0.1"]


def test_a_cancel_does_not_wait_for_the_install(server: LiveServer) -> None:
    slow = packages.files()
    slow["setup.py"] = "import time\ntime.sleep(5)\n" + slow["setup.py"]
    put(server, URI, packages.sdist(slow))
    job = server.submit(pools=[pool()])
    until(lambda: any("pip install" in line for line in server.commands()), "the install")
    assert "Building trainshed/python with 1 package on top" in str(server.get(f"/v1/{job}:status"))
    server.cancel(job)
    assert server.wait(job)["state"] == "JOB_STATE_CANCELLED"


@pytest.mark.fault(
    "Packages and code",
    "A package cannot be fetched",
    "The job fails with the verdict NO_SUCH_PACKAGE, which names it.",
    sentence="The packages of the job could not be fetched.",
)
def test_a_package_that_cannot_be_had_is_the_job_s_verdict(sentence: Sentence, server: LiveServer) -> None:
    job = server.wait(server.submit(pools=[pool("gs://staging/none.tar.gz")]))
    assert job["state"] == "JOB_STATE_FAILED"
    head, cause, *_ = job["error"]["message"].splitlines()
    assert sentence.is_in(head)
    assert "NO_SUCH_PACKAGE" in cause and "gs://staging/none.tar.gz" in cause
    name, make, refusal = packages.HOSTILE["a name that climbs"]
    job = server.wait(server.submit(pools=[pool(put(server, f"gs://staging/{name}", make()))]))
    assert job["state"] == "JOB_STATE_FAILED" and refusal in job["error"]["message"]
    put(server, URI, packages.sdist({"setup.py": "raise SystemExit('the moon is full')"}))
    job = server.wait(server.submit(pools=[pool()]))
    assert job["state"] == "JOB_STATE_FAILED" and "the moon is full" in job["error"]["message"]


def test_addresses_of_the_server_s_own_machine_or_network_are_refused_at_submit(server: LiveServer) -> None:
    wrong = {
        "/etc/passwd.tar.gz": "own machine",
        "file:///etc/t.tar.gz": "own machine",
        "trainer.tar.gz": "own machine",
        "http://169.254.169.254/t.tar.gz": "own network",
        "https://metadata.google.internal/t.tar.gz": "own network",
        "gs://169.254.169.254/t.tar.gz": "names a machine",
        "gs://localhost:8080/t.tar.gz": "names a machine",
        "gs://staging": "must name an object",
        "gs://staging/t.egg": "no Python package by its name",
        "gs://staging/t.whl": "name of a wheel",
    }
    body = {"displayName": "x", "jobSpec": {"workerPoolSpecs": [pool(*wrong)]}}
    answer = server.request("POST", JOBS, body)
    assert answer.status == 400
    told = list(answer.violations.values())
    assert len(told) == len(wrong)
    for (uri, sentence), found in zip(wrong.items(), told, strict=True):
        assert sentence in found and uri in found
