"""`scripts/cluster` says in a sentence why a machine cannot have a cluster, with an exit code of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kubernetes.cluster import SCRIPT
from tests.live import PATIENCE

CANNOT = 3
SYSTEM_PYTHON = "/usr/bin/python3"  # that of the environment may be in a folder of root


def run(*words: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    return finish([sys.executable, str(SCRIPT), *words], variables)


def finish(words: list[str], variables: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        words, env=os.environ | variables, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


def test_without_programs_it_says_how_to_get_them(tmp_path: Path):
    done = run("check", TRAINSHED_KUBERNETES_CACHE=str(tmp_path / "none"))
    if "make cluster" not in done.stderr:
        pytest.skip(done.stderr)  # something else is missing here
    assert done.returncode == CANNOT
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("command", ["check", "up", "down"])
def test_nobody_but_root_has_clusters(command: str):
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", SYSTEM_PYTHON]
    if finish([*nobody, "-c", f"import dataclasses, sys; open({str(SCRIPT)!r})"], {}).returncode != 0:
        pytest.skip(f"others cannot run {SYSTEM_PYTHON}, or not read {SCRIPT}")
    done = finish([*nobody, str(SCRIPT), command], {})
    assert (done.returncode, "root" in done.stderr) == (CANNOT, True), done.stderr


def test_commands_on_a_cluster_that_was_never_started_say_so(tmp_path: Path):
    done = run("--folder", str(tmp_path / "none"), "status")
    assert done.returncode == 1
    assert "scripts/cluster up" in done.stderr
