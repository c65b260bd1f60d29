"""`submit --on-failure hold=TIME`: a failed replica is kept for a look, also by the next server."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live import LiveServer, until
from tests.shell import Shell

FAILS = """
import os, sys
open("note", "w").write("left by " + os.environ["WHO"])
open("/gcs/held/half", "w").write("in a bucket")
sys.exit("no luck")
"""


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "8", "--memory", "32GiB", "--engine", "none") as server:
        yield server


def test_a_failed_replica_is_held_looked_into_and_let_go(server: LiveServer, tmp_path: Path) -> None:
    shell = Shell(server, tmp_path)
    shell("trainshed storage buckets create gs://held")
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.py").write_text(FAILS)
    options = "--on-failure hold=10m --env WHO=me --env DATA=/gcs/held --detach"
    job = shell(f"cd code && trainshed submit train.py {options}").stdout.strip()

    def told() -> str:
        return shell(f"trainshed why {job}").stdout

    until(lambda: "HELD" in told())
    assert "exited with code 1" in told()
    assert f"trainshed shell {job}" in told()
    look = f"trainshed shell {job} -- sh -c 'cat note; echo; cat /gcs/held/half; ls /gcs'"
    assert shell(look).stdout.splitlines() == ["left by me", "in a bucketheld"]
    server.kill()
    server.start()
    assert "HELD" in told()
    assert shell(look).stdout.splitlines() == ["left by me", "in a bucketheld"]
    events = [one["reason"] for one in json.loads(shell(f"trainshed events {job} --json").stdout)]
    assert events.count("HELD") == 1
    assert shell(f"trainshed cancel {job}").returncode == 0
    waited = shell(f"trainshed wait {job}")
    assert waited.returncode == 1
    shown = shell(f"trainshed show {job}").stdout
    assert "FAILED" in shown and "no luck" in shown
    refused = shell(f"trainshed shell {job} -- true")
    assert refused.returncode != 0 and "is over" in refused.stderr
    assert shell("trainshed storage cat gs://held/half").stdout == "in a bucket"


def test_a_job_file_may_be_held_too_and_a_short_hold_ends_by_itself(
    server: LiveServer, tmp_path: Path
) -> None:
    shell = Shell(server, tmp_path)
    (tmp_path / "job.yaml").write_text(
        "scheduling: {timeout: 600s}\n"
        "worker_pool_specs:\n"
        "- machineSpec: {machineType: n1-standard-4}\n"
        "  replicaCount: 1\n"
        "  containerSpec: {imageUri: 'trainshed/python:3', command: [python, -c, 'raise SystemExit(4)']}\n"
    )
    done = shell("trainshed submit job.yaml --on-failure hold=5s --follow")
    assert done.returncode == 4, done.stderr
    assert "kept for a look" in done.stderr
    wrong = shell("trainshed submit job.yaml --on-failure keep")
    assert wrong.returncode == 2
    assert "'keep' is neither end nor hold=TIME" in wrong.stderr
