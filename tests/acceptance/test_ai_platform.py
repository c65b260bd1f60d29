"""Jobs of the older API from their request to their end: a whole cluster, a staged package, a server killed.

The machine has a few CPUs, the largest tier 31 replicas: they all start, each with its share. The runtime is
stood in for by an empty one of the same name: what is shown is how a job gets there.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests import packages
from tests.live import IMAGE, PATIENCE, PROJECT, Answer, LiveServer, python, until

JOBS = f"/v1/projects/{PROJECT}/jobs"
ROOT = Path(__file__).parents[2]
TENSORFLOW = Path(os.environ.get("TENSORFLOW_PYTHON", ROOT / ".venv-tensorflow" / "bin" / "python"))
ROWS = """
[[runtimes]]
name = "trainshed/tensorflow"
version = "2.21.0"
google = ["tf", "tf2"]
"""
# Parameter servers never end by themselves, so they are ended once all others have: those wait for them here.
TELLS = """import json, os, sys, time
config = json.loads(os.environ["TF_CONFIG"])
said = {"task": config["task"], "cluster": {name: len(places) for name, places in config["cluster"].items()}}
print(json.dumps(said | {"argv": sys.argv[1:], "job": os.environ["CLOUD_ML_JOB_ID"]}), flush=True)
open(os.path.join(FOLDER, os.environ["TRAINSHED_TASK"]), "w").close()
while len(os.listdir(FOLDER)) < 31:
    time.sleep(0.05)
"""
GRACE = 240.0  # seconds: an environment is built, or four TensorFlows start at once
ROLES = [("master", 1), ("worker", 19), ("ps", 11)]
PREMIUM = [f"{role}-replica-{index}" for role, count in ROLES for index in range(count)]

pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    rows = tmp_path_factory.mktemp("rows") / "rows.toml"
    rows.write_text(ROWS)
    flags = ("--runtimes", str(rows), "--offline")
    with LiveServer(*flags, env={"PIP_CONFIG_FILE": os.devnull}) as live:
        yield live
        assert "Traceback" not in live.said(), live.said()


def submit(server: LiveServer, job: str, source: str = "pass", **training_input: object) -> str:
    """A job whose every replica runs a piece of Python, unless something else is said."""
    said: dict[str, object] = {"region": "asia-southeast1"}
    if "pythonModule" not in training_input:
        said["masterConfig"] = {"imageUri": IMAGE, "containerCommand": python(source)}
    server.post(JOBS, {"jobId": job, "trainingInput": said | training_input})
    return job


def ended(server: LiveServer, job: str) -> Any:
    deadline = time.monotonic() + GRACE
    while "endTime" not in (told := server.get(f"{JOBS}/{job}")):
        assert time.monotonic() < deadline, f"{job} did not end: {told}"
        time.sleep(0.2)
    return told


def said(server: LiveServer, job: str) -> dict[str, list[str]]:
    """What each task printed to its stdout, and the service's own lines."""
    found: dict[str, list[str]] = {}
    for entry in server.entries(f'resource.labels.job_id="{job}" AND severity!="ERROR"'):
        task = entry["resource"]["labels"]["task_name"]
        found.setdefault(task, []).append(entry["jsonPayload"]["message"])
    return found


def cli(server: LiveServer, *args: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "TRAINSHED_HOME": str(server.home), "TRAINSHED_PROJECT": PROJECT}
    words = [sys.executable, "-m", "trainshed.cli", *args]
    return subprocess.run(words, env=env, capture_output=True, text=True, timeout=PATIENCE * 2, check=False)


def put(server: LiveServer, uri: str, content: bytes) -> None:
    _, _, bucket, name = uri.split("/", 3)
    server.request("POST", f"/storage/v1/b?project={PROJECT}", {"name": bucket})
    path = f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name={quote(name, safe='')}"
    answer = server.request("POST", path, content, headers={"Content-Type": "application/gzip"})
    assert answer.status == 200, answer.body


def telling(folder: Path, source: str = TELLS) -> str:
    return f"FOLDER = {str(folder)!r}\n{source}"


def check_premium(told: dict[str, list[str]], job: str, first: str, argv: list[str]) -> None:
    """All 31 started, each knowing its role, its index and everybody else."""
    assert sorted(set(told) - {"service"}) == sorted(PREMIUM)
    for task in PREMIUM:
        role, _, index = task.rpartition("-replica-")
        (line,) = told[task]
        assert json.loads(line) == {
            "task": {"type": first if role == "master" else role, "index": int(index)},
            "cluster": {first: 1, "worker": 19, "ps": 11},
            "argv": argv,
            "job": job,
        }


