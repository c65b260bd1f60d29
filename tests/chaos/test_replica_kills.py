"""kill -9 and SIGSTOP to replicas and their keepers, and to the server at the most awkward step."""

import http.client
import os
import random
import shutil
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.chaos.kinds import command
from tests.chaos.notes import Note, held_locks, read_notes
from tests.chaos.settle import ROOM, cgroups
from tests.live import JOBS, PATIENCE, LiveServer, pool, until
from tests.network import quiet_port
from tests.shared_server import forget_jobs

pytestmark = pytest.mark.slow

SOON = {"restartRule": {"backoff": "0.1s"}}


@pytest.fixture(scope="module")
def shared_server() -> Iterator[LiveServer]:
    with LiveServer(*ROOM, port=quiet_port()) as live:
        yield live
        assert "Traceback" not in live.said(), live.said()


@pytest.fixture
def server(shared_server: LiveServer) -> Iterator[LiveServer]:
    """The same for all, without jobs and notes."""
    notes = shared_server.base / "notes"
    notes.mkdir()
    yield shared_server
    forget_jobs(shared_server)
    until(lambda: not list((shared_server.home / "run/jobs").iterdir()))
    wait_until_nothing_lives(shared_server)
    shutil.rmtree(notes)


def works(server: LiveServer, seconds: float, does: str = "works") -> list[str]:
    return command(does, server.base / "notes", 5, seconds)


def starts(server: LiveServer) -> list[Note]:
    return [note for note in read_notes(server.base / "notes") if note.what == "start"]


def wait_for_starts(server: LiveServer, count: int) -> list[Note]:
    deadline = time.monotonic() + PATIENCE
    while len(found := starts(server)) < count:
        assert time.monotonic() < deadline, (
            f"{count} starts were expected, there are {found}; {server.said()}"
        )
        time.sleep(0.01)
    return found


def wait_for_launch(server: LiveServer, job: str) -> None:
    """Until a keeper has the job's run: its server is about to write that down."""
    record = server.home / "run" / "jobs" / job.rsplit("/", 1)[-1] / "0" / "0-0" / "0" / "record"
    deadline = time.monotonic() + PATIENCE
    while not record.exists():
        assert time.monotonic() < deadline, "the job was not launched"
        time.sleep(0.0002)


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])


def environment(pid: int) -> dict[str, str]:
    rows = Path(f"/proc/{pid}/environ").read_text().split("\0")
    return dict(row.split("=", 1) for row in rows if row)


def wait_until_nothing_lives(server: LiveServer) -> None:
    until(lambda: not server.processes() and not held_locks(server.base / "notes"), "the end of all")


@pytest.mark.fault(
    "Programs",
    "Somebody kills a replica",
    "It starts again with the same name, rank and ports.",
)
def test_a_replica_killed_with_kill_9_starts_again_with_its_name_and_ports(server: LiveServer) -> None:
    workers = pool(works(server, 60), replicas=2)
    job = server.submit(pools=[pool(works(server, 60)), workers], spec={"scheduling": SOON})
    first = wait_for_starts(server, 3)
    worker = next(note for note in first if note.replica == "1.1")
    before = environment(worker.pid)
    os.kill(worker.pid, signal.SIGKILL)
    again = wait_for_starts(server, 4)[-1]
    assert (again.replica, again.attempt, again.restart) == ("1.1", 0, 1)
    after = environment(again.pid)
    for name in ("CLUSTER_SPEC", "TF_CONFIG", "MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE"):
        assert after[name] == before[name]
    assert len(starts(server)) == 4  # the others were left alone
    server.cancel(job)
    assert server.wait(job)["state"] == "JOB_STATE_CANCELLED"


def test_the_count_of_restarts_survives_a_kill_of_the_server(server: LiveServer) -> None:
    rule = {"restartRule": {"backoff": "0.1s", "maxReplicaRestarts": 2, "maxJobRetries": 0}}
    job = server.submit(works(server, 60), spec={"scheduling": rule})
    for restart in range(3):
        note = wait_for_starts(server, restart + 1)[-1]
        assert (note.attempt, note.restart) == (0, restart)
        server.kill()
        os.kill(note.pid, signal.SIGKILL)
        server.start()
    done = server.wait(job)
    assert done["state"] == "JOB_STATE_FAILED"
    assert "signal 9" in done["error"]["message"]
    assert "2 of 2 restarts" in done["error"]["message"]
    assert len(starts(server)) == 3
    wait_until_nothing_lives(server)


@pytest.mark.fault(
    "Programs",
    "Somebody kills the process that watches a replica",
    "The replica's programs are ended, and it starts again.",
)
@pytest.mark.parametrize("server_is_up", [True, False])
def test_a_replica_whose_keeper_is_killed_is_lost_restarted_and_leaves_nothing(
    server: LiveServer, server_is_up: bool
) -> None:
    job = server.submit(works(server, 600, "deaf"), spec={"scheduling": {**SOON, "gracePeriod": "0.5s"}})
    note = wait_for_starts(server, 1)[0]
    if not server_is_up:
        server.kill()
    os.kill(parent(note.pid), signal.SIGKILL)
    if not server_is_up:
        server.start()
    again = wait_for_starts(server, 2)[-1]
    assert again.restart == 1
    events = server.get(f"/v1/{job}:events")["events"]
    assert any(e["reason"] == "REPLICA_RESTARTED" and "lost" in e["message"] for e in events)
    # Its sleeper, which had forked itself away, is gone as well: the second would have noted it.
    assert [n for n in read_notes(server.base / "notes") if n.what in ("twice", "together")] == []
    server.cancel(job)
    assert server.wait(job)["state"] == "JOB_STATE_CANCELLED"
    wait_until_nothing_lives(server)


