"""Warm runtimes as people meet them: said at the start, seen in lists and events, gone with the server."""

import os
import shutil
import signal
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.test_survival import alive, begun, waits_for
from tests.live import PARENT, LiveServer, pool, python, until
from tests.shared_server import forget_jobs

pytestmark = [
    pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler (cc)"),
    pytest.mark.skipif(
        os.geteuid() != 0 and Path("/gcs").exists(),
        reason="needs root, or no folder /gcs: elsewhere no job starts warm",
    ),
]


@pytest.fixture(scope="module")
def shared_server() -> Iterator[LiveServer]:
    with LiveServer("--warm", "trainshed/python:3", "--cpus", "32", "--memory", "120GiB") as live:
        yield live
        assert "Traceback" not in live.said(), live.said()


@pytest.fixture
def server(shared_server: LiveServer) -> Iterator[LiveServer]:
    """The same for all, warm and without jobs."""
    until(lambda: interpreter(shared_server).get("state") == "WARM", "the warm interpreter")
    yield shared_server
    forget_jobs(shared_server)
    (shared_server.base / "go").unlink(missing_ok=True)


def interpreter(server: LiveServer) -> dict[str, Any]:
    found = server.get(f"{PARENT}/runtimes")["runtimes"]
    return next((one["warm"] for one in found if "warm" in one), {})


def interpreter_pid(server: LiveServer) -> int:
    """The child of the server that is an interpreter waiting for orders."""
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
    [found] = [pid for pid in children if "interpreter.py" in Path(f"/proc/{pid}/cmdline").read_text()]
    return int(found)


def running_event(server: LiveServer, job: str) -> str:
    events = server.get(f"/v1/{job}:events")["events"]
    [message] = [event["message"] for event in events if event["reason"] == "RUNNING"]
    return message


def test_a_job_of_a_warm_runtime_is_forked_and_its_history_says_so(server: LiveServer) -> None:
    before = interpreter(server)["uses"]
    job = server.submit(pools=[pool(python("print('hi')"), replicas=3)])
    assert server.wait(job)["state"] == "JOB_STATE_SUCCEEDED"
    assert "warm" in running_event(server, job)
    assert interpreter(server)["uses"] == before + 3
    assert int(interpreter(server)["memoryBytes"]) > 1 << 20


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may listen at port 443 and mount")
def test_a_forked_job_finds_this_server_by_googles_names_too(server: LiveServer) -> None:
    """Without a token too: the variables of a fork are not where other programs' are looked for."""
    server.post("/storage/v1/b", {"name": "warm"}, project="p1")
    source = (
        "import socket, urllib.request\nprint(socket.gethostbyname('storage.googleapis.com'))\n"
        "print(urllib.request.urlopen('https://storage.googleapis.com/storage/v1/b/warm/o').status)"
    )
    job = server.submit(python(source))
    assert server.wait(job)["state"] == "JOB_STATE_SUCCEEDED", server.lines(job)
    assert "Forked from a warm interpreter" in running_event(server, job)
    address, status = (row["text"] for row in server.lines(job))
    assert address.startswith("127.77.")
    assert status == "200"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may listen at port 443 and mount")
def test_imports_that_read_what_goes_with_googles_names_leave_a_job_warm(tmp_path: Path) -> None:
    venv.create(tmp_path / "own", symlinks=True)
    [packages] = (tmp_path / "own").glob("lib/python3*/site-packages")
    (packages / "reads.py").write_text("import os\nROOTS = os.environ['CURL_CA_BUNDLE']\n")
    own = str(tmp_path / "own/bin/python")
    with LiveServer("--warm", f"{own}=reads") as server:
        until(lambda: interpreter(server).get("state") == "WARM", "the warm interpreter")
        source = "import os, reads; print(reads.ROOTS == os.environ['CURL_CA_BUNDLE'])"
        job = server.submit([own, "-c", source])
        assert server.wait(job)["state"] == "JOB_STATE_SUCCEEDED"
        assert "Forked from a warm interpreter" in running_event(server, job)
        assert [row["text"] for row in server.lines(job)] == ["True"]


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (["python", "-O", "-c", "print(1)"], "it gives the interpreter a flag (-O)"),
        (["sh", "-c", "echo 1"], "its program is sh, not the runtime's interpreter"),
    ],
)
def test_a_job_that_has_to_be_started_afresh_says_why(
    server: LiveServer, command: list[str], reason: str
) -> None:
    job = server.submit(command)
    assert server.wait(job)["state"] == "JOB_STATE_SUCCEEDED"
    assert running_event(server, job).endswith(f"Not started warm: {reason}.")
    assert [row["text"] for row in server.lines(job)] == ["1"]


