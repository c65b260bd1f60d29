"""What people see of limits: a job that was cut, one without GPUs, one that crashes again and again."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tests.live import LiveServer, pool, python

HOG = "kept = []\nwhile True: kept.append(bytearray(b'x' * (8 << 20)))"


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "2", "--memory", "600MiB") as live:
        yield live
        assert "Traceback" not in live.said(), live.said()


def events(server: LiveServer, job: str) -> list[Any]:
    return server.get(f"/v1/{job}:events")["events"]


def verdict(server: LiveServer, job: str) -> Any:
    server.wait(job)
    return server.get(f"/v1/{job}:status")["failure"]["verdict"]


def test_a_job_cut_to_a_sixtieth_runs_and_its_replicas_share(server: LiveServer) -> None:
    needs = python("kept = bytearray(b'x' * (200 << 20)); print('trained')")
    pools = [pool(needs, machine="n1-standard-8"), pool(python("pass"), replicas=4, machine="n1-standard-8")]
    job = server.submit(pools=pools)
    assert server.wait(job)["state"] == "JOB_STATE_SUCCEEDED"
    (shrunk,) = [event for event in events(server, job) if event["reason"] == "SHRUNK"]
    assert "Its replicas share that" in shrunk["message"] and "given 2;" in shrunk["message"]


def test_one_over_what_was_left_of_it_is_told_of_the_cut(server: LiveServer) -> None:
    job = server.submit(pools=[pool(python(HOG), machine="n1-standard-8")])
    told = verdict(server, job)
    assert told["cause"] == "HOST_OUT_OF_MEMORY"
    assert "asked for 30.0 GiB on this replica and was cut to 600 MiB" in told["summary"]


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="needs a machine without a GPU")
def test_gpus_that_are_not_there_are_told_of_first_and_in_the_verdict(server: LiveServer) -> None:
    fails = python("raise ValueError('ProcessGroupNCCL is only supported with GPUs, no GPUs found!')")
    asked = pool(fails, machine="n1-standard-4")
    asked["machineSpec"] |= {"acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 2}
    job = server.submit(pools=[asked])
    told = verdict(server, job)
    assert told["cause"] == "CUDA_ERROR" and "was given none" in told["advice"]
    entries = server.entries(f'resource.labels.job_id="{job.rsplit("/", 1)[-1]}"')
    warned = [entry for entry in entries if "gets none" in str(entry.get("jsonPayload"))]
    assert warned and warned[0]["severity"] == "WARNING" and entries.index(warned[0]) <= 1


def test_a_crash_that_repeats_is_not_retried_for_a_minute(server: LiveServer) -> None:
    crash = "import faulthandler, os; faulthandler.enable(); print('at the kernel'); os.kill(os.getpid(), 11)"
    job = server.submit(python(crash))
    told = verdict(server, job)
    failure = server.get(f"/v1/{job}:status")["failure"]
    assert "3 times in a row" in failure["message"] and told["cause"] == "SEGMENTATION_FAULT"


def test_a_command_that_is_not_there_fails_a_job_that_retries_everything(server: LiveServer) -> None:
    rule = {"restartRule": {"retryExitCodes": ["1-255"], "maxReplicaRestarts": 500, "backoff": "0.1s"}}
    job = server.submit(["no-such-program"], spec={"scheduling": rule})
    told = verdict(server, job)
    assert told["cause"] == "COMMAND_NOT_FOUND"
    failure = server.get(f"/v1/{job}:status")["failure"]
    assert "was never started 5 times: its command cannot be run: No such file" in failure["message"]
    assert len([event for event in events(server, job) if event["reason"] == "RUNNING"]) < 5
