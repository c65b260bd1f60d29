"""Jobs of images from their build to their end: what the guides print for custom containers, run as printed.

The images are built here without a network. What they are built on is stood in for by this machine's Python
under the printed name: what is shown is how a job gets there, finds the others and is found again.
"""

import contextlib
import json
import re
import shutil
import signal
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.test_guides import blocks
from tests.acceptance.test_seed_commands import CREATES, FILES, SEED, Bash, printed
from tests.containers.engine import Podman
from tests.containers.engine_images import BASE
from tests.faults import Sentence
from tests.live import JOBS, LiveServer, pool, until

pytestmark = [pytest.mark.containers, pytest.mark.timeout(400)]

PATIENCE = 240.0  # seconds: a dozen containers start at once on few CPUs
PRINTED_BASE = "docker.io/pytorch/pytorch:2.0.0-cuda11.8-cudnn8-runtime"
PIP = "#!/bin/sh\necho stands in for: pip $*\n"

# Rank 0 gathers a number of everybody and tells the sum: as the printed program's gradients are.
TRAIN = """import os, socket, sys, time
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if rank == 0:
    door = socket.create_server(("", place[1]))
    lines = [door.accept()[0] for _ in range(size - 1)]
    total = sum(int(line.recv(100)) for line in lines)
    for line in lines:
        line.sendall(str(total).encode())
else:
    while True:
        try:
            line = socket.create_connection(place)
            break
        except OSError:
            time.sleep(0.05)
    line.sendall(str(rank).encode())
    total = int(line.recv(100))
print(f"rank {rank} of {size}: {total}", *sys.argv[1:], flush=True)
"""

# Parameter servers answer for ever; all others ask each of them by its name.
CLUSTER = """import json, os, socket, sys, time
config = json.loads(os.environ["TF_CONFIG"])
task, cluster = config["task"], config["cluster"]
kind = open("/kind").read().strip()
if task["type"] == "ps":
    host, port = cluster["ps"][task["index"]].split(":")
    door = socket.create_server((host, int(port)))
    print(json.dumps({"kind": kind, "task": task["type"]}), flush=True)
    while True:
        line, _ = door.accept()
        line.sendall(f"{kind} {task['index']}".encode())
        line.close()
answers = []
for place in cluster["ps"]:
    host, port = place.split(":")
    while True:
        try:
            answers.append(socket.create_connection((host, int(port))).recv(100).decode())
            break
        except OSError:
            time.sleep(0.05)
print(json.dumps({"kind": kind, "task": task["type"], "answers": answers, "args": sys.argv[1:]}), flush=True)
"""


def build(podman: Podman, folder: Path, tag: str, dockerfile: str, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "Dockerfile").write_text(dockerfile)
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    podman.run("build", "--tag", tag, str(folder))


@pytest.fixture(scope="module")
def images(podman: Podman, tmp_path_factory: pytest.TempPathFactory) -> Podman:
    """Every image the guides name, and what the first is built on."""
    folder = tmp_path_factory.mktemp("images")
    base = f"FROM {BASE}\nCOPY pip /usr/local/bin/pip\nRUN chmod 755 /usr/local/bin/pip\n"
    build(podman, folder / "base", PRINTED_BASE, base, pip=PIP)
    build(
        podman,
        folder / "trainer",
        "gcr.io/my-project/pytorch-trainer:v1",
        (SEED / "Dockerfile").read_text(),
        train_py=TRAIN,
    )
    for name in (
        "my-project/pytorch-trainer:latest",
        "my-project/trainer:latest",
        "deeplearning-platform-release/reduction-server:latest",
    ):
        podman.run("tag", "gcr.io/my-project/pytorch-trainer:v1", f"gcr.io/{name}")
    podman.run("tag", BASE, "docker.io/library/python:3.11")  # what the guide's page is built on
    for kind in ("master", "worker", "ps"):
        own = f'FROM {BASE}\nCOPY task.py /\nRUN echo {kind} > /kind\nENTRYPOINT ["python", "/task.py"]\n'
        build(podman, folder / kind, f"localhost/{kind}:1", own, task_py=CLUSTER)
    return podman


@pytest.fixture(scope="module")
def server(images: Podman) -> Iterator[LiveServer]:
    with live(images) as server:
        yield server
        assert "Traceback" not in server.said(), server.said()


def live(podman: Podman, *flags: str) -> LiveServer:
    engine = ("--engine", str(podman.socket), "--subnets", podman.subnets)
    return LiveServer("--cpus", "16", "--memory", "16GiB", *engine, *flags)


@pytest.fixture
def bash(server: LiveServer, tmp_path: Path) -> Bash:
    for file in FILES:
        shutil.copy(SEED / file, tmp_path)
    return Bash(server, tmp_path)