def test_the_largest_tier_starts_all_of_its_31_tasks_on_a_small_machine(
    server: LiveServer, tmp_path: Path
) -> None:
    put(server, "gs://bucket/here", b"")
    job = submit(server, "premium", telling(tmp_path), scaleTier="PREMIUM_1", jobDir="gs://bucket/out")
    assert ended(server, job)["state"] == "SUCCEEDED"
    told = said(server, job)
    check_premium(told, job, "master", ["--job-dir", "gs://bucket/out"])
    assert any("larger than the machines here" in line for line in told["service"])


@pytest.mark.slow
def test_the_printed_command_runs_its_package_in_the_nearest_runtime(
    server: LiveServer, tmp_path: Path
) -> None:
    """Seed 001, as gcloud sends it once it has built and staged the package."""
    job = "my_job_20190531_164700"
    uri = f"gs://my-staging-bucket/{job}/0a1b2c/trainer-0.0.0.tar.gz"
    put(
        server, uri, packages.sdist(packages.files(version="0.0.0", task=telling(tmp_path)), "trainer-0.0.0/")
    )
    put(server, "gs://my-mnist-model-bucket/here", b"")
    extra = ["--my-extra-argument1", "foo", "--my-extra-argument2", "bar"]
    submit(
        server,
        job,
        scaleTier="PREMIUM_1",
        runtimeVersion="2.0",
        pythonVersion="3.5",
        packageUris=[uri],
        pythonModule="trainer.task",
        jobDir="gs://my-mnist-model-bucket/trained_model",
        args=extra,
        enableWebAccess=False,
    )
    done = ended(server, job)
    assert done["state"] == "SUCCEEDED", done
    told = said(server, job)
    check_premium(told, job, "chief", [*extra, "--job-dir", "gs://my-mnist-model-bucket/trained_model"])
    warnings = server.entries(f'resource.labels.job_id="{job}" AND severity=WARNING')
    texts = [one["jsonPayload"]["message"] for one in warnings]
    assert any("tensorflow 2.0; tensorflow 2.21.0 is here" in text for text in texts), texts
    assert any("Python 3.5; Python 3." in text for text in texts), texts


def test_our_own_commands_find_a_job_by_its_name_wherever_its_region_is(server: LiveServer) -> None:
    job = submit(server, "found_by_name", "print('here I am')", region="mars-north1")
    waited = cli(server, "wait", job)
    assert waited.returncode == 0, waited.stderr
    assert "here I am" in cli(server, "logs", job).stdout
    assert "SUCCEEDED" in cli(server, "show", job).stdout
    assert "SUCCEEDED" in cli(server, "why", job).stdout.upper()
    assert job in cli(server, "ls", "--all-locations").stdout
    assert job in cli(server, "ls", "--location", "mars-north1").stdout
    refused = cli(server, "cancel", job)
    assert refused.returncode == 1
    assert "can no longer be cancelled" in refused.stderr


def test_a_job_of_the_newer_api_in_another_location_is_not_cancelled_by_its_name(server: LiveServer) -> None:
    spec = {"workerPoolSpecs": [{"machineSpec": {"machineType": "n1-standard-4"}}]}
    spec["workerPoolSpecs"][0]["containerSpec"] = {  # type: ignore[assignment]
        "imageUri": IMAGE,
        "command": python("import time; time.sleep(600)"),
    }
    far = server.post(
        f"/v1/projects/{PROJECT}/locations/europe-west4/customJobs", {"displayName": "far", "jobSpec": spec}
    )
    try:
        assert "there is no job 'far'" in cli(server, "cancel", "far").stderr
    finally:
        server.cancel(far["name"])


def test_names_logs_and_labels_outlive_a_killed_server(server: LiveServer) -> None:
    mark = server.base / "go"
    source = (
        "import os, time\nprint('up', flush=True)\n"
        f"while not os.path.exists({str(mark)!r}): time.sleep(0.05)\n"
        "print('on')\n"
    )
    job = submit(server, "survivor", source, masterType="standard")
    until(lambda: server.get(f"{JOBS}/{job}")["state"] == "RUNNING")
    path = f"{JOBS}/{job}?updateMask=labels"
    assert server.request("PATCH", path, {"labels": {"kept": "yes"}}).status == 200
    server.kill()
    server.start()
    again = server.get(f"{JOBS}/{job}")
    assert (again["state"], again["labels"]) == ("RUNNING", {"kept": "yes"})
    taken = server.request(
        "POST", JOBS, {"jobId": job, "trainingInput": {"region": "r", "masterConfig": {"imageUri": IMAGE}}}
    )
    assert taken.status == 409
    mark.touch()
    assert ended(server, job)["state"] == "SUCCEEDED"
    assert said(server, job)["master-replica-0"] == ["up", "on"]


