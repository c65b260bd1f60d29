"""Programs that hang, each in its own way, on a real server: found, named, and dealt with as asked."""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults import Sentence
from tests.live import LOCATION, PROJECT, LiveServer, pool, python, until

pytestmark = pytest.mark.slow

TORCH = Path(__file__).parents[2] / ".venv-train" / "bin" / "python"

ODD = """
import os, time
def all_reduce():
    time.sleep(1000)
def load_batch():
    time.sleep(1000)
print('here', flush=True)
load_batch() if os.environ['RANK'] == '2' else all_reduce()
"""
ONCE = """
import os, sys, time
print('here', flush=True)
if os.environ['TRAINSHED_RUN'].split('.')[1] == '0':
    time.sleep(1000)
"""
EXITS = """
import os, sys, time
if os.environ['RANK'] == '1':
    sys.exit(0)
end = time.time() + 1000
while time.time() < end:
    sum(range(500_000))  # a third of a core: more than core.jobs.hang.BUSY_SHARE, and room for other tests
    time.sleep(0.03)
"""
TALKS = """
import time
for step in range(1000):
    print(step, flush=True)
    time.sleep(1)
"""
TALKERS = {"workerpool0-0", "workerpool1-0", "workerpool1-1"}
WAKES = """
import os, time
while not os.path.exists({go!r}): time.sleep(0.2)
print('on', flush=True)
time.sleep(1000)
"""
SPINS = """
import time
from trainshed import report
for step in range(5):
    report.step(step, total=100)
    time.sleep(0.1)
def spin():
    while True: pass
spin()
"""
GLOO = """
import datetime, os, time, torch, torch.distributed as dist
dist.init_process_group('gloo', timeout=datetime.timedelta(minutes=30))
dist.all_reduce(torch.ones(1))
print('joined', flush=True)
def load_batch():
    time.sleep(1000)
def train():
    if dist.get_rank() == 1:
        load_batch()
    dist.all_reduce(torch.ones(1))
train()
"""


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "64", "--memory", "256GiB") as live:
        yield live
        assert "Traceback" not in live.said(), live.said()


@contextlib.contextmanager
def watched(
    server: LiveServer,
    source: str,
    replicas: int = 3,
    *,
    command: list[str] | None = None,
    **watch: str,
) -> Iterator[str]:
    """A job of several replicas with short times, gone afterwards."""
    program = command or python(source)
    pools = [pool(program), *([pool(program, replicas=replicas - 1)] if replicas > 1 else [])]
    scheduling = {"gracePeriod": "1s", "hangWatch": {"after": "4s", "exitAfter": "4s", **watch}}
    job = server.submit(pools=pools, spec={"scheduling": scheduling}, name="hangs")
    try:
        yield job
    finally:
        if server.state(job) in ("JOB_STATE_RUNNING", "JOB_STATE_PENDING", "JOB_STATE_QUEUED"):
            server.cancel(job)
        server.wait(job)


@pytest.fixture(scope="module", autouse=True)
def talker(server: LiveServer) -> Iterator[str]:
    """It talks while the other tests wait, so that hardly anybody waits for it."""
    with watched(server, TALKS, policy="FAIL") as job:
        yield job


def events(server: LiveServer, job: str, *reasons: str) -> list[Any]:
    return [one for one in server.get(f"/v1/{job}:events")["events"] if one["reason"] in reasons]


def suspected(server: LiveServer, job: str) -> str:
    return str(until(lambda: events(server, job, "HANG_SUSPECTED"))[0]["message"])


