"""`trainshed top`: the picture it draws, on a terminal and in a pipe."""

import json
import os
import pty
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.unit.client.scripted import Asked, Handler, Script
from trainshed.cli import top, words
from trainshed.cli.main import run

NAME = "projects/local/locations/us-central1/customJobs/71234"


def series(name: str, *values: float, task: str = "workerpool0-0") -> dict[str, Any]:
    return {
        "task": task,
        "name": name,
        "unit": "",
        "points": [[at, value] for at, value in enumerate(values)],
    }


JOB = {
    "name": NAME,
    "displayName": "digits",
    "state": "JOB_STATE_RUNNING",
    "series": [
        series("cpu", 0, 1, 1.5),
        series("memory", 209715200),
        series("gpu0", 0.5),
        series("gpu_memory0", 1073741824),
        series("cpu", 0.25, task="workerpool1-0"),
    ],
    "progress": {
        "task": "workerpool0-0",
        "step": 30,
        "total": 100,
        "fraction": 0.3,
        "timeLeft": "125.5s",
        "values": {"loss": 0.125, "bad": "NaN"},
    },
}


def answer(asked: Asked, handler: Handler) -> tuple[int, Any]:
    if asked.path.startswith("/v1/projects/local/locations/us-central1/customJobs:usage"):
        return 200, {"jobs": [JOB]}
    if ":metrics" in asked.path:
        return 200, {"series": JOB["series"], "progress": JOB["progress"]}
    return 200, {key: JOB[key] for key in ("name", "displayName", "state")}


@pytest.fixture
def environ(tmp_path: Path, script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("TRAINSHED_", "CLOUDSDK_", "GOOGLE_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TRAINSHED_HOME", str(tmp_path))
    monkeypatch.setenv("TRAINSHED_URL", script.url)
    monkeypatch.setenv("TRAINSHED_TOKEN", "secret")
    script.answer = answer


@pytest.mark.usefixtures("environ")
def test_every_replica_has_a_line_and_progress_stands_with_who_reported_it(
    capsys: pytest.CaptureFixture[str],
):
    assert run(["top"]) == 0
    out = capsys.readouterr().out
    head, first, second = out.splitlines()
    assert head.split()[:4] == ["JOB", "NAME", "REPLICA", "CPU"]
    for part in (
        "71234",
        "digits",
        "workerpool0-0",
        "1.50",
        "200 MiB",
        "50%",
        "1 GiB",
        "loss=0.125",
        "bad=NaN",
    ):
        assert part in first
    assert "30/100 (30%), 2m 6s left" in first
    assert "workerpool1-0" in second and "0.25" in second and "left" not in second
    assert "LAST MINUTE" not in out and "\x1b" not in out


@pytest.mark.usefixtures("environ")
def test_json_is_what_the_server_said(capsys: pytest.CaptureFixture[str], script: Script):
    assert run(["top", "71234", "--once", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"jobs": [JOB]}
    assert any(":metrics?window=60" in path for path in script.paths())


@pytest.mark.usefixtures("environ")
def test_a_server_on_which_nothing_runs_is_told_so(capsys: pytest.CaptureFixture[str], script: Script):
    script.answer = lambda asked, handler: (200, {"jobs": []})
    assert run(["top"]) == 0
    assert capsys.readouterr().out == "nothing runs\n"


@pytest.mark.usefixtures("environ")
def test_on_a_terminal_the_picture_is_drawn_again_and_again(script: Script):
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "trainshed.cli", "top", "--every", "0.2"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "COLUMNS": "200", "LINES": "20"},
    )
    os.close(theirs)
    seen, deadline = b"", time.monotonic() + 30
    while seen.count(b"71234") < 4 and time.monotonic() < deadline:
        seen += os.read(ours, 65536)
    child.terminate()
    child.wait(30)
    os.close(ours)
    assert seen.count(b"\x1b[H") >= 2
    assert top.BARS[-1].encode() in seen


def test_a_spark_reaches_from_nothing_to_the_most_there_was():
    assert top.spark([0, 1, 2, 4]) == "▁▂▄█"
    assert top.spark([0, 0]) == "▁▁"
    assert top.spark([]) == ""


@pytest.mark.parametrize(
    ("told", "text"),
    [
        ({}, ""),
        ({"step": 3}, "3"),
        ({"step": 3, "total": 4, "fraction": 0.75}, "3/4 (75%)"),
        ({"step": 2.5, "total": 4, "fraction": 0.625, "timeLeft": "0s"}, "2.5/4 (62%), 0s left"),
        ({"values": {"loss": 1}}, ""),
    ],
)
def test_progress_is_told_as_far_as_it_is_known(told: dict[str, Any], text: str):
    assert words.progress(told) == text
