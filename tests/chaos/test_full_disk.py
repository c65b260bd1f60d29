"""A disk that is full: under the logs, under the database. Nothing is lost, and all goes on by itself.

The disks are small ones in memory, mounted for the test; where that is not allowed the tests are skipped.
"""

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults import Sentence
from tests.live import FINAL, JOBS, PATIENCE, LiveServer, pool, python

ROOM = ("--cpus", "32", "--memory", "120GiB")
SMALL = 1 << 20
PAGE = os.sysconf("SC_PAGE_SIZE")


@contextlib.contextmanager
def small_disk(place: Path) -> Iterator[Path]:
    place.mkdir(parents=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SMALL}", "trainshed-test", str(place)],
        check=False,
        capture_output=True,
        text=True,
    )
    if mounted.returncode != 0:
        pytest.skip(f"a small disk needs the right to mount one: {mounted.stderr.strip()}")
    try:
        yield place
    finally:
        # Lazily: programs may still have files open on it.
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill(disk: Path) -> Path:
    """Take all that is left."""
    filler = disk / ".filler"
    with filler.open("ab", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(b"x" * 4096):
            pass
    return filler


@pytest.fixture
def server() -> Iterator[LiveServer]:
    """Not started yet, so that disks can be put under it."""
    live = LiveServer(*ROOM)
    live.home.mkdir(mode=0o700)
    yield live
    live.close()


def wait_for_line(server: LiveServer, job: str, text: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while text not in (row["text"] for row in server.lines(job)):
        assert time.monotonic() < deadline, f"{text!r} does not come: {server.lines(job)}"
        time.sleep(0.02)


# Prints before, while and after the disk is full; does not care whether anybody could hear it.
STUBBORN = """
import pathlib, sys, time
def say(text):
    try:
        sys.stdout.write(text + "\\n"); sys.stdout.flush()
    except OSError:
        pass
here = pathlib.Path(sys.argv[1])
say("before")
while not (here / "full").exists(): time.sleep(0.02)
for number in range(64): say("x" * 1000)
(here / "shouted").touch()
while not (here / "free").exists(): time.sleep(0.02)
say("")
say("after")
sys.exit(7)
"""


@pytest.mark.fault(
    "Disks",
    "The disk under the logs is full",
    "Jobs go on and end as they would. What they print meanwhile may be missing from the log.",
)
def test_a_full_disk_under_the_logs_neither_stops_a_job_nor_changes_its_end(server: LiveServer) -> None:
    with small_disk(server.home / "logs") as disk:
        server.start()
        job = server.submit(["python", "-u", "-c", STUBBORN, str(server.base)])
        wait_for_line(server, job, "before")
        filler = fill(disk)
        (server.base / "full").touch()
        deadline = time.monotonic() + PATIENCE
        while not (server.base / "shouted").exists():
            assert time.monotonic() < deadline, "the program was held up by the full disk"
            time.sleep(0.02)
        silent = server.submit(python("raise SystemExit(0)"))
        assert server.wait(silent)["state"] == "JOB_STATE_SUCCEEDED"
        server.kill()  # and a start on a full disk works too
        server.start()
        assert server.state(job) == "JOB_STATE_RUNNING"
        filler.unlink()
        (server.base / "free").touch()
        done = server.wait(job)
        assert done["state"] == "JOB_STATE_FAILED"
        assert "code 7" in done["error"]["message"]
        texts = [row["text"] for row in server.lines(job)]
        assert texts[0] == "before"
        assert texts[-1] == "after"
        server.stop()


# Prints twice what its disk holds, not faster than a server can look.
TALKER = """
import time
for number in range(2000):
    print(number, "x" * 1000, flush=True)
    if number % 20 == 0: time.sleep(0.1)
print("after", flush=True)
"""


@pytest.mark.fault(
    "Disks",
    "What a job prints would fill the disk under the logs",
    "The middle of its output is dropped before the disk is full, and a line says how much. The program goes "
    "on. What others write there may still fill it.",
    sentence="bytes of output dropped here: the server's disk was almost full",
)
def test_a_job_that_prints_more_than_the_disk_holds_goes_on_and_its_log_says_what_is_missing(
    sentence: Sentence, server: LiveServer
) -> None:
    with small_disk(server.home / "logs"):
        server.start()
        job = server.submit(["python", "-u", "-c", TALKER])
        assert server.wait(job)["state"] == "JOB_STATE_SUCCEEDED"
        texts = [row["text"] for row in server.lines(job)]
        assert texts[0].startswith("0 x") and texts[-1] == "after"
        assert len([text for text in texts if sentence.is_in(text)]) == 1
        told = [event for event in events(server, job) if event["reason"] == "LOG_DROPPED"]
        assert len(told) == 1 and "The disk under the logs is almost full" in told[0]["message"]
        assert not [event for event in events(server, job) if event["reason"] == "REPLICA_RESTARTED"]
        server.stop()


# Prints until printing fails, as most programs do: with an exception, and exit code 1.
PLAIN = """
import pathlib, sys, time
here = pathlib.Path(sys.argv[1])
print("before", flush=True)
while not (here / "full").exists(): time.sleep(0.02)
for number in range(64): print("x" * 1000, flush=True)
print("after", flush=True)
"""


@pytest.mark.fault(
    "Disks",
    "A program fails because it cannot print",
    "It is the machine's fault: the verdict is DISK_FULL, and the replica is restarted until there is room.",
)
def test_a_program_that_fails_because_it_cannot_print_is_restarted_until_there_is_room(
    server: LiveServer,
) -> None:
    with small_disk(server.home / "logs") as disk:
        server.start()
        job = server.submit(["python", "-u", "-c", PLAIN, str(server.base)])
        wait_for_line(server, job, "before")
        filler = fill(disk)
        (server.base / "full").touch()
        deadline = time.monotonic() + PATIENCE
        while not (restarts := [event for event in events(server, job) if "DISK_FULL" in event["message"]]):
            assert time.monotonic() < deadline, events(server, job)
            time.sleep(0.05)
        assert restarts[0]["reason"] == "REPLICA_RESTARTED"
        filler.unlink()
        assert server.wait(job)["state"] == "JOB_STATE_SUCCEEDED"
        assert [row["text"] for row in server.lines(job)][-1] == "after"
        server.stop()


def events(server: LiveServer, job: str) -> list[Any]:
    return server.get(f"/v1/{job}:events")["events"]


def test_a_line_that_just_fitted_on_the_disk_is_shown_when_there_is_room_again(server: LiveServer) -> None:
    """The line took the last page, and none was left to write down when it came."""
    with small_disk(server.home / "logs") as disk:
        server.start()
        filler = fill(disk)
        os.truncate(filler, filler.stat().st_size - PAGE)
        flag = server.base / "free"
        source = (
            "import os, time; os.write(1, b'squeezed in\\n')\n"
            f"while not os.path.exists({str(flag)!r}): time.sleep(0.02)"
        )
        job = server.submit(python(source))
        server.wait_for(job, ("JOB_STATE_RUNNING",))
        deadline = time.monotonic() + PATIENCE
        while "cannot be dated" not in server.said():
            assert time.monotonic() < deadline, f"the disk took it: {server.lines(job)}"
            time.sleep(0.02)
        assert server.lines(job) == []
        filler.unlink()
        wait_for_line(server, job, "squeezed in")
        flag.touch()
        assert server.wait(job)["state"] == "JOB_STATE_SUCCEEDED"
        assert [row["text"] for row in server.lines(job)] == ["squeezed in"]
        server.stop()


@pytest.mark.fault(
    "The database",
    "The disk under the database is full",
    "Submits are refused with 503; reading goes on. Jobs that run end as they would, and are recorded when "
    "there is room again.",
    sentence="cannot grow: the disk is full. Nothing was changed; free some space and try again.",
)
def test_a_full_disk_under_the_database_refuses_new_jobs_and_loses_none(
    sentence: Sentence, server: LiveServer
) -> None:
    with small_disk(server.base / "disk") as disk:
        server.flags = (*ROOM, "--database", f"sqlite:///{disk / 'jobs.db'}")
        server.start()
        flag = server.base / "go"
        source = (
            f"import os, time\nwhile not os.path.exists({str(flag)!r}): time.sleep(0.02)\nraise SystemExit(5)"
        )
        running = server.submit(python(source))
        server.wait_for(running, ("JOB_STATE_RUNNING",))
        kept = [running]
        filler = fill(disk)
        body = {"displayName": "x", "jobSpec": {"workerPoolSpecs": [pool(python("pass"))]}}
        deadline = time.monotonic() + PATIENCE
        # The log of the database has some room inside; it is used up first.
        while (answer := server.request("POST", JOBS, body)).status == 200:
            kept.append(answer.json["name"])
            assert time.monotonic() < deadline, "the disk is never full"
        assert answer.status == 503, answer.body
        assert answer.error["status"] == "UNAVAILABLE"
        assert sentence.is_in(answer.error["message"])
        assert server.state(running) == "JOB_STATE_RUNNING"  # reading goes on
        flag.touch()  # the program ends while nothing can be written
        time.sleep(1)
        filler.unlink()
        done = server.wait(running)
        assert done["state"] == "JOB_STATE_FAILED"
        assert "code 5" in done["error"]["message"]
        for name in kept:
            assert server.wait(name)["state"] in FINAL
        again = server.submit(python("pass"))
        assert server.wait(again)["state"] == "JOB_STATE_SUCCEEDED"
        listed = {job["name"] for job in server.get(JOBS, pageSize=100)["customJobs"]}
        assert listed == {*kept, again}
        server.stop()