def test_no_acknowledged_name_is_lost_or_given_twice_when_the_server_is_killed(server: LiveServer) -> None:
    asked: list[str] = []
    acknowledged: dict[str, str] = {}

    def create(job: str) -> Answer:
        body = {"jobId": job, "trainingInput": {"region": "r", "masterConfig": {"imageUri": IMAGE}}}
        return server.request("POST", JOBS, body, headers={"Idempotency-Key": f"key of {job}"})

    def go_on(round: int) -> None:
        for number in range(500):
            job = f"named_{round}_{number}"
            asked.append(job)
            try:
                acknowledged[job] = create(job).json["createTime"]
            except (OSError, HTTPException):
                return

    for round in range(3):
        thread = threading.Thread(target=go_on, args=(round,))
        thread.start()
        until(lambda first=f"named_{round}_10": first in asked)
        server.kill()
        thread.join()
        server.start()
        for job in asked[-30:]:
            again = create(job)
            assert again.status == 200, again.body
            assert acknowledged.setdefault(job, again.json["createTime"]) == again.json["createTime"]
    for job in asked:
        assert server.get(f"{JOBS}/{job}")["createTime"] == acknowledged[job]


def test_labels_change_while_many_replicas_come_and_go(server: LiveServer) -> None:
    source = "import os\nos.kill(os.getpid(), 9) if os.environ['TRAINSHED_RESTART'] == '0' else None"
    job = submit(server, "busy", source, masterType="standard", workerType="standard", workerCount="5")
    for number in range(20):
        answer = server.request("PATCH", f"{JOBS}/{job}?updateMask=labels", {"labels": {"n": str(number)}})
        assert answer.status == 200, answer.body
        assert answer.json["labels"] == {"n": str(number)}
    assert ended(server, job)["state"] == "SUCCEEDED"
    assert server.get(f"{JOBS}/{job}")["labels"] == {"n": "19"}


RESOLVES = """import json, os, time
import tensorflow as tf
found = tf.distribute.cluster_resolver.TFConfigClusterResolver()
spec = found.cluster_spec().as_dict()
told = [found.task_type, found.task_id, {role: len(places) for role, places in spec.items()}]
print(json.dumps(told), flush=True)
open(os.path.join(FOLDER, os.environ["TRAINSHED_TASK"]), "w").close()
while len(os.listdir(FOLDER)) < 4:
    time.sleep(0.05)
"""
COORDINATES = """import json, os
import tensorflow as tf
found = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if found.task_type in ("worker", "ps"):
    server = tf.distribute.Server(
        found.cluster_spec(), job_name=found.task_type, task_index=found.task_id, protocol="grpc", start=True
    )
    server.join()
strategy = tf.distribute.ParameterServerStrategy(found)
with strategy.scope():
    total = tf.Variable(0.0)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)

@tf.function
def add():
    total.assign_add(1.0)

for _ in range(4):
    coordinator.schedule(add)
coordinator.join()
print("total", total.numpy())
"""


@pytest.mark.needs_tensorflow
@pytest.mark.slow
@pytest.mark.skipif(not TENSORFLOW.exists(), reason="needs TensorFlow in .venv-tensorflow (make tensorflow)")
class TestTensorFlow:
    def cluster(self, source: str, **more: object) -> dict[str, Any]:
        return {
            "masterType": "standard",
            "masterConfig": {"imageUri": IMAGE, "containerCommand": [str(TENSORFLOW), "-c", source]},
            "workerType": "standard",
            "workerCount": "2",
            "parameterServerType": "standard",
            "parameterServerCount": "1",
            **more,
        }

    @pytest.mark.parametrize("first", ["master", "chief"])
    def test_tensorflow_itself_reads_the_cluster(
        self, server: LiveServer, first: str, tmp_path: Path
    ) -> None:
        cluster = self.cluster(telling(tmp_path, RESOLVES), useChiefInTfConfig=first == "chief")
        job = submit(server, f"resolves_{first}", **cluster)
        assert ended(server, job)["state"] == "SUCCEEDED"
        told = {task: json.loads(lines[-1]) for task, lines in said(server, job).items() if task != "service"}
        sizes = {first: 1, "worker": 2, "ps": 1}
        assert told == {
            "master-replica-0": [first, 0, sizes],
            "worker-replica-0": ["worker", 0, sizes],
            "worker-replica-1": ["worker", 1, sizes],
            "ps-replica-0": ["ps", 0, sizes],
        }

    def test_a_parameter_server_strategy_starts_and_computes(self, server: LiveServer) -> None:
        cluster = self.cluster(COORDINATES, useChiefInTfConfig=True)
        job = submit(server, "coordinates", **cluster)
        done = ended(server, job)  # although its servers never end by themselves
        assert done["state"] == "SUCCEEDED", done
        assert said(server, job)["master-replica-0"][-1] == "total 4.0"
