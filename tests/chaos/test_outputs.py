"""What programs write below /gcs, under kill -9 of everything and a full disk: complete or absent."""

import contextlib
import json
import os
import random
import signal
import time

import pytest

from tests.acceptance.test_gcs_paths import BUCKET, OUT, check_manifests, ended, manifest, names, output, said
from tests.chaos.test_full_disk import fill, small_disk
from tests.faults import Sentence
from tests.live import PROJECT, LiveServer, pool, python, until

# Each checkpoint has three files of the same step. It goes on only from one that is whole, else it fails.
TRAINS = """
import os, sys, time
folder = os.environ["TRAINSHED_CHECKPOINT_DIR"]
resume = os.environ.get("TRAINSHED_RESUME_DIR")
step = 0
if resume:
    steps = {open(f"{resume}{part}").read() for part in "abc"}
    below = os.environ["TRAINSHED_RESUME_FROM"].startswith(os.environ["AIP_CHECKPOINT_DIR"])
    if len(steps) != 1 or not below:
        sys.exit(f"not whole: {resume} {steps}")
    step = int(steps.pop())
print("from", step, os.getpid(), flush=True)
while step < 60:
    step += 1
    place = f"{folder}step-{step:04}"
    os.makedirs(place, exist_ok=True)
    for part in "abc":
        with open(f"{place}/{part}", "w") as file:
            file.write(str(step))
        time.sleep(0.06)
os.makedirs(os.environ["TRAINSHED_MODEL_DIR"])
open(os.environ["TRAINSHED_MODEL_DIR"] + "model", "w").write(str(step))
"""


@pytest.mark.timeout(400)
def test_a_job_whose_replicas_and_server_are_killed_always_goes_on_from_a_whole_checkpoint() -> None:
    chance = random.Random(7)
    rule = {"restartRule": {"maxReplicaRestarts": 50, "backoff": "0.05s"}}
    with LiveServer("--cpus", "8", "--memory", "32GiB") as server:
        server.post(f"/storage/v1/b?project={PROJECT}", {"name": BUCKET})
        job = server.submit(pools=[pool(python(TRAINS))], spec={**output(), "scheduling": rule})
        for victims in ("replica", "server", "both", "replica"):
            time.sleep(chance.uniform(1, 3))
            if victims != "server":
                pid = int(until(lambda: said(server, job))[-1].split()[2])
                with contextlib.suppress(ProcessLookupError):  # it has just ended by itself
                    os.kill(pid, signal.SIGKILL)
            if victims != "replica":
                server.kill()
                server.start()
            check_manifests(server)
        starts = [int(line.split()[1]) for line in ended(server, job)]
        assert starts == sorted(starts), "a restart went back behind an earlier one"
        assert len(starts) > 1
        assert starts[-1] > 0, "no restart found a checkpoint"
        assert check_manifests(server) == 61
        assert manifest(server, "runs/one/model/")["files"][0]["name"] == "model"


@pytest.mark.fault(
    "Disks",
    "The disk is full when a job's model is to be stored",
    "The job waits for room and then stores it. `why` says so meanwhile.",
    sentence="the disk of the server is full. Make room there, then try again.",
)
def test_a_full_disk_is_waited_for_and_the_job_says_so(sentence: Sentence) -> None:
    server = LiveServer("--cpus", "8", "--memory", "32GiB")
    try:
        server.home.mkdir(mode=0o700)
        with small_disk(server.home / "buckets") as disk:
            server.start()
            server.post(f"/storage/v1/b?project={PROJECT}", {"name": BUCKET})
            filler = fill(disk)
            source = "import os\nd = os.environ['TRAINSHED_MODEL_DIR']\nos.makedirs(d)\n"
            source += "open(d + 'm', 'wb').write(b'x' * 300_000)"
            job = server.submit(pools=[pool(python(source))], spec=output())
            until(lambda: sentence.is_in(json.dumps(server.get(f"/v1/{job}:why"))))
            assert server.state(job) == "JOB_STATE_RUNNING"
            assert not names(server)
            server.kill()
            server.start()
            filler.unlink()
            ended(server, job)
            assert check_manifests(server) == 1
            server.stop()
    finally:
        server.close()


@pytest.mark.fault(
    "Buckets",
    "The bucket for a job's model is deleted while the job runs",
    "The job fails and names the bucket and the command that makes it. What the job wrote is kept.",
)
def test_a_bucket_that_is_gone_at_the_end_fails_the_job_and_does_not_hold_it() -> None:
    with LiveServer("--cpus", "8", "--memory", "32GiB") as server:
        server.post(f"/storage/v1/b?project={PROJECT}", {"name": BUCKET})
        source = (
            "import os, time\nd = os.environ['TRAINSHED_MODEL_DIR']\nprint('up', flush=True)\ntime.sleep(2)\n"
        )
        source += "os.makedirs(d)\nopen(d + 'm', 'w').write('x')"
        job = server.submit(pools=[pool(python(source))], spec=output())
        until(lambda: said(server, job))
        assert server.request("DELETE", f"/storage/v1/b/{BUCKET}").status == 204
        done = server.wait(job)
        assert done["state"] == "JOB_STATE_FAILED"
        assert OUT.removeprefix("gs://") in done["error"]["message"]


pytestmark = pytest.mark.slow
