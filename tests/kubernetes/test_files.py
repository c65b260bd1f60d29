"""Files of jobs on a real cluster, through a real server: code, buckets, models, checkpoints and reports."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import folders
from tests.acceptance.test_gcs_paths import (
    BUCKET,
    OUT,
    a_bucket,
    check_manifests,
    manifest,
    media,
    names,
    output,
    put,
    said,
)
from tests.kubernetes.cluster import Cluster, wait_for
from tests.kubernetes.test_jobs import is_gone, pod_of
from tests.live import JOBS, LiveServer

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(900)]

ROOM = 512 << 20  # bytes of memory that a server may take at most


@pytest.fixture(autouse=True)
def bucket(server: LiveServer) -> Iterator[None]:
    with a_bucket(server):
        yield


def a_pool(program: str, count: int = 1, machine: str = "custom-1-256") -> dict[str, object]:
    return {
        "machineSpec": {"machineType": machine},
        "replicaCount": count,
        "containerSpec": {"imageUri": "localhost/python:3", "command": ["python3", "-c", program]},
    }


def submit(server: LiveServer, *programs: str, **spec: object) -> str:
    return server.submit(pools=[a_pool(program) for program in programs], name="with files", spec=spec)


def succeeded(server: LiveServer, job: str) -> list[str]:
    done = server.wait(job, 300)
    assert done["state"] == "JOB_STATE_SUCCEEDED", (done.get("error"), said(server, job))
    return said(server, job)


def peak(server: LiveServer) -> int:
    status = Path(f"/proc/{server.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def test_a_job_begins_in_its_folder_of_code(server: LiveServer, cluster: Cluster):
    program = (
        b"import os, inner.part\nprint(os.getcwd(), inner.part.WORD, os.readlink('../link'), flush=True)\n"
    )
    code = folders.keep(
        server,
        {
            "sub/train.py": program,
            "sub/inner/part.py": b"WORD = 'found'",
            "sub/run": (folders.EXECUTABLE, b"#!/bin/sh\nexec python3 train.py"),
            "link": (folders.LINK, b"sub/run"),
        },
    )
    pool = a_pool("")
    pool["containerSpec"] = {"imageUri": "localhost/python:3", "command": ["./run"]}
    spec = {"workerPoolSpecs": [pool], "code": code, "workingDirectory": "sub"}
    answer = server.request("POST", JOBS, {"displayName": "with code", "jobSpec": spec})
    assert answer.status == 200, answer.body
    job = answer.json["name"]
    assert succeeded(server, job) == ["/trainshed/code/sub found sub/run"]
    is_gone(cluster, job)


def test_a_model_is_in_the_bucket_with_its_manifest_when_the_job_has_succeeded(
    server: LiveServer, cluster: Cluster
):
    put(server, "in/ünïcode 100%.csv", b"1,2,3")
    source = (
        "import os\n"
        "folder = os.environ['AIP_MODEL_DIR'].replace('gs://', '/gcs/')\n"
        "os.makedirs(folder + 'sub')\n"
        "open(folder + 'model.bin', 'wb').write(b'x' * 3_000_000)\n"
        "open(folder + 'sub/größe', 'w').write('y')\n"
        f"print(open('/gcs/{BUCKET}/in/ünïcode 100%.csv').read())\n"
    )
    job = submit(server, source, **output())
    assert succeeded(server, job) == ["1,2,3"]
    assert len(manifest(server, "runs/one/model/")["files"]) == 2
    assert media(server, "runs/one/model/model.bin") == b"x" * 3_000_000
    assert check_manifests(server) == 1
    is_gone(cluster, job)


def test_what_a_job_writes_below_gcs_is_stored_although_it_does_not_name_it(server: LiveServer):
    put(server, "before", b"there")
    source = f"root = '/g' + 'cs/{BUCKET}/'; print(open(root + 'before').read())"
    source += "; open(root + 'new', 'w').write('1')"
    assert succeeded(server, submit(server, source)) == ["there"]
    assert media(server, "new") == b"1"


TRAINS = """
import os, time
folder = os.environ["TRAINSHED_CHECKPOINT_DIR"]
resume = os.environ.get("TRAINSHED_RESUME_DIR")
print("from", os.environ.get("TRAINSHED_RESUME_FROM"), flush=True)
if resume:
    print("state", open(resume + "state").read(), flush=True)
else:
    for step in (1, 2):
        os.makedirs(f"{folder}step-{step}")
        open(f"{folder}step-{step}/state", "w").write(f"step {step}")
        time.sleep(3)
    time.sleep(600)
"""


def test_a_replica_whose_pod_is_deleted_goes_on_from_its_last_checkpoint(
    server: LiveServer, cluster: Cluster
):
    job = submit(server, TRAINS, **output())
    wait_for(lambda: manifest(server, "runs/one/checkpoints/step-1/"), "the first checkpoint, stored")
    wait_for(lambda: media(server, "runs/one/checkpoints/step-2/state"), "the second one")
    cluster.ask("DELETE", pod_of(cluster, job))
    lines = succeeded(server, job)
    assert lines[1:] == [f"from {OUT}/checkpoints/step-2/", "state step 2"]
    is_gone(cluster, job)


WRITES = f"""
import os, time
for number in range(40):
    os.makedirs('/gcs/{BUCKET}/out', exist_ok=True)
    open(f'/gcs/{BUCKET}/out/{{number}}', 'w').write(str(number) * 1000)
    if number % 10 == 0: open('/gcs/{BUCKET}/gone', 'w').close(); print(number, flush=True)
    time.sleep(0.3)
