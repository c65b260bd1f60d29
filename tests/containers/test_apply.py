"""Kubernetes' manifests in containers, as printed and as people write them; applied, looked at, run once."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent

import pytest

from tests.acceptance.test_training_operators import DRIVER, JOB_SET, WORKER
from tests.containers.engine import Podman
from tests.containers.engine_images import BASE
from tests.containers.registry import Registry
from tests.live import IMAGE, LiveServer
from tests.shell import Shell

pytestmark = [pytest.mark.containers, pytest.mark.timeout(400)]

PRINTED = Path(__file__).parents[1] / "acceptance" / "seed_003"
TRAINER = "registry-vpc.cn-zhangjiakou.aliyuncs.com/eci/tensorflow:1.0"
SCRIPT = "models/tutorials/image/imagenet/classify_image.py"
BUILD = f"""FROM {BASE}
WORKDIR /work
RUN mkdir -p {Path(SCRIPT).parent} && echo 'print("giant panda (score = 0.89)")' > {SCRIPT}
"""

JOB = f"""
apiVersion: batch/v1
kind: Job
metadata:
  name: many
spec:
  parallelism: 2
  completions: 2
  completionMode: Indexed
  backoffLimit: 3
  template:
    spec:
      containers:
      - name: main
        image: {BASE}
        command: [python, -c]
        args:
        - |
          import os, sys
          memory = [open(p).read() for p in ("/sys/fs/cgroup/memory.max",
                    "/sys/fs/cgroup/memory/memory.limit_in_bytes") if os.path.exists(p)][0]
          open("/cache/x", "w").write("x")
          me = os.environ["JOB_COMPLETION_INDEX"], os.environ["WHO"]
          print(*me, int(memory) >> 20, os.listdir("/cache"))
          sys.exit(7 if os.environ["TRAINSHED_RESTART"] == "0" else 0)
        env:
        - name: NAME
          value: digits
        - name: WHO
          value: $(NAME)-of-many
        resources:
          limits:
            cpu: 500m
            memory: 192Mi
        volumeMounts:
        - name: cache
          mountPath: /cache
      volumes:
      - name: cache
        emptyDir: {{}}
      restartPolicy: OnFailure
