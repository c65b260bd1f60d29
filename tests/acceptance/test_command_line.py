"""The command line against a real server: `trainshed up` in one terminal, the rest in another."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PATIENCE = 60.0
HELLO = """
workerPoolSpecs:
- machineSpec: {machineType: n1-standard-4}
  replicaCount: 1
  containerSpec:
    imageUri: trainshed/python:3
    command: [python, -u, -c]
    args: [%s]
"""


@dataclass(frozen=True)
class Shell:
    home: Path
    environ: dict[str, str]

    def __call__(self, *args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "trainshed.cli", *args],
            env=self.environ,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def start(self, *args: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "trainshed.cli", *args],
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def job(self, program: str, name: str = "job.yaml") -> str:
        """The path of a job file whose one replica runs the program."""
        file = self.home.parent / name
        file.write_text(HELLO % json.dumps(program))
        return str(file)


def up(shell: Shell, log: Path) -> subprocess.Popen[bytes]:
    """Starts the server; returns once it says where it is."""
    note = shell.home / "server.json"
    with log.open("ab") as out:
        server = subprocess.Popen(
            [sys.executable, "-m", "trainshed.cli", "up", "--port", "0"],
            env=shell.environ,
            stdout=out,
            stderr=out,
        )
    until = time.monotonic() + PATIENCE
    while not (note.exists() and json.loads(note.read_text()).get("pid") == server.pid):
        assert server.poll() is None, f"the server ended:\n{log.read_text()}"
        assert time.monotonic() < until, f"the server does not come up:\n{log.read_text()}"
        time.sleep(0.05)
    return server


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    foreign = ("TRAINSHED_", "CLOUDSDK_", "GOOGLE_")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return Shell(tmp_path / "home", {**environ, "TRAINSHED_HOME": str(tmp_path / "home")})


@pytest.fixture
def trainshed(shell: Shell, tmp_path: Path) -> Iterator[Shell]:
    server = up(shell, tmp_path / "server.log")
    yield shell
    server.send_signal(signal.SIGTERM)
    assert server.wait(PATIENCE) in (0, -signal.SIGTERM), (tmp_path / "server.log").read_text()
    assert not (shell.home / "server.json").exists()


def test_a_job_is_submitted_followed_listed_shown_and_deleted(trainshed: Shell) -> None:
    followed = trainshed("submit", trainshed.job("print('hello')"), "--name", "greeting", "--follow")
    assert (followed.returncode, followed.stdout) == (0, "hello\n"), followed.stderr
    [listed] = json.loads(trainshed("ls", "--json").stdout)
    assert (listed["displayName"], listed["state"]) == ("greeting", "JOB_STATE_SUCCEEDED")
    assert "greeting" in trainshed("ls", "--state", "succeeded").stdout
    assert "SUCCEEDED" in trainshed("show", "greeting").stdout
    assert "SUBMITTED" in trainshed("events", "greeting").stdout
    assert trainshed("logs", "greeting").stdout == "hello\n"
    assert trainshed("wait", "greeting").returncode == 0
    assert trainshed("delete", "greeting").returncode == 0
    assert json.loads(trainshed("ls", "--json").stdout) == []


def test_a_followed_job_that_fails_gives_its_exit_code(trainshed: Shell) -> None:
    done = trainshed("submit", trainshed.job("import sys; print('no'); sys.exit(7)"), "-f")
    assert (done.returncode, done.stdout) == (7, "no\n"), done.stderr
    assert "FAILED" in done.stderr


def test_a_restarted_replica_shows_how_its_earlier_runs_ended(trainshed: Shell) -> None:
    mark = str(trainshed.home.parent)
    program = (
        f"import os, pathlib; runs = pathlib.Path({mark!r}, 'runs'); "
        "before = len(runs.read_text()) if runs.exists() else 0; "
        "runs.write_text('x' * (before + 1)); before == 2 or os.kill(os.getpid(), 9)"
    )
    done = trainshed("submit", trainshed.job(program), "--name", "again", "--follow")
    assert done.returncode == 0, done.stderr
    runs = json.loads(trainshed("show", "again", "--json").stdout)["earlierRuns"]
    assert [(run["run"], run["exit"]["signal"]) for run in runs] == [(0, 9), (1, 9)]
    shown = trainshed("show", "again").stdout
    assert "Earlier runs\n" in shown
    assert shown.count("was killed by signal 9 (SIGKILL)") >= 2


def test_a_job_from_stdin_runs_and_two_replicas_are_told_apart(trainshed: Shell) -> None:
    program = json.dumps("import os; print(os.environ['RANK'])")
    text = (HELLO % program).replace("replicaCount: 1", "replicaCount: 2")
    done = trainshed("submit", "-", "--follow", stdin=text)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["workerpool0-0 | 0", "workerpool0-1 | 1"]


def test_a_follower_that_is_interrupted_leaves_the_job_running(trainshed: Shell) -> None:
    file = trainshed.job("import time; print('here'); time.sleep(600)")
    follower = trainshed.start("submit", file, "--name", "long", "--follow")
    assert follower.stdout is not None
    while follower.stdout.readline() != "here\n":
        assert follower.poll() is None
    follower.send_signal(signal.SIGINT)
    said = follower.communicate(timeout=PATIENCE)[0]
    assert follower.returncode == 130
    assert "the job goes on" in said
    assert json.loads(trainshed("show", "long", "--json").stdout)["job"]["state"] == "JOB_STATE_RUNNING"
    assert trainshed("cancel", "long").returncode == 0
    assert trainshed("wait", "long").returncode == 1
    assert json.loads(trainshed("show", "long", "--json").stdout)["job"]["state"] == "JOB_STATE_CANCELLED"


def test_a_follower_outlasts_a_server_that_is_killed(shell: Shell, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    server = up(shell, log)
    url = json.loads((shell.home / "server.json").read_text())["url"]
    gate = tmp_path / "gate"
    waits = f"while not os.path.exists({str(gate)!r}): time.sleep(0.05)"
    program = f"import os, time\nprint('one')\n{waits}\nprint('two')"
    follower = shell.start("submit", shell.job(program), "--follow")
    assert follower.stdout is not None
    while follower.stdout.readline() != "one\n":
        assert follower.poll() is None
    server.kill()
    server.wait()
    again = ["up", "--port", url.rpartition(":")[2]]
    with log.open("ab") as out:
        server = subprocess.Popen(
            [sys.executable, "-m", "trainshed.cli", *again], env=shell.environ, stdout=out, stderr=out
        )
    try:
        gate.touch()
        rest = follower.communicate(timeout=PATIENCE)[0]
        assert follower.returncode == 0, rest + log.read_text()
        assert rest.splitlines()[0] == "two"
    finally:
        server.terminate()
        server.wait(PATIENCE)


def test_what_is_wrong_with_a_job_file_is_told_with_its_line(trainshed: Shell) -> None:
    file = Path(trainshed.job("print(1)"))
    file.write_text(file.read_text().replace("n1-standard-4", "n1-imaginary-4"))
    done = trainshed("submit", str(file))
    assert done.returncode == 1
    assert f"{file}:3: " in done.stderr
    assert json.loads(trainshed("ls", "--json").stdout) == []


def test_without_the_token_nobody_comes_in(trainshed: Shell) -> None:
    stranger = Shell(trainshed.home, {**trainshed.environ, "TRAINSHED_TOKEN": "guess"})
    done = stranger("ls")
    assert done.returncode == 1
    assert "the token comes from TRAINSHED_TOKEN" in done.stderr


def test_the_home_and_its_token_are_for_their_owner_only(trainshed: Shell) -> None:
    assert (trainshed.home / "token").stat().st_mode & 0o077 == 0
    variables = json.loads(trainshed("env", "--json").stdout)
    assert variables["CLOUDSDK_AUTH_ACCESS_TOKEN_FILE"] == str(trainshed.home / "token")
    assert Path(variables["CLOUDSDK_CONFIG"]).stat().st_mode & 0o077 == 0
