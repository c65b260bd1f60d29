"""`trainshed backup` while a server works, and `trainshed restore`: what was acknowledged is there again."""

import http.client
import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.live import FINAL, PATIENCE, LiveServer, python, sweep

LONG = "long/" + "x" * 300  # without a place of its own
COMMAND = [sys.executable, "-P", "-m", "trainshed.cli"]


@pytest.fixture
def server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "8", "--memory", "8GiB") as live:
        yield live
        assert "Traceback" not in live.said(), live.said()


def environ(home: Path) -> dict[str, str]:
    own = {key: value for key, value in os.environ.items() if not key.startswith("TRAINSHED_")}
    return {**own, "TRAINSHED_HOME": str(home)}


def trainshed(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *words],
        env=environ(home),
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )


def put(server: LiveServer, bucket: str, name: str, content: bytes) -> Any:
    path = f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name={quote(name, safe='')}"
    answer = server.request("POST", path, content, headers={"Content-Type": "text/csv"})
    assert answer.status == 200, answer.body
    return answer.json


def objects(server: LiveServer, bucket: str) -> dict[tuple[str, str], Any]:
    """All objects and old versions, by name and generation."""
    items: list[Any] = []
    page = ""
    while True:
        answer = server.get(f"/storage/v1/b/{bucket}/o", versions="true", pageToken=page)
        items += answer.get("items", [])
        if not (page := answer.get("nextPageToken", "")):
            return {(item["name"], item["generation"]): item for item in items}


def media(server: LiveServer, bucket: str, name: str, generation: str) -> bytes:
    path = f"/download/storage/v1/b/{bucket}/o/{quote(name, safe='')}?alt=media&generation={generation}"
    answer = server.request("GET", path)
    assert answer.status == 200, answer.body
    return answer.body


class Work:
    """Clients that write objects and submit jobs until they are stopped, and know what was acknowledged."""

    def __init__(self, server: LiveServer) -> None:
        self._server = server
        self._stop = threading.Event()
        self.kept: dict[tuple[str, str], tuple[dict[str, Any], bytes]] = {}  # never replaced nor deleted
        self.jobs: list[str] = []
        self.faults: list[str] = []
        works = (self._write_new, self._write_over, self._write_versions, self._submit)
        self._threads = [threading.Thread(target=self._run, args=(work,)) for work in works]

    def begin(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        assert not self.faults, self.faults

    def _run(self, work: Any) -> None:
        number = 0
        while not self._stop.is_set():
            number += 1
            try:
                work(number)
            except (AssertionError, OSError, http.client.HTTPException) as error:
                self.faults.append(f"{work.__name__} {number}: {error}")
                return

    def _write_new(self, number: int) -> None:
        name = f"{LONG}{number}" if number % 7 == 0 else f"new/{number % 10}/{number}"
        content = f"new {number} ".encode() * (1 + number * 997 % 20_000)
        made = put(self._server, "plain", name, content)
        self.kept[name, made["generation"]] = made, content

    def _write_over(self, number: int) -> None:
        name = f"over/{number % 3}"
        put(self._server, "plain", name, f"{name} {number:08}".encode() * 1000)
        if number % 5 == 0:
            self._server.request("DELETE", f"/storage/v1/b/plain/o/{quote(name, safe='')}")

    def _write_versions(self, number: int) -> None:
        content = f"version {number} ".encode() * 500
        made = put(self._server, "versioned", f"v/{number % 4}", content)
        self.kept[made["name"], made["generation"]] = made, content

    def _submit(self, number: int) -> None:
        self.jobs.append(self._server.submit(python(f"print('job', {number})")))
        time.sleep(0.2)


@pytest.mark.fault(
    "The server",
    "The whole home is lost",
    "`trainshed restore` makes it again from a backup that was taken while the server worked.",
)
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["backup.tar", "backup"])
def test_what_was_acknowledged_before_a_backup_is_there_after_a_restore(
    server: LiveServer, tmp_path: Path, name: str
) -> None:
    server.post("/storage/v1/b", {"name": "plain", "labels": {"team": "a"}}, project="p1")
    server.post("/storage/v1/b", {"name": "versioned", "versioning": {"enabled": True}}, project="p1")
    ended = server.submit(python("print('first', flush=True)\nimport sys\nprint('last', file=sys.stderr)"))
    before_end = server.wait(ended)
    running = server.submit(python("import time\nprint('begun', flush=True)\ntime.sleep(3)\nprint('ended')"))
    work = Work(server)
    work.begin()
    deadline = time.monotonic() + PATIENCE
    while len(work.kept) < 60 or len(work.jobs) < 5:
        assert time.monotonic() < deadline and not work.faults, work.faults
        time.sleep(0.05)
    kept, jobs = dict(work.kept), list(work.jobs)  # acknowledged by now
    backup = tmp_path / name
    done = trainshed(server.home, "backup", str(backup), "--json")
    work.end()
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["damaged"] == []
    assert told["jobs"] >= len(jobs) + 2
    assert stat.S_IMODE(backup.stat().st_mode) == (0o600 if backup.suffix else 0o700)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert not [*server.home.glob(".backup-*"), *server.home.glob("buckets/.trainshed/.backup-*")]

    token, lines = server.token, server.lines(ended)
    server.kill()
    sweep(server.base)
    server.lose_home()
    done = trainshed(server.home, "restore", str(backup))
    assert done.returncode == 0, done.stderr
    server.start()

    assert server.token == token
    there = {key: item for bucket in ("plain", "versioned") for key, item in objects(server, bucket).items()}
    for key, (made, content) in kept.items():
        assert media(server, made["bucket"], *key) == content
        item = there[key]
        for field in ("size", "crc32c", "md5Hash", "metageneration", "timeCreated", "contentType"):
            assert item[field] == made[field], (key, field)
    for (object_name, generation), item in there.items():  # and nothing is half there
        content = media(server, item["bucket"], object_name, generation)
        assert len(content) == int(item["size"])
    referred = sum(len(key[0]) > 255 or "timeDeleted" in item for key, item in there.items())
    assert len(list((server.home / "buckets/.trainshed/held").iterdir())) == referred
    assert server.get("/storage/v1/b/plain")["labels"] == {"team": "a"}
    newest = max(int(generation) for _, generation in there)
    assert int(put(server, "plain", "after", b"x")["generation"]) > newest

    after_end = server.job(ended)
    assert after_end == before_end
    assert server.lines(ended) == lines
    for job in [*jobs, running]:
        assert server.wait(job)["state"] == "JOB_STATE_SUCCEEDED", job
    assert server.lines(running)[-1]["text"] == "ended"
    assert server.state(server.submit(python("pass"))) not in FINAL[1:]


