"""Files for Kubeflow's operators and for JobSet on a live server: what they train really meets and ends."""

from collections.abc import Iterator
from pathlib import Path

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
print(f"rank {dist.get_rank()} of {dist.get_world_size()}: {total.item()}, {os.environ['WHO']}", flush=True)
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
        table = bash("trainshed get pytorchjobs").stdout.splitlines()[1].split()
        assert (table[0], table[2]) == ("adding", "Succeeded")
        assert "SUCCEEDED" in bash("trainshed describe pytorchjob/adding").stdout
        assert bash("trainshed apply -f job.yaml").stdout.startswith("pytorchjob/adding unchanged")
        assert bash("trainshed delete -f job.yaml").returncode == 0
        assert "no pytorchjobs were applied" in bash("trainshed get pytorchjobs").stderr
