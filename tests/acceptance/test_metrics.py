"""Metrics of real programs on a real server: what they use, what they report, who may read it."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live import JOBS, PATIENCE, LiveServer, pool, python, until
from trainshed import report

BURN = "while True: pass"
HOLD = "import time\nmemory = bytearray(200_000_000)\ntime.sleep(1000)"
BY_CHILDREN = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', {!r}])"
STEPS = """
import time
from trainshed import report
for step in range(1, 1001):
    report.step(step, total=1000, loss=1 / step)
    time.sleep(0.05)
"""
SHORT = """
from trainshed import report
for step in range(1, 11):
    report.step(step, total=10, loss=1 / step)
"""
LINE = re.compile(
    r"# (HELP|TYPE) [a-z_]+ .+"
    r'|[a-z_]+(\{[a-z_]+="([^"\\\n]|\\.)*"(,[a-z_]+="([^"\\\n]|\\.)*")*\})? (NaN|[+-]Inf|[-+0-9.e]+)'
)


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "64", "--memory", "200GiB") as server:
        yield server


def metrics(server: LiveServer, job: str, **query: str) -> Any:
    return server.get(f"/v1/{job}:metrics", **query)


def points(told: Any, name: str, task: str = "workerpool0-0") -> list[float]:
    return [
        point[1]
        for one in told["series"]
        if (one["task"], one["name"]) == (task, name)
        for point in one["points"]
    ]


def settled(server: LiveServer, job: str, name: str, least: float) -> list[float]:
    """The points of a series once one reaches what is expected."""

    def ask() -> list[float]:
        found = points(metrics(server, job, window="600s"), name)
        return found if found and max(found) >= least else []

    return until(ask)


@pytest.mark.parametrize("source", [BURN, BY_CHILDREN.format(BURN)], ids=["itself", "its child"])
def test_a_program_that_burns_a_core_is_seen_to(server: LiveServer, source: str) -> None:
    job = server.submit(python(source))
    try:
        found = settled(server, job, "cpu", 0.5)  # others want the cores of this machine too
        assert max(found) < 1.3
    finally:
        server.cancel(job)


@pytest.mark.parametrize("source", [HOLD, BY_CHILDREN.format(HOLD)], ids=["itself", "its child"])
def test_a_program_that_holds_memory_is_seen_to(server: LiveServer, source: str) -> None:
    job = server.submit(python(source))
    try:
        found = settled(server, job, "memory", 200_000_000)
        assert max(found) < 300_000_000
    finally:
        server.cancel(job)


def test_what_a_program_reports_is_there_while_it_runs_and_after(server: LiveServer) -> None:
    job = server.submit(python(STEPS), name="steps")
    try:
        told = until(lambda: metrics(server, job)["progress"])
        assert told["total"] == 1000
        assert 0 < told["step"] < 1000
        assert told["values"]["loss"] == pytest.approx(1 / told["step"])
        until(lambda: metrics(server, job)["progress"].get("timeLeft"))
        [row] = [one for one in server.get(JOBS, view="trainshed")["customJobs"] if one["name"] == job]
        assert row["progress"]["total"] == 1000
        [row] = [one for one in server.get(JOBS)["customJobs"] if one["name"] == job]
        assert "progress" not in row  # Google's own clients know no such field
        [row] = [one for one in server.get(f"{JOBS}:usage")["jobs"] if one["name"] == job]
        assert points(row, "memory")
    finally:
        server.cancel(job)
    server.wait(job)
    last = metrics(server, job)["progress"]["step"]
    assert last >= told["step"]
    assert last in points(metrics(server, job), "step")


@pytest.mark.parametrize(
    "source", [SHORT, "for step in range(1, 11): print(f'TRAINSHED_STEP {step}/10 loss={1 / step}')"]
)
def test_the_last_step_of_a_short_program_is_known_at_once(server: LiveServer, source: str) -> None:
    job = server.submit(python(source))
    assert server.wait(job)["state"] == "JOB_STATE_SUCCEEDED"
    told = metrics(server, job)["progress"]
    assert (told["step"], told["total"], told["fraction"]) == (10, 10, 1)
    assert told["values"] == {"loss": 0.1}


def test_the_module_works_when_only_its_file_is_copied(server: LiveServer, tmp_path: Path) -> None:
    shutil.copy(report.__file__, tmp_path / "report.py")
    source = SHORT.replace(
        "from trainshed import report", f"import sys; sys.path[:0] = [{str(tmp_path)!r}]; import report"
    )
    job = server.submit(python(source))
    assert server.wait(job)["state"] == "JOB_STATE_SUCCEEDED"
    assert metrics(server, job)["progress"]["step"] == 10


def test_metrics_outlive_a_killed_server_and_go_with_their_job(server: LiveServer) -> None:
    job = server.submit(python(STEPS))
    before = settled(server, job, "memory", 1)
    server.kill()
    server.start()
    until(lambda: len(points(metrics(server, job), "memory")) > len(before))
    assert points(metrics(server, job), "memory")[: len(before)] == before
    server.cancel(job)
    server.wait(job)
    folder = server.home / "metrics" / job.rsplit("/", 1)[-1]
    assert folder.exists()
    assert server.request("DELETE", f"/v1/{job}").status == 200
    until(lambda: not folder.exists())


def test_a_window_and_a_step_are_kept_to_and_nonsense_is_refused(server: LiveServer) -> None:
    job = server.submit(python(SHORT))
    server.wait(job)
    coarse = metrics(server, job, window="3600s", step="3600s")
    assert all(len(one["points"]) <= 2 for one in coarse["series"])
    for query in ("window=0s", "window=soon", "step=often"):
        answer = server.request("GET", f"/v1/{job}:metrics?{query}")
        assert answer.status == 400
        assert list(answer.violations) == [query.partition("=")[0]]
    assert server.request("GET", f"/v1/{job}0:metrics").status == 404


def test_one_request_has_all_graphs_of_a_job_with_its_marks(server: LiveServer) -> None:
    job = server.submit(pools=[pool(python(STEPS), replicas=2)], name="graphs")
    try:
        graphs = f"/v1/{job}:graphs"
        until(lambda: len(server.get(graphs)["usage"]["times"]) >= 3)
        answer = server.get(graphs, points="100")
        names = {(series["task"], series["name"]) for series in answer["usage"]["series"]}
        wanted = ("cpu", "memory", "disk_read", "disk_write")
        tasks = ("workerpool0-0", "workerpool0-1")
        assert {(task, name) for task in tasks for name in wanted} <= names
        lengths = {len(series["values"]) for series in answer["usage"]["series"]}
        assert lengths == {len(answer["usage"]["times"])}
        assert [entry["task"] for entry in answer["reported"]] == list(tasks)
        [loss] = answer["reported"][0]["series"]
        steps = answer["reported"][0]["steps"]
        assert loss["values"] == pytest.approx([1 / step for step in steps], rel=1e-4)
        assert "RUNNING" in [mark["reason"] for mark in answer["marks"]]
        middle = answer["marks"][-1]["time"]
        assert server.get(graphs, startTime=middle)["startTime"] == middle
    finally:
        server.cancel(job)
    refused = server.request("GET", f"{graphs}?startTime=soon&points=many&endTime=2026-01-01T00:00:00Z")
    assert (refused.status, sorted(refused.violations)) == (400, ["points", "startTime"])


def test_jobs_are_compared_by_what_they_reported_and_by_their_settings(server: LiveServer) -> None:
    names = [server.submit([*python(SHORT), f"--lr={rate}"], name=f"rate {rate}") for rate in (1, 2)]
    for job in names:
        server.wait(job)
        metrics(server, job)  # what was said last is recorded then
    body = {"jobs": [*names, f"{names[0]}0"], "points": 50}
    answer = server.request("POST", f"{JOBS}:compare", body).json
    assert [entry["name"] for entry in answer["jobs"]] == names
    assert answer["missing"] == [f"{names[0]}0"]
    [metric] = answer["metrics"]
    assert metric["name"] == "loss"
    assert [summary["last"] for summary in metric["summaries"]] == [0.1, 0.1]
    assert answer["differences"] == [{"name": "args.lr", "values": ["1", "2"]}]
    by_filter = server.request("POST", f"{JOBS}:compare", {"filter": 'display_name:"rate *"'}).json
    assert sorted(entry["name"] for entry in by_filter["jobs"]) == sorted(names)


def test_prometheus_reads_the_server_and_its_jobs_and_needs_the_token(server: LiveServer) -> None:
    job = server.submit(pools=[pool(python(STEPS), replicas=2)], name='with "quotes" and \\')
    identity = job.rsplit("/", 1)[-1]
    try:
        text = until(lambda: _scraped(server, f'trainshed_replica_step{{.*job="{identity}"'))
        assert server.request("GET", "/metrics", token=None).status in (401, 403)
        wrong = [line for line in text.splitlines() if not LINE.fullmatch(line)]
        assert wrong == []
        running = re.search(r'^trainshed_jobs\{state="RUNNING"\} (\d+)$', text, re.MULTILINE)
        assert running and int(running[1]) >= 1
        cpu = [
            row for row in text.splitlines() if row.startswith("trainshed_replica_cpu") and identity in row
        ]
        assert len(cpu) == 2
        if importlib.util.find_spec("prometheus_client"):
            from prometheus_client.parser import text_string_to_metric_families  # pyright: ignore

            assert len(list(text_string_to_metric_families(text))) > 8
    finally:
        server.cancel(job)


def _scraped(server: LiveServer, pattern: str) -> str:
    answer = server.request("GET", "/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    text = answer.body.decode()
    return text if re.search(pattern, text) else ""


def test_top_shows_replicas_in_a_pipe_and_as_json(server: LiveServer) -> None:
    job = server.submit(pools=[pool(python(STEPS), replicas=2)], name="shown")
    identity = job.rsplit("/", 1)[-1]
    try:
        until(lambda: metrics(server, job)["progress"])
        told = json.loads(top(server, identity, "--once", "--json"))
        assert {one["task"] for one in told["jobs"][0]["series"]} == {"workerpool0-0", "workerpool0-1"}
        assert told["jobs"][0]["progress"]["total"] == 1000
        text = top(server)
        rows = [line for line in text.splitlines() if identity in line]
        assert len(rows) == 2
        assert "/1000" in rows[0]
        assert "\x1b" not in text
    finally:
        server.cancel(job)
    server.wait(job)
    assert "/1000" in top(server, "shown", "--once")  # also of a job that is over


def top(server: LiveServer, *args: str) -> str:
    environ = {**os.environ, "TRAINSHED_HOME": str(server.home), "TRAINSHED_PROJECT": "p1"}
    done = subprocess.run(
        [sys.executable, "-m", "trainshed.cli", "top", *args],
        env=environ,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_job_that_puts_fifos_in_place_of_its_files_harms_neither_others_nor_the_servers_stop(
    server: LiveServer,
) -> None:
    source = (
        "import os, time\n"
        "print('before', flush=True)\n"
        "for path in (os.environ['TRAINSHED_REPORT'], os.readlink('/proc/self/fd/1')):\n"
        "    if os.path.lexists(path): os.unlink(path)\n"
        "    os.mkfifo(path)\n"
        "print('after', flush=True)\n"
        "time.sleep(1000)"
    )
    bad = server.submit(python(source))
    until(lambda: list((server.home / "logs" / bad.rpartition("/")[2]).glob("*.out")))
    until(lambda: any(path.is_fifo() for path in (server.home / "logs").rglob("*.out")))
    good = server.submit(python(STEPS))
    first = until(lambda: metrics(server, good)["progress"])["step"]
    until(lambda: metrics(server, good)["progress"]["step"] > first)
    assert server.lines(bad) == []
    server.cancel(bad)
    server.cancel(good)
    assert server.wait(bad)["state"] == "JOB_STATE_CANCELLED"
    assert server.stop() == 0
    server.start()