def test_a_restore_leaves_a_home_alone_that_is_used_or_not_empty(server: LiveServer, tmp_path: Path) -> None:
    backup = tmp_path / "backup.tar"
    assert trainshed(server.home, "backup", str(backup)).returncode == 0
    refused = trainshed(server.home, "restore", str(backup))
    assert refused.returncode == 1
    assert f"A server (pid {server.pid}) uses {server.home}" in refused.stderr
    server.lose_home()  # under the server
    refused = trainshed(server.home, "restore", str(backup))
    assert f"A server (pid {server.pid}) uses {server.home}" in refused.stderr
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine").write_text("mine")
    refused = trainshed(other, "restore", str(backup))
    assert (refused.returncode, "is not empty" in refused.stderr) == (1, True)
    assert [path.name for path in other.iterdir()] == ["mine"]


def test_a_backup_that_is_interrupted_leaves_nothing(server: LiveServer, tmp_path: Path) -> None:
    server.post("/storage/v1/b", {"name": "plain"}, project="p1")
    for number in range(4):
        put(server, "plain", f"big/{number}", os.urandom(16 << 20))
    command = [*COMMAND, "backup", str(tmp_path / "backup.tar")]
    running = subprocess.Popen(command, env=environ(server.home), stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + PATIENCE
    while not list(tmp_path.iterdir()) and running.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=PATIENCE)
    assert (running.returncode, said) == (130, "broken off; nothing is left behind\n")
    assert list(tmp_path.iterdir()) == []
    assert not [*server.home.glob(".backup-*"), *server.home.glob("buckets/.trainshed/.backup-*")]


@pytest.mark.fault(
    "Buckets",
    "The index of the buckets is gone",
    "The server does not start, and names both ways out: restore a backup, or make the index anew.",
)
def test_a_server_without_its_buckets_index_says_both_ways_out_and_each_works(
    server: LiveServer, tmp_path: Path
) -> None:
    server.post("/storage/v1/b", {"name": "plain"}, project="p1")
    made = put(server, "plain", "data/rows.csv", b"a,b\n")
    assert trainshed(server.home, "backup", str(tmp_path / "backup")).returncode == 0
    assert server.stop() == 0
    for path in (server.home / "buckets/.trainshed").glob("index.db*"):
        path.unlink()
    server.start(wait=False)
    assert server.process is not None
    assert server.process.wait(PATIENCE) == 1
    said = server.said()
    assert f"{server.home}/buckets/.trainshed/index.db is gone" in said
    assert f"trainshed restore BACKUP --home {server.home}" in said
    assert f"trainshed restore --rebuild-index --home {server.home}" in said
    assert trainshed(server.home, "backup", str(tmp_path / "second")).returncode == 1

    done = trainshed(server.home, "restore", "--rebuild-index", "--home", str(server.home))
    assert done.returncode == 0, done.stderr
    assert "1 object in 1 bucket" in done.stdout
    assert "lost: content types" in done.stdout
    server.start()
    [item] = objects(server, "plain").values()
    assert item["crc32c"] == made["crc32c"]
    assert media(server, "plain", item["name"], item["generation"]) == b"a,b\n"
    refused = trainshed(server.home, "restore", "--rebuild-index")
    assert f"A server (pid {server.pid}) uses" in refused.stderr

    server.stop()
    server.lose_home()
    assert trainshed(server.home, "restore", str(tmp_path / "backup")).returncode == 0
    server.start()
    [item] = objects(server, "plain").values()
    assert item["generation"] == made["generation"]
