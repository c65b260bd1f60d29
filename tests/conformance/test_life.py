"""The server as a process: it ends in order, comes back on kill -9, and tests leave nothing of it behind."""

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.live import JOBS, LiveServer, bearing, python

SLEEP = python("import time; print('up', flush=True); time.sleep(600)")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_asked_to_end_ends_in_order(number: signal.Signals) -> None:
    with LiveServer() as server:
        assert server.process is not None
        server.wait(server.submit(["true"]))
        server.process.send_signal(number)
        server.process.wait(30)
        assert not (server.home / "server.json").exists(), "or commands would look for it where nobody is"
        assert server.process.returncode in (0, -number), server.said()
        assert "Traceback" not in server.said()


def test_open_followers_do_not_keep_a_server_from_ending() -> None:
    with LiveServer() as server:
        name = server.submit(SLEEP)
        server.wait_for(name, ("JOB_STATE_RUNNING",))
        connections: list[http.client.HTTPConnection] = []
        for path in (f"/v1/{name}:tail?follow=1", f"/v1/{name}:wait?timeout=600s"):
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            connection.request("GET", path, headers={"Authorization": f"Bearer {server.token}"})
            connections.append(connection)
        assert connections[0].getresponse().readline()  # it follows
        status = server.stop(patience=30)
        for connection in connections:
            connection.close()
        assert status != -signal.SIGKILL, "it had to be killed"
        assert "Traceback" not in server.said(), server.said()


def test_after_kill_9_everything_is_where_it_was() -> None:
    with LiveServer("--cpus", "64", "--memory", "256GiB") as server:
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


def test_the_exit_status_of_a_program_that_ended_while_no_server_ran_is_known(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    source = (
        f"import os, sys, time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.02)\nsys.exit(42)\n"
    )
    with LiveServer() as server:
        name = server.submit(python(source))
        server.wait_for(name, ("JOB_STATE_RUNNING",))
        server.kill()
        gate.touch()
        server.start()
        job = server.wait(name)
        assert job["state"] == "JOB_STATE_FAILED"
        assert "42" in job["error"]["message"]


def test_a_second_server_on_the_same_home_is_refused_with_a_sentence() -> None:
    with LiveServer() as server:
        command = [sys.executable, "-P", "-m", "trainshed.server", "--port", "0", "--home", str(server.home)]
        second = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert second.returncode != 0
        assert "Traceback" not in second.stderr
        assert second.stderr.strip()
        assert server.request("GET", JOBS).status == 200


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


def test_many_clients_at_once_are_all_answered() -> None:
    answers: list[int] = []
    with LiveServer("--no-auth") as server:

        def talk(number: int) -> None:
            for _ in range(5):
                body = {"displayName": f"c{number}", "jobSpec": {"workerPoolSpecs": "no"}}
                answers.append(server.request("POST", JOBS, body).status)
                answers.append(server.request("GET", JOBS).status)

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
