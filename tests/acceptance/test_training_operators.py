"""Files for Kubeflow's operators and for JobSet on a live server: what they train really meets and ends."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent

import pytest

from scripts import demo
from tests.live import IMAGE, PROJECT, LiveServer
from tests.shell import Shell

PATIENCE = 300  # three interpreters import a framework at once on whatever machine this is
NEEDS_TORCH = [
    pytest.mark.needs_torch,
    pytest.mark.slow,
    pytest.mark.timeout(PATIENCE + 60),
    pytest.mark.skipif(
        not demo.PYTHON.exists(), reason="PyTorch is not in .venv-train; `make demo-env` puts it there"
    ),
]

ADD_UP = """
import os
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
total = torch.tensor([10 ** dist.get_rank()])
dist.all_reduce(total)
line = f"rank {dist.get_rank()} of {dist.get_world_size()}: {total.item()}, {os.environ['WHO']}\\n"
os.write(1, line.encode())  # in one piece: processes of one replica share its output
dist.destroy_process_group()
"""
REPLICA = """
      replicas: {replicas}
      restartPolicy: Never
      template:
        spec:
          containers:
          - name: pytorch
            image: {image}
            command: [{python}, {file}]
            env:
            - name: WHO
              valueFrom: {{fieldRef: {{fieldPath: "metadata.labels['training.kubeflow.org/replica-type']"}}}}
            resources:
              limits: {{cpu: 500m, memory: 1Gi}}
"""
PYTORCH_JOB = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: adding
  namespace: kubeflow
spec:
  runPolicy:
    cleanPodPolicy: None
  pytorchReplicaSpecs:
    Master:{master}
    Worker:{worker}
"""

ELASTIC = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: elastic}}
spec:
  nprocPerNode: "1"
  elasticPolicy:
    rdzvBackend: c10d
    minReplicas: 2
    maxReplicas: 2
    maxRestarts: 1
    rdzvConf: [{{key: timeout, value: "120"}}]
  pytorchReplicaSpecs:
    Worker:
      replicas: 2
      restartPolicy: ExitCode
      template:
        spec:
          containers:
          - name: pytorch
            image: {image}
            command: [{torchrun}, {file}]
            env: [{{name: WHO, value: $(PET_NODE_RANK)}}]
            resources: {{limits: {{cpu: 1, memory: 1Gi}}}}
"""
TRAIN_JOB = """
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {{name: adding}}
spec:
  runtimeRef: {{name: torch-distributed}}
  trainer:
    image: {image}
    command: [{torchrun}, {file}]
    env:
    - name: WHO
      valueFrom: {{fieldRef: {{fieldPath: metadata.name}}}}
    numNodes: 2
    numProcPerNode: 2
    resourcesPerNode: {{limits: {{cpu: 1, memory: 2Gi}}}}
"""
DRIVER = """
import os, socket
server = socket.create_server(("", int(os.environ["MASTER_PORT"])))
told = []
while len(told) < 4:
    connection, _ = server.accept()
    told.append(connection.makefile().readline().strip())
    connection.close()
print("met", *sorted(told), flush=True)
"""
WORKER = """
import os, socket, time
place = os.environ["DRIVER"], int(os.environ["MASTER_PORT"])
for _ in range(600):
    try:
        connection = socket.create_connection(place, 5)
        break
    except ConnectionRefusedError:
        time.sleep(0.1)
connection.sendall(f"{os.environ['JOB']}.{os.environ['JOB_COMPLETION_INDEX']}\\n".encode())
if connection.recv(1) == b"":
    print("told", flush=True)
if os.environ["JOB"] == "1":
    time.sleep(1)  # the job is not over with its first replica
    print("late", flush=True)
"""
JOB_SET = """
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {{name: pair}}
spec:
  network: {{enableDNSHostnames: true, subdomain: meeting}}
  failurePolicy: {{maxRestarts: 1}}
  replicatedJobs:
  - name: driver
    template:
      spec:
        backoffLimit: 0
        template:
          spec:
            containers:
            - name: driver
              image: {image}
              command: [python, -c]
              args:
              - |
{driver}
              resources: {{limits: {{cpu: 500m, memory: 256Mi}}}}
  - name: workers
    replicas: 2
    template:
      spec:
        parallelism: 2
        completions: 2
        backoffLimit: 0
        template:
          spec:
            containers:
            - name: worker
              image: {image}
              command: [python, -c]
              args:
              - |
{worker}
              env:
              - {{name: DRIVER, value: {address}}}
              - name: JOB
                valueFrom: {{fieldRef: {{fieldPath: "metadata.labels['jobset.sigs.k8s.io/job-index']"}}}}
              resources: {{limits: {{cpu: 500m, memory: 256Mi}}}}
