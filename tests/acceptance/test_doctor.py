"""`trainshed doctor` on this machine and without a cluster: what it says, and its exit status."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.live import PATIENCE


def doctor(home: Path, *words: str, **env: str) -> "subprocess.CompletedProcess[str]":
    own = {name: value for name, value in os.environ.items() if not name.startswith("TRAINSHED_")}
    return subprocess.run(
        [sys.executable, "-P", "-m", "trainshed.cli", "doctor", *words],
        env={**own, "TRAINSHED_HOME": str(home), "TRAINSHED_ENGINE": "none", **env},
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )


def test_this_machine_is_looked_at_and_left_as_it_was(tmp_path: Path):
    home = tmp_path / "home"
    done = doctor(home, "--json", "--port", "0")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["fit"] is True
    seen = {row["what"]: row["grade"] for row in answer["findings"]}
    assert seen["home"] in ("ok", "warning") and seen["port"] == "ok"
    assert seen["engine"] == "warning"  # it is switched off
    assert {"compiler", "/gcs", "cgroups", "GPUs"} <= seen.keys()
    assert not home.exists()


def test_what_is_missing_is_said_with_what_mends_it_and_the_exit_status_is_1(tmp_path: Path):
    config = tmp_path / "kubeconfig"
    done = doctor(tmp_path / "home", "--kubernetes", "--kubeconfig", str(config))
    assert done.returncode == 1
    assert (
        f"missing  API: There is no Kubernetes configuration that can be used: Configuration file {config}"
        in (done.stdout)
    )
    assert "-> name one with --kubeconfig and --context" in done.stdout
    assert done.stdout.endswith("1 missing: jobs cannot run\n")


def test_a_database_and_a_registry_that_do_not_answer_are_missing_and_no_password_is_shown(tmp_path: Path):
    url = "postgresql://me:hidden@127.0.0.1:9/none"
    done = doctor(tmp_path, "--registry", "127.0.0.1:9", "--port", "0", TRAINSHED_DATABASE=url)
    assert done.returncode == 1
    assert "missing  database:" in done.stdout and "missing  registry: 127.0.0.1:9 cannot be" in done.stdout
    assert "hidden" not in done.stdout + done.stderr


@pytest.mark.parametrize("words", [["--image", "python:3"], ["--memory", "much"]])
def test_a_wrong_command_line_is_said_so(tmp_path: Path, words: list[str]):
    assert doctor(tmp_path, *words).returncode == 2