def test_a_server_killed_just_after_a_launch_never_starts_a_second_copy(server: LiveServer) -> None:
    """Where exactly it dies is left to chance: many jobs, and kills within milliseconds of their launch."""
    rng = random.Random(7)
    jobs: list[str] = []
    for _ in range(6):
        jobs += [server.submit(works(server, 1)) for _ in range(4)]
        wait_for_launch(server, jobs[-1])
        time.sleep(rng.uniform(0, 0.004))
        server.kill()
        server.start()
    for job in jobs:
        assert server.wait(job)["state"] == "JOB_STATE_SUCCEEDED"
    runs = [note.run for note in starts(server)]
    assert sorted(runs) == sorted(f"{job.rsplit('/', 1)[-1]}.0.0.0.0" for job in jobs)


def test_a_server_killed_between_a_launch_and_the_writing_of_it_finds_the_run_again(
    server: LiveServer,
) -> None:
    """The restart is launched while the database is locked, so that the server dies before it can say so."""
    job = server.submit(works(server, 4), spec={"scheduling": {"restartRule": {"backoff": "2s"}}})
    os.kill(wait_for_starts(server, 1)[0].pid, signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE
    while server.get(f"/v1/{job}:status")["replicas"][0]["restarts"] == 0:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    with closing(sqlite3.connect(server.home / "trainshed.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        wait_for_starts(server, 2)
        time.sleep(0.2)
        server.kill()
        other.execute("ROLLBACK")
    server.start()
    status = server.get(f"/v1/{job}:status")
    assert status["replicas"][0]["restarts"] == 1
    assert server.wait(job)["state"] == "JOB_STATE_SUCCEEDED"
    assert [(note.attempt, note.restart) for note in starts(server)] == [(0, 0), (0, 1)]


def test_a_replica_that_is_stopped_for_a_while_is_not_started_a_second_time(server: LiveServer) -> None:
    job = server.submit(works(server, 2))
    note = wait_for_starts(server, 1)[0]
    os.kill(note.pid, signal.SIGSTOP)
    time.sleep(3)  # longer than a replica may be missing before it counts as lost
    server.kill()
    server.start()
    time.sleep(3)
    assert server.state(job) == "JOB_STATE_RUNNING"
    assert len(starts(server)) == 1
    os.kill(note.pid, signal.SIGCONT)
    assert server.wait(job)["state"] == "JOB_STATE_SUCCEEDED"
    assert len(starts(server)) == 1


def test_a_stopped_keeper_does_not_keep_its_job_from_being_cancelled(server: LiveServer) -> None:
    job = server.submit(works(server, 600), spec={"scheduling": {"gracePeriod": "1s"}})
    note = wait_for_starts(server, 1)[0]
    os.kill(parent(note.pid), signal.SIGSTOP)
    server.cancel(job)
    assert server.wait(job)["state"] == "JOB_STATE_CANCELLED"
    wait_until_nothing_lives(server)


def test_the_same_key_sent_again_and_again_through_kills_is_one_job(server: LiveServer) -> None:
    asked = {"displayName": "one", "jobSpec": {"workerPoolSpecs": [pool(works(server, 0.1))]}}
    names: set[str] = set()
    enough = threading.Event()

    def insist() -> None:
        while not enough.is_set():
            try:
                answer = server.request("POST", JOBS, asked, headers={"Idempotency-Key": "k"}, timeout=10)
            except (OSError, http.client.HTTPException):
                time.sleep(0.01)
                continue
            assert answer.status == 200, answer.body
            names.add(answer.json["name"])

    clients = [threading.Thread(target=insist, daemon=True) for _ in range(4)]
    for client in clients:
        client.start()
    for _ in range(3):
        server.kill()
        server.start()
        time.sleep(0.3)
    enough.set()
    for client in clients:
        client.join(PATIENCE)
    assert len(names) == 1
    assert server.wait(names.pop())["state"] == "JOB_STATE_SUCCEEDED"
    assert len(server.get(JOBS)["customJobs"]) == 1
    assert len(starts(server)) == 1


def test_a_cgroup_made_just_before_a_kill_goes_at_the_next_start(server: LiveServer) -> None:
    job = server.submit(works(server, 600))
    wait_for_starts(server, 1)
    groups = cgroups(server.home / "run")
    if not groups:
        pytest.skip("needs the right to make cgroups (v2)")
    server.kill()
    forgotten = Path(groups[0]).with_name("1.0.0.0.0")
    forgotten.mkdir()
    server.start()
    assert cgroups(server.home / "run") == groups  # that of the living is kept
    server.cancel(job)
    server.wait(job)