"""


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "16", "--memory", "64GiB") as live:
        yield live
        assert "Traceback" not in live.said(), live.said()


@pytest.fixture
def bash(server: LiveServer, tmp_path: Path) -> Shell:
    return Shell(server, tmp_path, {"TRAINSHED_PROJECT": PROJECT})


class TestAPyTorchJob:
    pytestmark = NEEDS_TORCH

    def test_its_master_and_workers_meet_by_their_variables(self, bash: Shell) -> None:
        program = bash.folder / "add_up.py"
        program.write_text(ADD_UP)
        words = {"image": IMAGE, "python": demo.PYTHON, "file": program}
        (bash.folder / "job.yaml").write_text(
            PYTORCH_JOB.format(
                master=REPLICA.format(replicas=1, **words), worker=REPLICA.format(replicas=2, **words)
            )
        )
        done = bash("trainshed apply -f job.yaml && trainshed wait pytorchjob/adding", PATIENCE)
        assert done.returncode == 0, (done.stdout, done.stderr, bash("trainshed logs adding").stdout)
        assert done.stdout.startswith("pytorchjob/adding created (job ")
        said = bash("trainshed logs pytorchjob/adding").stdout
        assert sorted(line.partition("rank ")[2] for line in said.splitlines() if "rank" in line) == [
            "0 of 3: 111, master",
            "1 of 3: 111, worker",
            "2 of 3: 111, worker",
        ]
        table = bash("trainshed get pytorchjobs adding").stdout.splitlines()[1].split()
        assert (table[0], table[2]) == ("adding", "Succeeded")
        assert "SUCCEEDED" in bash("trainshed describe pytorchjob/adding").stdout
        assert bash("trainshed apply -f job.yaml").stdout.startswith("pytorchjob/adding unchanged")
        assert bash("trainshed delete -f job.yaml").returncode == 0
        assert "there is no PyTorchJob 'adding'" in bash("trainshed get pytorchjobs adding").stderr

    def test_elastic_workers_meet_at_the_rendezvous_of_the_first(self, bash: Shell) -> None:
        program = bash.folder / "add_up.py"
        program.write_text(ADD_UP)
        words = {"image": IMAGE, "torchrun": demo.PYTHON.with_name("torchrun"), "file": program}
        (bash.folder / "job.yaml").write_text(ELASTIC.format(**words))
        done = bash("trainshed apply -f job.yaml && trainshed wait pytorchjob/elastic", PATIENCE)
        said = bash("trainshed logs pytorchjob/elastic").stdout
        assert done.returncode == 0, (done.stdout, done.stderr, said)
        ranks = [line.partition("rank ")[2] for line in said.splitlines() if " of 2: " in line]
        assert sorted(rank.partition(",")[0] for rank in ranks) == ["0 of 2: 11", "1 of 2: 11"]
        assert sorted(rank.partition(", ")[2] for rank in ranks) == ["0", "1"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: elsewhere processes find no names of replicas")
def test_the_jobs_of_a_set_reach_each_other_by_name_and_all_must_end_well(bash: Shell) -> None:
    words = {"image": IMAGE, "driver": indent(DRIVER, " " * 16), "worker": indent(WORKER, " " * 16)}
    (bash.folder / "set.yaml").write_text(JOB_SET.format(address="pair-driver-0-0.meeting", **words))
    done = bash("trainshed apply -f set.yaml && trainshed wait jobset/pair")
    said = bash("trainshed logs jobset/pair; trainshed events jobset/pair").stdout
    assert done.returncode == 0, (done.stdout, done.stderr, said)
    assert "met 0.0 0.1 1.0 1.1" in said
    assert (said.count("told"), said.count("late")) == (4, 2)
    found = json.loads(bash("trainshed get jobset pair --json").stdout)
    assert (found["kind"], found["job"]["state"]) == ("JobSet", "JOB_STATE_SUCCEEDED")
    assert bash("trainshed get js -o name").stdout == "jobset/pair\n"
    assert bash("trainshed delete -f set.yaml").returncode == 0


class TestATrainJob:
    pytestmark = NEEDS_TORCH

    def test_torchrun_starts_the_processes_of_all_nodes_by_its_variables(self, bash: Shell) -> None:
        program = bash.folder / "add_up.py"
        program.write_text(ADD_UP)
        torchrun = demo.PYTHON.with_name("torchrun")
        words = {"image": IMAGE, "torchrun": torchrun, "file": program}
        (bash.folder / "job.yaml").write_text(TRAIN_JOB.format(**words))
        done = bash("trainshed apply -f job.yaml && trainshed wait trainjob/adding", PATIENCE)
        said = bash("trainshed logs trainjob/adding").stdout
        assert done.returncode == 0, (done.stdout, done.stderr, said)
        assert sorted(line.partition("rank ")[2] for line in said.splitlines() if "rank " in line) == [
            f"{rank} of 4: 1111, adding-node-0-{rank // 2}" for rank in range(4)
        ]
        assert bash("trainshed get trainjobs -o name").stdout == "trainjob/adding\n"
        assert bash("trainshed delete trainjob/adding").returncode == 0


def test_a_job_of_a_manifest_that_is_retried_tells_its_replicas_the_same_again(bash: Shell) -> None:
    worker = {"image": IMAGE, "command": ["python", "-c", "import sys; print(*sys.argv[1:])"]}
    worker |= {"name": "pytorch", "args": ["$(RANK)", "of", "$(WORLD_SIZE)", "$$(RANK)"]}
    replica = {"replicas": 2, "template": {"spec": {"containers": [worker]}}}
    job = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "twice"},
        "spec": {"pytorchReplicaSpecs": {"Worker": replica}},
    }
    (bash.folder / "job.json").write_text(json.dumps(job))
    done = bash("trainshed apply -f job.json && trainshed wait twice && trainshed retry pytorchjob/twice -f")
    assert done.returncode == 0, done.stderr
    for said in (done.stdout, bash("trainshed logs pytorchjob/twice").stdout):
        assert "0 of 2 $(RANK)" in said
        assert "1 of 2 $(RANK)" in said
    assert bash("trainshed apply -f job.json").stdout.startswith("pytorchjob/twice unchanged")