def boxed(image: str, command: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    made = pool(command, machine="n1-standard-1", **more)
    made["containerSpec"]["imageUri"] = image
    return made


def tasks(server: LiveServer, job: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in server.lines(job):
        found.setdefault(line["task"], []).append(line["text"])
    return found


def test_the_server_says_which_engine_it_has(server: LiveServer):
    line = until(lambda: re.search(r"^  containers +(.*)$", server.said(), re.MULTILINE))
    assert re.fullmatch(r"Podman \S+ at /\S+/podman\.sock", line[1])


def test_the_complete_example_runs_as_it_is_printed(bash: Bash):
    job = bash.created(printed("submit.sh"))
    assert job["state"] == "JOB_STATE_SUCCEEDED", job
    assert tasks(bash.server, job["name"]) == {
        "workerpool0-0": ["rank 0 of 4: 6"],
        **{f"workerpool1-{index}": [f"rank {index + 1} of 4: 6"] for index in range(3)},
    }


@pytest.mark.parametrize("name", [name for name in CREATES if name != "submit.sh"])
def test_every_printed_create_runs_with_the_image_it_names(bash: Bash, name: str):
    job = bash.created(printed(name))
    assert job["state"] == "JOB_STATE_SUCCEEDED", job
    size = sum(int(made["replicaCount"]) for made in job["jobSpec"]["workerPoolSpecs"])
    total = sum(range(size))
    assert tasks(bash.server, job["name"])["workerpool0-0"] == [f"rank 0 of {size}: {total}"]


@pytest.mark.parametrize("file", [file for file in FILES if file != "job.yaml"])
def test_every_printed_job_file_runs_with_the_images_it_names(bash: Bash, file: str):
    if file == "reduction_server.yaml":  # its second image is a server, for which an entry point stands in
        text = (bash.folder / file).read_text()
        served = text.index("reduction-server:latest") + len("reduction-server:latest")
        waits = '\n      command: ["python", "-c", "import time; time.sleep(1000)"]'
        (bash.folder / file).write_text(text[:served] + waits + text[served:])
    command = f"trainshed ai custom-jobs create --region=us-central1 --project=PROJECT_ID --config={file}"
    job = bash.created(command)
    assert job["state"] == "JOB_STATE_SUCCEEDED", job
    said = tasks(bash.server, job["name"])
    assert said["workerpool0-0"][0].startswith("rank 0 of ")
    if file == "config.yaml":
        assert said["workerpool0-0"] == ["rank 0 of 1: 0 --epochs=100 --batch-size=64"]


def test_three_images_make_one_cluster_that_finds_itself_by_name(server: LiveServer, tmp_path: Path):
    variables = {
        "JOB_NAME": "containers_1",
        "REGION": "us-central1",
        "MASTER_IMAGE_URI": "localhost/master:1",
        "WORKER_IMAGE_URI": "localhost/worker:1",
        "PS_IMAGE_URI": "localhost/ps:1",
        "BUCKET_NAME": "models",
        "MODEL_DIR": "run-1",
    }
    bash = Bash(server, tmp_path, variables)
    command = (SEED.parent / "seed_000" / "submit.sh").read_text().replace("gcloud", "trainshed")
    done = bash(command)
    assert done.returncode == 0, done.stderr
    listed = server.get("/v1/projects/local/locations/us-central1/customJobs")["customJobs"]
    [name] = [job["name"] for job in listed if job["displayName"] == "containers_1"]
    job = server.wait(name, PATIENCE)
    assert job["state"] == "JOB_STATE_SUCCEEDED", job
    said = [json.loads(line["text"]) for line in server.lines(name) if line["text"].startswith("{")]
    kinds = Counter((one["kind"], one["task"]) for one in said)
    assert kinds == {("master", "master"): 1, ("worker", "worker"): 9, ("ps", "ps"): 3}
    asking = [one for one in said if one["task"] != "ps"]
    assert all(one["answers"] == ["ps 0", "ps 1", "ps 2"] for one in asking)
    assert all(one["args"] == ["--model-dir=gs://models/run-1", "--epochs=10"] for one in asking)


def test_the_page_of_the_guide_can_be_pasted(server: LiveServer, tmp_path: Path):
    first, second = blocks("containers.md")
    bash = Bash(server, tmp_path)
    done = bash(f"set -euo pipefail\n{first}\n{second}", PATIENCE)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    for rank in range(3):
        assert f"rank {rank} of 3 reaches workerpool0-0" in done.stdout


def test_an_image_that_nobody_has_fails_the_job_at_once_and_says_why(server: LiveServer):
    job = server.wait(server.submit(pools=[boxed("localhost/nobody-has-this:1")]))
    assert job["state"] == "JOB_STATE_FAILED"
    assert "localhost/nobody-has-this:1" in job["error"]["message"]
    assert "NO_SUCH_IMAGE" in job["error"]["message"]


def test_a_name_that_no_image_can_have_is_refused(server: LiveServer):
    for image in ("Not A Name", "gcr.io/UPPER/case", "trainshed/no-such-runtime"):
        body = {"displayName": "x", "jobSpec": {"workerPoolSpecs": [boxed(image)]}}
        answer = server.request("POST", JOBS, body)
        assert answer.status == 400
        assert image in answer.violations["job_spec.worker_pool_specs[0].container_spec.image_uri"]


def test_processes_and_containers_in_one_job_are_refused_with_what_to_do(server: LiveServer):
    body = {"displayName": "x", "jobSpec": {"workerPoolSpecs": [pool(["true"]), boxed(BASE, ("true",))]}}
    answer = server.request("POST", JOBS, body)
    assert answer.status == 400
    sentence = answer.violations["job_spec.worker_pool_specs"]
    assert "trainshed/python:3" in sentence and BASE in sentence and "Give every worker pool" in sentence


def test_metrics_of_containers_are_kept_as_those_of_processes(server: LiveServer):
    def kept() -> set[str]:
        return {one["name"] for one in server.get(f"/v1/{job}:metrics", window="60s").get("series", [])}

    job = server.submit(pools=[boxed(BASE, ("python", "-c", "while True: pass"))])
    until(lambda: kept() >= {"cpu", "memory", "disk_read", "disk_write", "network_in", "network_out"})
    server.cancel(job)
    assert server.wait(job)["state"] == "JOB_STATE_CANCELLED"


def test_a_server_killed_in_the_middle_finds_its_containers_again(images: Podman):
    waits = "import time, os\nprint('begun', flush=True)\ntime.sleep(float(os.environ['S']))\nprint('ended')"
    with live(images) as server:
        job = server.submit(pools=[boxed(BASE, ("python", "-c", waits), env={"S": "6"}, replicas=2)])
        until(lambda: len(tasks(server, job)) == 2)
        server.kill()
        server.start()
        done = server.wait(job, PATIENCE)
        assert done["state"] == "JOB_STATE_SUCCEEDED", done
        assert tasks(server, job) == {f"workerpool0-{index}": ["begun", "ended"] for index in range(2)}
        until(lambda: not own_containers(images, server))


def own_containers(podman: Podman, server: LiveServer) -> list[str]:
    home = (server.home / "containers" / "id").read_text()
    return list(podman.containers(f"trainshed-{home}-"))


@pytest.mark.fault(
    "Containers",
    "There is no container engine",
    "A job that needs one is refused, with where the server looked.",
    sentence="no engine answers at …",
)
def test_an_engine_that_comes_later_is_found_and_one_that_goes_away_is_waited_for(
    sentence: Sentence, images: Podman
):
    images.stop(signal.SIGTERM)
    try:
        with live(images) as server:
            until(lambda: "containers       none (no engine answers at" in server.said())
            refused = server.request(
                "POST", JOBS, {"displayName": "x", "jobSpec": {"workerPoolSpecs": [boxed(BASE, ("true",))]}}
            )
            assert refused.status == 400
            assert sentence.is_in(json.dumps(refused.violations))
            images.start()
            job = server.wait(server.submit(pools=[boxed(BASE, ("true",))]), PATIENCE)
            assert job["state"] == "JOB_STATE_SUCCEEDED", job
            images.stop(signal.SIGTERM)
            name = server.submit(pools=[boxed(BASE, ("true",))])
            assert "does not answer" in until(lambda: waiting(server, name))
            time.sleep(1)
            assert server.state(name) not in ("JOB_STATE_FAILED", "JOB_STATE_SUCCEEDED")
            server.kill()
            server.start()
            time.sleep(1)
            assert server.state(name) not in ("JOB_STATE_FAILED", "JOB_STATE_SUCCEEDED")
            images.start()
            job = server.wait(name, PATIENCE)
            assert job["state"] == "JOB_STATE_SUCCEEDED", job
    finally:
        if images.service is None:
            images.start()


def test_what_runs_while_neither_server_nor_engine_does_is_found_with_its_true_end(images: Podman):
    ends = "import sys, time\nprint('begun', flush=True)\ntime.sleep(4)\nprint('ended')\nsys.exit(3)"
    mark = uuid.uuid4().hex
    with live(images) as server:
        job = server.submit(pools=[boxed(BASE, ("python", "-c", ends, mark))])
        until(lambda: tasks(server, job))
        assert run_with(mark)
        server.kill()
        images.stop()
        try:
            server.start()
            assert server.state(job) not in ("JOB_STATE_FAILED", "JOB_STATE_SUCCEEDED")
            until(lambda: "jobs wait to be found again" in server.said())
            until(lambda: not run_with(mark))  # it ends, and nobody who is there could know
            assert server.state(job) not in ("JOB_STATE_FAILED", "JOB_STATE_SUCCEEDED")
        finally:
            images.start()
        done = server.wait(job, PATIENCE)
        assert done["state"] == "JOB_STATE_FAILED"
        assert "exited with code 3" in done["error"]["message"]
        assert tasks(server, job)["workerpool0-0"] == ["begun", "ended"]


def run_with(word: str) -> list[str]:
    """The programs with this word, those in containers too; who watches over a container is not one."""
    found: list[str] = []
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = one.read_bytes().decode(errors="replace").split("\0")
            if word in words and "conmon" not in words[0]:
                found.append(one.parent.name)
    return found


def waiting(server: LiveServer, name: str) -> str:
    """Why it waits, once that is the engine."""
    why = json.dumps(server.get(f"/v1/{name}:why"))
    return why if "engine" in why else ""
