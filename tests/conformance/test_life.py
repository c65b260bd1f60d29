"""The server as a process: it ends in order, comes back on kill -9, and tests leave nothing of it behind."""

import contextlib
import http.client
import json
import os
import signal
import threading
from collections.abc import Generator, Iterator

import pytest

from tests.live import JOBS, LiveServer, bearing, python, until
from tests.shared_server import forget_jobs

SLEEP = python("import time; print('up', flush=True); time.sleep(600)")


@pytest.fixture(scope="module")
def shared_server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "64", "--memory", "256GiB") as live:
        yield live
        assert "Traceback" not in live.said(), live.said()


@pytest.fixture
def server(shared_server: LiveServer) -> Iterator[LiveServer]:
    """The same for all that end it, each time running and without jobs."""
    yield shared_server
    assert shared_server.process is not None
    if shared_server.process.poll() is not None:
        shared_server.start()
    forget_jobs(shared_server)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_asked_to_end_ends_in_order(server: LiveServer, number: signal.Signals) -> None:
    assert server.process is not None
    server.wait(server.submit(["true"]))
    server.process.send_signal(number)
    server.process.wait(30)
    assert not (server.home / "server.json").exists(), "or commands would look for it where nobody is"
    assert server.process.returncode in (0, -number), server.said()
    assert "Traceback" not in server.said()


@contextlib.contextmanager
def asked(server: LiveServer, *paths: str) -> Generator[list[http.client.HTTPConnection]]:
    with contextlib.ExitStack() as stack:
        connections = [http.client.HTTPConnection("127.0.0.1", server.port, timeout=60) for _ in paths]
        for connection, path in zip(connections, paths, strict=True):
            stack.enter_context(contextlib.closing(connection))
            connection.request("GET", path, headers={"Authorization": f"Bearer {server.token}"})
        yield connections


def test_a_server_that_ends_ends_its_streams_and_lets_nothing_wait(server: LiveServer) -> None:
    name = server.submit(SLEEP)
    server.wait_for(name, ("JOB_STATE_RUNNING",))
    until(lambda: server.lines(name))
    streams = (f"{JOBS}:watch?after=0", f"/v1/{name}:output?follow=1", f"/v1/{name}:tail?follow=1")
    with asked(server, *streams, f"/v1/{name}:wait?timeout=600s") as connections:
        *answers, lines = [connection.getresponse() for connection in connections[:3]]
        assert all(answer.readline() for answer in (*answers, lines))
        status = server.stop(patience=30)
        for answer in answers:
            assert b'"end"' not in answer.read()
        with pytest.raises(http.client.IncompleteRead):  # else it would look like the end of the job
            lines.read()
        refusal = connections[3].getresponse()
        assert (refusal.status, b"ask again when it is back" in refusal.read()) == (503, True)
    assert status != -signal.SIGKILL, "it had to be killed"
    assert " ERROR " not in server.said() and "Traceback" not in server.said(), server.said()


def test_after_kill_9_everything_is_where_it_was(server: LiveServer) -> None:
    port, token = server.port, server.token
    running, done = server.submit(SLEEP, name="running"), server.submit(["true"], name="done")
    ended = server.wait(done)
    server.wait_for(running, ("JOB_STATE_RUNNING",))
    replicas = server.processes()
    server.kill()
    assert server.processes() == replicas, "replicas outlive the server"
    server.start()
    assert (server.port, server.token) == (port, token)
    assert server.job(done) == ended
    assert server.state(running) == "JOB_STATE_RUNNING"
    server.cancel(running)
    assert server.wait(running)["state"] == "JOB_STATE_CANCELLED"
    assert server.processes() == []


def test_a_closed_server_leaves_no_process_and_no_file() -> None:
    server = LiveServer().start()
    escapee = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0: os.chdir('/'); time.sleep(600)\n"
        "    os._exit(0)\n"
        "print('up', flush=True); time.sleep(600)\n"
    )
    name = server.submit(python(escapee))
    server.wait_for(name, ("JOB_STATE_RUNNING",))
    assert server.processes()
    server.close()
    assert bearing(server.base) == []
    assert not server.base.exists()


def test_many_clients_at_once_are_all_answered(open_server: LiveServer) -> None:
    answers: list[int] = []

    def talk(number: int) -> None:
        for _ in range(5):
            body = {"displayName": f"c{number}", "jobSpec": {"workerPoolSpecs": "no"}}
            answers.append(open_server.request("POST", JOBS, body).status)
            answers.append(open_server.request("GET", JOBS).status)

    threads = [threading.Thread(target=talk, args=(n,)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [200] * 100 + [400] * 100


def test_the_note_for_commands_names_this_server(server: LiveServer) -> None:
    note = json.loads((server.home / "server.json").read_text())
    assert note == {"url": server.url, "pid": server.pid}
    assert os.stat(server.home).st_mode & 0o077 == 0, "the home is its owner's"