os.remove('/gcs/{BUCKET}/gone')
"""


def test_all_that_was_written_is_stored_although_the_server_is_killed_again_and_again(
    server: LiveServer, cluster: Cluster
):
    job = submit(server, WRITES)
    for mark in ("0", "10", "20", "30"):
        wait_for(lambda mark=mark: mark in said(server, job), f"line {mark}")
        server.kill()
        server.start()
    succeeded(server, job)
    stored = {name: media(server, name) for name in names(server, "out/")}
    assert stored == {f"out/{number}": (str(number) * 1000).encode() for number in range(40)}
    assert media(server, "gone") is None
    is_gone(cluster, job)


def test_replicas_find_what_another_one_wrote(server: LiveServer, cluster: Cluster):
    chief = f"""
import os, time
open('/gcs/{BUCKET}/word', 'w').write('from the chief')
while not os.path.exists('/gcs/{BUCKET}/seen'): time.sleep(0.05)
"""
    worker = f"""
import os, time
while not os.path.exists('/gcs/{BUCKET}/word'): time.sleep(0.05)
print(open('/gcs/{BUCKET}/word').read())
open('/gcs/{BUCKET}/seen', 'w').close()
"""
    job = submit(server, chief, worker)
    assert succeeded(server, job) == ["from the chief"]
    assert media(server, "word") == b"from the chief" and media(server, "seen") == b""
    is_gone(cluster, job)


def test_reports_are_seen_while_a_program_runs_and_after_its_end(server: LiveServer):
    source = """
import json, os, time
path = os.environ["TRAINSHED_REPORT"]
def tell(step):
    at = time.time_ns()
    open(path, "w").write(f"{at} {json.dumps({'step': step, 'total': 20, 'values': {'loss': 0.5}})} {at}")
tell(3)
while not os.path.exists('/gcs/training-data/go'): time.sleep(0.05)
tell(20)
"""
    job = submit(server, source)
    wait_for(lambda: step(server, job) == 3, "the report of step 3")
    server.cancel(job)
    other = submit(server, source.replace("while not", "while False and not"))
    succeeded(server, other)
    wait_for(lambda: step(server, other) == 20, "the last report")


def step(server: LiveServer, job: str) -> float:
    return (server.get(f"/v1/{job}:metrics").get("progress") or {}).get("step", 0)


def test_values_for_a_study_come_by_the_file_of_hypertune(server: LiveServer):
    source = """
import json, os, time
line = {"timestamp": time.time(), "trial": "1", "accuracy": "0.75", "global_step": "4"}
open(os.environ["CLOUD_ML_HP_METRIC_FILE"], "w").write(json.dumps(line) + "\\n")
"""
    job = submit(server, source)
    succeeded(server, job)
    told = wait_for(lambda: server.get(f"/v1/{job}:metrics").get("progress"), "the value")
    assert told["values"] == {"accuracy": 0.75}, json.dumps(told)


def test_a_gigabyte_goes_to_a_pod_and_comes_back_while_the_server_stays_small(
    server: LiveServer, cluster: Cluster
):
    piece = bytes(range(256)) * 4096
    source = f"""
import zlib
def write(path):
    with open(path, 'wb') as file:
        for number in range(1024): file.write({piece[:256]!r} * 4096)
def check(path):
    crc = 0
    with open(path, 'rb') as file:
        while piece := file.read(1 << 20): crc = zlib.crc32(piece, crc)
    return crc
"""
    first = submit(server, f"{source}\nwrite('/gcs/{BUCKET}/large'); print(check('/gcs/{BUCKET}/large'))")
    [crc] = succeeded(server, first)
    assert int(names(server)["large"]["size"]) == 1 << 30
    second = submit(server, f"{source}\nprint(check('/gcs/{BUCKET}/large'))")
    assert succeeded(server, second) == [crc]
    assert peak(server) < ROOM


def test_a_program_whose_files_were_gone_before_they_were_fetched_runs_again(
    server: LiveServer, cluster: Cluster
):
    source = f"""
import os, time
run = os.environ["TRAINSHED_RUN"].rpartition(".")[2]
print("ready", run, flush=True)
if run == "0": time.sleep(5)
open('/gcs/{BUCKET}/result', 'w').write(run)
"""
    job = submit(server, source)
    wait_for(lambda: said(server, job), "that its program runs")
    server.kill()
    pod = pod_of(cluster, job)
    time.sleep(8)  # its program ends; should it be slower, it ends by a signal, and runs again too
    cluster.ask("DELETE", f"{pod}?gracePeriodSeconds=1")
    wait_for(lambda: "terminated" in container_state(cluster, pod), "that its pod was killed")
    server.start()
    assert succeeded(server, job) == ["ready 0", "ready 1"]
    assert media(server, "result") == b"1"
    is_gone(cluster, job)


def container_state(cluster: Cluster, pod: str) -> dict[str, object]:
    statuses = cluster.ask("GET", pod)["status"].get("containerStatuses") or [{}]
    return statuses[0].get("state") or {}