"""


@pytest.fixture(scope="module")
def server(podman: Podman) -> Iterator[LiveServer]:
    podman.run("build", "--tag", TRAINER, "-", feed=BUILD.encode())
    with LiveServer("--engine", str(podman.socket), "--subnets", podman.subnets) as live:
        yield live
        assert "Traceback" not in live.said(), live.said()


@pytest.fixture
def shell(server: LiveServer, tmp_path: Path) -> Shell:
    for one in PRINTED.iterdir():
        (tmp_path / one.name).write_bytes(one.read_bytes())
    return Shell(server, tmp_path)


def without_nfs(text: str) -> str:
    """The printed Pod less its volume: there is no such server here."""
    lines = text.splitlines()
    cut = [n for n, line in enumerate(lines) if line.strip() in ("volumeMounts:", "volumes:")]
    gone = {*range(cut[0], cut[0] + 3), *range(cut[1], cut[1] + 5)}
    return "\n".join(line for n, line in enumerate(lines) if n not in gone) + "\n"


def test_the_printed_cache_and_pod_are_applied_and_the_pod_runs_from_the_cache(shell: Shell):
    made = shell("trainshed apply -f imagecache.yaml")
    assert (made.returncode, made.stdout) == (0, "imagecache/tensorflow created\n"), made.stderr
    assert "the indentation of lines 4, 6-7 was repaired" in made.stderr
    ready = shell(
        "for i in $(seq 200); do trainshed get imagecache tensorflow --json | grep -q READY && break; "
        "sleep 0.1; done; trainshed get imagecaches"
    )
    assert "tensorflow  READY" in ready.stdout, ready
    assert "100%" in ready.stdout

    (shell.folder / "pod.yaml").write_text(without_nfs((PRINTED / "gpu_pod.yaml").read_text()))
    done = shell("trainshed apply -f pod.yaml && trainshed wait tensorflow", 180)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert done.stdout.startswith("pod/tensorflow created (job ")
    assert "the indentation of lines" in done.stderr
    told = shell("trainshed get pods; for look in logs events show; do trainshed $look tensorflow; done")
    assert "giant panda (score = 0.89)" in told.stdout
    assert "tensorflow  1/1    Succeeded" in told.stdout.replace("0/1", "1/1")
    assert f"Image cache tensorflow has {TRAINER}." in told.stdout
    assert "NVIDIA_TESLA_P4" in told.stdout


def test_the_printed_pod_as_it_stands_is_a_job_with_its_folder_of_the_file_server(shell: Shell):
    told = shell("trainshed apply -f gpu_pod.yaml --dry-run --json")
    assert told.returncode == 0, told.stderr
    ((answer,)) = json.loads(told.stdout)
    (pool,) = answer["customJob"]["jobSpec"]["workerPoolSpecs"]
    assert answer["outcome"] in ("DRY_RUN", "UNCHANGED")
    assert pool["nfsMounts"][0]["mountPoint"] == "/tmp/imagenet"
    assert pool["containerSpec"]["imageUri"] == TRAINER


def test_a_job_gets_its_limits_scratch_variables_and_restarts(shell: Shell):
    (shell.folder / "job.yaml").write_text(JOB)
    done = shell("trainshed apply -f job.yaml && trainshed wait many", 240)
    assert done.returncode == 0, (done.stdout, done.stderr)
    told = shell("trainshed logs many")
    for index in "01":
        assert told.stdout.count(f"{index} digits-of-many 192 ['x']") == 2, told.stdout
    table = shell("trainshed get jobs many").stdout.splitlines()[1].split()
    assert (table[0], table[2], table[3]) == ("many", "Succeeded", "2"), table


def test_applied_again_it_runs_once_across_a_kill_of_the_server(server: LiveServer, shell: Shell):
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "once"},
        "spec": {
            "containers": [{"name": "c", "image": BASE, "command": ["sh", "-c", "echo begun; sleep 30"]}],
            "restartPolicy": "Never",
        },
    }
    (shell.folder / "once.json").write_text(json.dumps(pod))
    first = shell("trainshed apply -f once.json")
    assert first.returncode == 0, first.stderr
    server.kill()
    server.start()
    again = shell("trainshed apply -f once.json")
    assert "pod/once unchanged: it is" in again.stdout, (again.stdout, again.stderr)
    pod["spec"] = {**pod["spec"], "activeDeadlineSeconds": 60}  # type: ignore[dict-item]
    (shell.folder / "once.json").write_text(json.dumps(pod))
    changed = shell("trainshed apply -f once.json")
    assert changed.returncode == 1
    assert "asks for something else now" in changed.stderr
    shell("trainshed cancel once && trainshed wait once", 120)
    after = shell("trainshed apply -f once.json")
    created = re.fullmatch(r"pod/once created \(job (\d+)\)\n", after.stdout)
    assert created, after
    # By its id: two jobs bear the name now. Left running, it would hold what later tests wait for.
    gone = shell(f"trainshed cancel {created[1]} && trainshed wait {created[1]}", 120)
    assert "CANCELLED" in gone.stdout, gone
    listed = shell("trainshed ls --filter 'display_name=\"once\"' --json")
    assert len(json.loads(listed.stdout)) == 2


def test_of_several_documents_none_is_applied_where_one_is_wrong(shell: Shell):
    good = "apiVersion: v1\nkind: Pod\nmetadata: {name: never}\nspec: {containers: [{name: c, image: x}]}\n"
    bad = good.replace("never", "Bad").replace("image: x", "image: x, privileged: true")
    (shell.folder / "both.yaml").write_text(f"{good}---\n{bad}")
    done = shell("trainshed apply -f both.yaml; trainshed get pods never")
    assert "both.yaml:8: metadata.name" in done.stderr
    assert "both.yaml:9: spec.containers[0].privileged" in done.stderr
    assert "there is no Pod 'never'" in done.stderr


@pytest.mark.parametrize("page", ["kubernetes-files.md", "image-caches.md"])
def test_the_pages_of_the_guide_work_as_printed(shell: Shell, page: str):
    text = (Path(__file__).parents[2] / "docs" / "guide" / page).read_text()
    for block in re.findall(r"^```sh\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        done = shell(f"set -euo pipefail\n{block}", 180)
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"


def test_a_volume_for_a_process_is_told_not_to_be_had(shell: Shell):
    text = JOB.replace(BASE, IMAGE).replace("name: many", "name: process", 1)
    (shell.folder / "job.yaml").write_text(text)
    done = shell("trainshed apply -f job.yaml && trainshed wait process")
    assert done.returncode == 1
    assert "a process has its machine's folders" in shell("trainshed show process").stdout


def test_an_image_comes_by_file_goes_to_the_registry_and_its_job_file_runs(shell: Shell, registry: Registry):
    """As the guide to training on a cluster has it, with its names of variables."""
    image = registry.image("kubejob/single-train:1")
    source = "import os; print('training on', os.environ['endpoint_url'], os.environ['datasetsbucket'])"
    (shell.folder / "train.py").write_text(source)
    (shell.folder / "Dockerfile").write_text(f"FROM {BASE}\nCOPY train.py /app/train.py\nWORKDIR /app\n")
    (shell.folder / "job.yaml").write_text(
        f"""apiVersion: batch/v1
kind: Job
metadata:
  name: single-train
spec:
  template:
    spec:
      containers:
      - name: single-train
        image: {image}
        imagePullPolicy: Always
        command: ["python", "train.py"]
        env:
        - name: endpoint_url
          value: "http://minio:9000"
        - name: datasetsbucket
          value: datasets
      restartPolicy: Never
  backoffLimit: 4
"""
    )
    done = shell(
        f"""set -euo pipefail
        trainshed images build -t single-train:1 .
        trainshed images save single-train:1 -o image.tar
        trainshed images rm single-train:1
        trainshed images load -i image.tar
        trainshed images tag single-train:1 {image}
        trainshed images push {image}
        trainshed images rm single-train:1 {image}
        trainshed apply -f job.yaml
        trainshed wait single-train
        trainshed logs single-train
        """,
        240,
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert "training on http://minio:9000 datasets" in done.stdout
    assert "containers[0].imagePullPolicy is ignored" in done.stderr


def test_the_jobs_of_a_set_reach_each_other_by_name_in_containers(shell: Shell):
    words = {"image": BASE, "driver": indent(DRIVER, " " * 16), "worker": indent(WORKER, " " * 16)}
    address = "pair-driver-0-0.meeting.default.svc.cluster.local"
    (shell.folder / "set.yaml").write_text(JOB_SET.format(address=address, **words))
    done = shell("trainshed apply -f set.yaml && trainshed wait jobset/pair", 240)
    said = shell("trainshed logs jobset/pair").stdout
    assert done.returncode == 0, (done.stdout, done.stderr, said)
    assert "met 0.0 0.1 1.0 1.1" in said
    assert (said.count("told"), said.count("late")) == (4, 2)
