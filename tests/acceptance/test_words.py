"""What people type who come from elsewhere, on a live server: notebooks, short names, words of kubectl."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live import PROJECT, LiveServer
from tests.shell import Shell

POD = """apiVersion: v1
kind: Pod
metadata: {name: hello}
spec:
  containers:
  - {name: hello, image: "trainshed/python:3", command: [python, -c, "import time; time.sleep(600)"]}
  restartPolicy: Never
"""


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "8", "--memory", "32GiB") as live:
        yield live


@pytest.fixture
def bash(server: LiveServer, tmp_path: Path) -> Shell:
    (tmp_path / "project").mkdir()
    return Shell(server, tmp_path / "project", {"TRAINSHED_PROJECT": PROJECT, "HOME": str(tmp_path)})


def test_a_notebook_runs_as_a_job_and_names_the_cell_that_fails(bash: Shell) -> None:
    cells = [{"cell_type": "code", "source": text} for text in ("x = 1\nprint('x is', x)", "1 / (x - 1)")]
    (bash.folder / "train.ipynb").write_text(json.dumps({"nbformat": 4, "metadata": {}, "cells": cells}))
    (bash.folder / "requirements.txt").write_text("numpy\n")
    done = bash("trainshed submit train.ipynb")
    assert done.returncode == 1
    assert "x is 1" in done.stdout
    assert 'File "train.ipynb, cell 2", line 1' in done.stdout + done.stderr
    assert (
        "requirements.txt is not installed; have it so with: --requirements requirements.txt" in done.stderr
    )


def test_a_gpu_is_asked_for_by_number_or_by_a_short_name(bash: Shell) -> None:
    (bash.folder / "train.py").write_text("print('trained')")
    for said, kind, count in (
        ("1", "", "1"),
        ("H200", "NVIDIA_H200_141GB", "1"),
        ("A100:2", "NVIDIA_TESLA_A100", "2"),
    ):
        done = bash(f"trainshed submit train.py --gpu {said} --detach")
        assert done.returncode == 0, done.stderr
        job = bash.server.get(f"/v1/projects/{PROJECT}/locations/-/customJobs/{done.stdout.strip()}")
        machine = job["jobSpec"]["workerPoolSpecs"][0]["machineSpec"]
        assert machine["acceleratorCount"] == int(count)
        assert machine["acceleratorType"] == kind or not kind
    done = bash("trainshed submit train.py --gpu 1 --machine a2-highgpu-1g --dry-run")
    assert done.returncode == 0, done.stderr


def test_what_a_manifest_made_is_created_described_and_deleted_as_with_kubectl(bash: Shell) -> None:
    (bash.folder / "pod.yaml").write_text(POD)
    assert bash("trainshed create -f pod.yaml").stdout.startswith("pod/hello created")
    assert bash("trainshed get pods -o name").stdout == "pod/hello\n"
    assert "displayName: hello" in bash("trainshed get pod hello -o yaml").stdout
    assert "hello" in bash("trainshed describe pod hello").stdout
    assert "hello" in bash("trainshed status").stdout
    done = bash("trainshed delete -f pod.yaml")
    assert done.stdout.startswith("deleted "), done.stderr
    done = bash("trainshed delete -f pod.yaml")
    assert (done.returncode, "there is no Pod 'hello'" in done.stderr) == (1, True)
