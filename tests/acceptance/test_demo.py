"""What people train with starts from the environment of a replica, unchanged: PyTorch and TensorFlow.

A live server runs the job of `make demo` and two more. Each framework has an environment of its own, because
the server's has none; where it is not there the test is skipped with the command that makes it.
"""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts import demo
from tests.live import JOBS, LiveServer, pool

PATIENCE = 300  # three interpreters import a framework at once on whatever machine this is
TENSORFLOW = Path(os.environ.get("TENSORFLOW_PYTHON", demo.ROOT / ".venv-tensorflow" / "bin" / "python"))

needs_torch = [
    pytest.mark.needs_torch,
    pytest.mark.slow,
    pytest.mark.timeout(PATIENCE + 60),
    pytest.mark.skipif(
        not demo.PYTHON.exists(), reason="PyTorch is not in .venv-train; `make demo-env` puts it there"
    ),
]

needs_tensorflow = [
    pytest.mark.slow,
    pytest.mark.timeout(PATIENCE + 60),
    pytest.mark.skipif(
        not TENSORFLOW.exists(),
        reason="TensorFlow is not in .venv-tensorflow; make it with: "
        "python3 -m venv .venv-tensorflow && .venv-tensorflow/bin/pip install tensorflow",
    ),
]

# As the guide prints it, but for the backend (there may be no GPU) and the line that picks a CUDA device.
SETUP_DISTRIBUTED = """
import os
import torch
import torch.distributed as dist

def setup_distributed():
    rank = int(os.environ.get('CLOUD_ML_HP_TUNING_RANK', 0))
    world_size = int(os.environ.get('CLOUD_ML_HP_TUNING_WORLD_SIZE', 1))

    dist.init_process_group(
        backend='gloo',
        init_method='env://',
        world_size=world_size,
        rank=rank
    )

    local_rank = int(os.environ.get('LOCAL_RANK', 0))

    return rank, world_size, local_rank

rank, world_size, local_rank = setup_distributed()
total = torch.tensor([10.0 ** rank])
dist.all_reduce(total)
print(f"rank {rank} of {world_size}, local {local_rank}: {total.item():.0f}")
dist.destroy_process_group()
"""

LOOK_AT_MODEL = """
import json, sys, torch
kept = torch.load(sys.argv[1], weights_only=True)
shapes = {name: list(values.shape) for name, values in kept["state_dict"].items()}
print(json.dumps({"accuracy": kept["accuracy"], "shapes": shapes}))
"""


@pytest.fixture
def server() -> Iterator[LiveServer]:
    with LiveServer() as running:
        yield running


def texts(server: LiveServer, job: str) -> dict[str, list[str]]:
    """What each replica printed."""
    found: dict[str, list[str]] = {}
    for line in server.lines(job):
        found.setdefault(line["task"], []).append(line["text"])
    return found


def succeed(server: LiveServer, job: str) -> dict[str, list[str]]:
    done: Any = server.wait(job, PATIENCE)
    said = texts(server, job)
    assert done["state"] == "JOB_STATE_SUCCEEDED", f"{done.get('error')}\n{json.dumps(said, indent=1)}"
    return said


class TestTheDemosJob:
    pytestmark = needs_torch

    def test_three_replicas_train_one_model_that_reads_digits(
        self, server: LiveServer, tmp_path: Path
    ) -> None:
        body = yaml.safe_load(demo.rendered(demo.PYTHON, tmp_path))
        job = str(server.post(JOBS, body)["name"])
        said = succeed(server, job)
        assert sorted(said) == ["workerpool0-0", "workerpool1-0", "workerpool1-1"]
        assert {lines[0].split(":")[0] for lines in said.values()} == {f"rank {n} of 3" for n in range(3)}
        looked = subprocess.run(
            [demo.PYTHON, "-c", LOOK_AT_MODEL, tmp_path / "model" / "model.pt"],
            capture_output=True,
            text=True,
            check=True,
        )
        kept = json.loads(looked.stdout)
        assert kept["shapes"] == {
            "0.weight": [128, 64],
            "0.bias": [128],
            "2.weight": [64, 128],
            "2.bias": [64],
            "4.weight": [10, 64],
            "4.bias": [10],
        }
        assert kept["accuracy"] > 0.9
        assert f"accuracy: {kept['accuracy']:.4f} on 450 held-out pictures" in said["workerpool0-0"]


class TestTheGuidesSetupDistributed:
    pytestmark = needs_torch

    def test_ranks_meet_and_add_up_over_gloo(self, server: LiveServer) -> None:
        command = [str(demo.PYTHON), "-c", SETUP_DISTRIBUTED]
        job = server.submit(pools=[pool(command), pool(command, replicas=2)])
        said = succeed(server, job)
        assert said == {
            "workerpool0-0": ["rank 0 of 3, local 0: 111"],
            "workerpool1-0": ["rank 1 of 3, local 0: 111"],
            "workerpool1-1": ["rank 2 of 3, local 0: 111"],
        }


class TestTensorFlow:
    pytestmark = needs_tensorflow

    def test_multi_worker_mirrored_strategy_starts_from_tf_config(self, server: LiveServer) -> None:
        command = [str(TENSORFLOW), str(demo.ROOT / "examples" / "tensorflow" / "train.py")]
        quiet = {"TF_CPP_MIN_LOG_LEVEL": "2"}
        job = server.submit(pools=[pool(command, env=quiet), pool(command, replicas=2, env=quiet)])
        said = succeed(server, job)
        for task, role in (
            ("workerpool0-0", "chief 0"),
            ("workerpool1-0", "worker 0"),
            ("workerpool1-1", "worker 1"),
        ):
            assert f"{role}: 3 replicas in sync" in said[task]
            learnt = re.search(r"slope (\S+) offset (\S+)", "\n".join(said[task]))
            assert learnt is not None
            assert float(learnt[1]) == pytest.approx(3, abs=0.05)
            assert float(learnt[2]) == pytest.approx(-1, abs=0.05)
