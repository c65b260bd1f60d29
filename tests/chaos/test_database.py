"""A database that somebody else holds, and one that is damaged."""

import sqlite3
import threading
import time
from contextlib import closing
from typing import Any

import pytest

from tests.faults import Sentence
from tests.live import JOBS, PATIENCE, LiveServer, pool, python

pytestmark = pytest.mark.slow


@pytest.mark.fault(
    "The database",
    "Another program locks the database",
    "Lists and states are still served. Submits wait until the lock is gone.",
)
def test_while_another_program_locks_the_database_reads_are_served_and_writes_wait() -> None:
    with LiveServer("--cpus", "32", "--memory", "120GiB") as server:
        before = server.submit(python("import time; time.sleep(1); raise SystemExit(3)"))
        server.wait_for(before, ("JOB_STATE_RUNNING",))
        answers: list[Any] = []
        body = {"displayName": "late", "jobSpec": {"workerPoolSpecs": [pool(python("pass"))]}}

        def submit() -> None:
            answers.append(server.request("POST", JOBS, body, headers={"Idempotency-Key": f"{len(names)}"}))

        names = [before]
        with closing(sqlite3.connect(server.home / "trainshed.db", isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            client = threading.Thread(target=submit)
            client.start()
            until = time.monotonic() + 4  # the first job's program ends meanwhile
            while time.monotonic() < until:
                assert server.request("GET", JOBS, timeout=20).status == 200
                assert server.state(before) == "JOB_STATE_RUNNING"
                time.sleep(0.1)
            assert answers == []
            other.execute("ROLLBACK")
        client.join(PATIENCE)
        assert answers[0].status == 200, answers[0].body
        assert server.wait(answers[0].json["name"])["state"] == "JOB_STATE_SUCCEEDED"
        done = server.wait(before)
        assert done["state"] == "JOB_STATE_FAILED"
        assert "code 3" in done["error"]["message"]
        assert len(server.get(JOBS)["customJobs"]) == 2


def test_a_server_killed_while_the_database_is_locked_has_acknowledged_nothing_it_loses() -> None:
    with LiveServer("--cpus", "32", "--memory", "120GiB") as server:
        kept = server.submit(python("pass"))
        server.wait(kept)
        with closing(sqlite3.connect(server.home / "trainshed.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            body = {"displayName": "x", "jobSpec": {"workerPoolSpecs": [pool(python("pass"))]}}
            outcome: list[str] = []

            def submit() -> None:
                try:
                    answer = server.request("POST", JOBS, body)
                    outcome.append(f"answered {answer.status}")
                except OSError:
                    outcome.append("lost")

            client = threading.Thread(target=submit)
            client.start()
            time.sleep(0.5)
            server.kill()
            client.join(PATIENCE)
            assert outcome == ["lost"]
            other.execute("ROLLBACK")
        server.start()
        assert [job["name"] for job in server.get(JOBS)["customJobs"]] == [kept]


@pytest.mark.fault(
    "The database",
    "The database's file is removed or replaced under a running server",
    "Changes are refused with 503 until it is back. Nothing is acknowledged that would be lost.",
    sentence="The database … was removed while the server ran. Nothing was changed. "
    "If it was moved, move it back.",
)
def test_a_database_that_is_removed_under_a_server_takes_no_job_until_it_is_back(sentence: Sentence) -> None:
    with LiveServer() as server:
        kept = [server.submit(python("pass"))]
        database, away = server.home / "trainshed.db", server.home / "away"
        database.rename(away)
        body = {"displayName": "late", "jobSpec": {"workerPoolSpecs": [pool(python("pass"))]}}
        answer = server.request("POST", JOBS, body)
        assert answer.status == 503
        assert sentence.is_in(answer.error["message"])
        away.rename(database)
        kept.append(server.post(JOBS, body)["name"])
        server.kill()
        server.start()
        assert {job["name"] for job in server.get(JOBS)["customJobs"]} == set(kept)


@pytest.mark.fault(
    "The database",
    "One job's row in the database is damaged",
    "It is left out of lists, and the server's log names it. All other jobs go on.",
    sentence="job … is damaged",
)
def test_a_server_starts_and_serves_all_jobs_but_the_one_whose_row_is_damaged(sentence: Sentence) -> None:
    with LiveServer() as server:
        names = [server.submit(python("pass")) for _ in range(3)]
        for name in names:
            server.wait(name)
        server.stop()
        with closing(sqlite3.connect(server.home / "trainshed.db", isolation_level=None)) as other:
            identity = names[1].rpartition("/")[2]
            other.execute("UPDATE jobs SET status = '{', state = 'RUNNING' WHERE id = ?", (identity,))
        server.start()
        assert {job["name"] for job in server.get(JOBS)["customJobs"]} == {names[0], names[2]}
        answer = server.request("GET", f"/v1/{names[1]}")
        assert answer.status == 503
        assert sentence.is_in(answer.error["message"]) and identity in answer.error["message"]
        assert server.wait(server.submit(python("pass")))["state"] == "JOB_STATE_SUCCEEDED"
        assert f"job {identity} is damaged" in server.said()
        assert "Traceback" not in server.said()


@pytest.mark.fault(
    "The database",
    "The database is damaged",
    "The server does not start, and leaves the file as it is.",
    sentence="error: The database … is damaged: …. Nothing was changed. Restore it from a backup, …",
)
def test_a_damaged_database_is_refused_with_a_sentence_and_left_as_it_is(sentence: Sentence) -> None:
    with LiveServer() as server:
        server.wait(server.submit(python("pass")))
        server.stop()
        database = server.home / "trainshed.db"
        whole = database.read_bytes()
        damaged = whole[:4096] + b"\xa5" * 4096 + whole[8192:]
        database.write_bytes(damaged)
        server.start(wait=False)
        assert server.process is not None
        assert server.process.wait(PATIENCE) == 1
        last = server.said().strip().splitlines()[-1]
        assert sentence.is_in(last)
        assert "Traceback" not in server.said()
        assert database.read_bytes() == damaged
        database.write_bytes(whole)
        server.start()
        assert len(server.get(JOBS)["customJobs"]) == 1