@pytest.mark.slow
def test_a_runtime_is_kept_warm_from_when_it_is_built_and_again_at_the_next_start(tmp_path: Path) -> None:
    rows = tmp_path / "runtimes.toml"
    rows.write_text(
        '[[runtimes]]\nname = "own/plain"\nversion = "1"\nrequirements = []\nimports = ["decimal"]\n'
    )
    job = pool(python("import sys; print('decimal' in sys.modules)"))
    job["containerSpec"]["imageUri"] = "own/plain"
    with LiveServer("--runtimes", str(rows), "--warm", "own/plain") as live:
        assert interpreter(live) == {}
        first = live.submit(pools=[job])
        assert live.wait(first)["state"] == "JOB_STATE_SUCCEEDED"
        for _ in range(2):
            until(
                lambda: interpreter(live).get("state") == "WARM",
                "the warm interpreter of a runtime just built, or found",
            )
            again = live.submit(pools=[job])
            assert live.wait(again)["state"] == "JOB_STATE_SUCCEEDED"
            assert [row["text"] for row in live.lines(again)] == ["True"]
            assert "Forked" in running_event(live, again)
            live.restart()


def test_warm_programs_outlive_a_killed_server_and_its_warm_interpreter_does_not(server: LiveServer) -> None:
    first = server.submit(waits_for(server, "go", "sys.exit(0)"))
    second = server.submit(waits_for(server, "go", "sys.exit(77)"))
    pids = [begun(server, job) for job in (first, second)]
    old = interpreter_pid(server)
    server.kill()
    until(lambda: not alive(old), "the end of the warm interpreter")
    assert all(map(alive, pids))
    (server.base / "go").touch()
    until(lambda: not any(map(alive, pids)), "the end of the programs")
    server.start()
    assert server.wait(first)["state"] == "JOB_STATE_SUCCEEDED"
    assert server.wait(second)["state"] == "JOB_STATE_FAILED"
    assert "77" in server.job(second)["error"]["message"]
    until(lambda: interpreter(server).get("state") == "WARM", "another warm interpreter")


def test_cancelling_a_warm_job_kills_all_of_it(server: LiveServer) -> None:
    escape = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork(): os._exit(0)\n"
        "os.write(1, f'begun {os.getpid()}\\n'.encode())\n"  # at once: two of them write into one file
        "time.sleep(1000)"
    )
    job = server.submit(pools=[pool(python(escape), replicas=2)])
    until(lambda: len(server.lines(job)) == 4, "both and their escapees")
    pids = [int(row["text"].split()[1]) for row in server.lines(job)]
    server.cancel(job)
    assert server.wait(job)["state"] == "JOB_STATE_CANCELLED"
    until(lambda: not any(map(alive, pids)), "the end of all")


def test_a_warm_interpreter_killed_with_sigkill_costs_nobody_anything(server: LiveServer) -> None:
    job = server.submit(waits_for(server, "go", "sys.exit(0)"))
    begun(server, job)
    old = interpreter_pid(server)
    os.kill(old, signal.SIGKILL)
    assert server.wait(server.submit(python("print('meanwhile')")))["state"] == "JOB_STATE_SUCCEEDED"
    (server.base / "go").touch()
    assert server.wait(job)["state"] == "JOB_STATE_SUCCEEDED"
    until(
        lambda: interpreter(server).get("state") == "WARM" and interpreter_pid(server) != old,
        "another warm interpreter",
    )


def test_a_server_that_stops_takes_its_warm_interpreter_along(server: LiveServer) -> None:
    old = interpreter_pid(server)
    assert server.stop() == 0
    assert not alive(old)
    server.start()


def test_the_list_of_runtimes_shows_what_warmth_costs(server: LiveServer) -> None:
    env = {**os.environ, "TRAINSHED_HOME": str(server.home), "NO_COLOR": "1"}
    command = [sys.executable, "-m", "trainshed.cli", "runtimes", "ls"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    head, *rows = done.stdout.splitlines()
    column = head.index("WARM")
    [row] = [row for row in rows if " trainshed/python " in row]
    assert row[column:].split()[0][0].isdigit()


@pytest.mark.parametrize("name", ["no/such-runtime", "venv/bin/python=torch", "/bin/python=", "/python=a b"])
def test_what_cannot_be_kept_warm_is_refused_at_the_start(name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "trainshed.cli", "up", "--port", "0", "--home", str(tmp_path)]
    done = subprocess.run([*command, "--warm", name], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert name in done.stderr