def command(server: LiveServer, *words: str) -> str:
    env = {
        **os.environ,
        "TRAINSHED_URL": server.url,
        "TRAINSHED_TOKEN": server.token,
        "TRAINSHED_PROJECT": PROJECT,
        "TRAINSHED_LOCATION": LOCATION,
    }
    done = subprocess.run(
        [sys.executable, "-m", "trainshed.cli", *words], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_odd_replica_is_named_and_a_warning_leaves_the_job_alone(server: LiveServer) -> None:
    with watched(server, ODD, replicas=4) as job:
        message = suspected(server, job)
        assert "3 replicas wait in all_reduce (<string>:4); workerpool1-1 waits in load_batch" in message
        stacks = events(server, job, "STACKS")
        assert [one.get("task", "") for one in stacks] == ["", "workerpool1-1"]
        assert "load_batch (<string>:6)\n    <module> (<string>:8)" in stacks[1]["message"]
        before = server.get(f"/v1/{job}:status")
        assert before["hang"]["kind"] == "STILL"
        identity = job.rpartition("/")[2]
        for words in (("show", identity), ("why", identity)):
            assert "It seems to hang" in command(server, *words)
        assert "load_batch (<string>:6)" in command(server, "stacks", identity)
        told = json.loads(command(server, "stacks", identity, "--replica", "workerpool1-0", "--json"))
        assert [one["task"] for one in told["replicas"]] == ["workerpool1-0"]
        time.sleep(5)
        assert len(events(server, job, "HANG_SUSPECTED")) == 1
        after = server.get(f"/v1/{job}:status")
        assert after["state"] == "JOB_STATE_RUNNING"
        assert [one["restarts"] for one in after["replicas"]] == [0] * 4


def test_failing_ends_the_job_with_a_verdict(server: LiveServer) -> None:
    with watched(server, ODD, policy="FAIL") as job:
        done = server.wait(job)
        first = done["error"]["message"].splitlines()[0]
        assert done["error"]["code"] == 4
        assert "2 replicas wait in all_reduce" in first or "waits in all_reduce" in first
        assert len(first) < 200
        failure = server.get(f"/v1/{job}:status")["failure"]
        assert (failure["reason"], failure["verdict"]["cause"]) == ("HUNG", "HUNG")
        assert server.get(f"/v1/{job}:why")["because"]["reason"] == "HUNG"


def test_restarting_is_a_new_attempt_that_may_succeed(server: LiveServer) -> None:
    with watched(server, ONCE, policy="RESTART") as job:
        assert server.wait(job)["state"] == "JOB_STATE_SUCCEEDED"
        [retried] = events(server, job, "JOB_RETRIED")
        assert retried["message"].startswith("It hung for ")
        assert "Retry 1 of 3" in retried["message"]
        assert {line["attempt"] for line in server.lines(job)} == {0, 1}


def test_a_job_of_which_one_replica_is_done_and_the_others_spin_hangs_at_its_end(server: LiveServer) -> None:
    with watched(server, EXITS, after="600s", policy="FAIL") as job:
        server.wait(job)
        assert "workerpool1-0 ended well" in suspected(server, job)
        error = server.job(job)["error"]["message"]
        assert "after workerpool1-0 had ended well" in error.splitlines()[0]


def test_a_job_that_speaks_every_second_never_hangs(server: LiveServer, talker: str) -> None:
    until(lambda: {line["task"] for line in server.lines(talker) if line["text"] == "15"} >= TALKERS)
    assert server.state(talker) == "JOB_STATE_RUNNING"
    assert events(server, talker, "HANG_SUSPECTED") == []


def test_a_job_that_moves_again_is_said_to(server: LiveServer, tmp_path: Path) -> None:
    with watched(server, WAKES.format(go=str(tmp_path / "go")), replicas=2) as job:
        suspected(server, job)
        (tmp_path / "go").touch()
        [over] = until(lambda: events(server, job, "HANG_OVER"))
        assert "moves again" in over["message"]
        until(lambda: len(events(server, job, "HANG_SUSPECTED")) == 2)


def test_one_replica_is_watched_when_asked_for_and_not_otherwise(server: LiveServer) -> None:
    with watched(server, ODD.replace("'2'", "'0'"), replicas=1) as job:
        assert "workerpool0-0 waits in load_batch" in suspected(server, job)
    job = server.submit(python(ODD))
    assert "hangWatch" not in server.job(job)["jobSpec"]["scheduling"]
    server.cancel(job)


def test_a_spinning_job_whose_steps_have_stopped_hangs(server: LiveServer) -> None:
    with watched(server, SPINS, replicas=1) as job:
        message = suspected(server, job)
        assert "it computes, but no stack moved" in message
        assert "workerpool0-0 is in spin" in message


def test_a_killed_server_begins_anew_and_tells_of_nothing_twice() -> None:
    with LiveServer("--cpus", "16", "--memory", "64GiB") as server:
        with watched(server, ODD) as job:
            suspected(server, job)
            server.kill()
            server.start()
            time.sleep(8)
            assert len(events(server, job, "HANG_SUSPECTED")) == 1
            assert events(server, job, "HANG_OVER") == []
            assert server.get(f"/v1/{job}:status")["hang"]["kind"] == "STILL"
        assert "Traceback" not in server.said(), server.said()


@pytest.mark.fault(
    "Programs",
    "One replica hangs while the others wait for it",
    "The job is said to hang, with what each replica does.",
    sentence="2 replicas wait in all_reduce (train.py:11)",
)
@pytest.mark.needs_torch
@pytest.mark.skipif(not TORCH.exists(), reason="needs PyTorch in .venv-train (make demo-env)")
def test_a_collective_nobody_comes_to_names_who_is_missing(
    sentence: Sentence, server: LiveServer, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(GLOO)
    with watched(server, "", command=[str(TORCH), str(script)], after="6s") as job:
        message = suspected(server, job)
        assert sentence.is_in(message)
        assert "workerpool1-0 waits in load_batch (train.py:7)" in message
