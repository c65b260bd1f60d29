"""`submit` of a program, `code`, `diff` and `retry --with-folder`, through a terminal and a pipe."""

import json
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.live import LiveServer

PATIENCE = 60.0
START = [sys.executable, "-c", "from trainshed.cli.main import main; main()"]
WHO = "import os, sys; print('rank', os.environ['RANK'], *sys.argv[1:])\n"


@dataclass(frozen=True)
class Person:
    """Somebody who stands in a folder and types."""

    server: LiveServer
    here: Path

    @property
    def environ(self) -> dict[str, str]:
        foreign = ("TRAINSHED_", "CLOUDSDK_", "GOOGLE_", "GIT_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        return {**kept, "TRAINSHED_HOME": str(self.server.home), "TERM": "xterm"}

    def __call__(self, *args: str, **more: Any) -> subprocess.CompletedProcess[str]:
        said: dict[str, Any] = {"cwd": self.here, "env": self.environ, "timeout": PATIENCE, **more}
        return subprocess.run(
            [*START, *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, **said
        )

    def write(self, **files: str) -> None:
        for name, text in files.items():
            (self.here / name.replace("__", ".")).write_text(text)

    def job(self, identity: str) -> Any:
        return json.loads(self("show", identity.strip(), "--json").stdout)["job"]

    def at_terminal(self, *args: str) -> "Screen":
        pid, screen = pty.fork()
        if pid == 0:
            os.chdir(self.here)
            os.execve(sys.executable, [*START, *args], self.environ)
        return Screen(pid, screen)


class Screen:
    def __init__(self, pid: int, screen: int) -> None:
        self.pid = pid
        self._screen = screen
        self.seen = ""

    def until(self, text: str) -> str:
        deadline = time.monotonic() + PATIENCE
        while text not in self.seen:
            assert time.monotonic() < deadline, self.seen
            assert self._read(), f"ended without {text!r}: {self.seen}"
        return self.seen

    def type(self, text: str) -> None:
        os.write(self._screen, text.encode())

    def end(self) -> int:
        while self._read():
            pass
        os.close(self._screen)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def _read(self) -> bool:
        assert select.select([self._screen], [], [], PATIENCE)[0], f"nothing more than: {self.seen}"
        try:
            came = os.read(self._screen, 1 << 16)
        except OSError:  # Linux says so when the other side has closed
            return False
        self.seen += came.decode(errors="replace")
        return bool(came)


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "16", "--memory", "64GiB") as found:
        yield found


@pytest.fixture
def person(server: LiveServer, tmp_path: Path) -> Person:
    here = tmp_path / "program"
    here.mkdir()
    found = Person(server, here)
    found.write(train__py=WHO)
    return found


def test_a_script_is_packed_sent_run_and_followed_in_a_pipe(person: Person) -> None:
    person.write(train__py=f"# {time.time_ns()}: the server has not seen this one\n{WHO}")
    done = person(
        "submit", "train.py", "--replicas", "3", "--machine", "n1-standard-1", "--", "--epochs", "5"
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        "workerpool0-0 | rank 0 --epochs 5",
        "workerpool1-0 | rank 1 --epochs 5",
        "workerpool1-1 | rank 2 --epochs 5",
    ]
    assert "packed 1 file, " in done.stderr
    assert "sent 1 file, " in done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    again = person("submit", "train.py", "--detach")
    assert "\nsent " not in again.stderr
    pools = person.job(again.stdout)["jobSpec"]["workerPoolSpecs"]
    assert len(pools) == 1


def test_at_a_terminal_each_replica_has_its_colour(person: Person) -> None:
    screen = person.at_terminal("submit", "train.py", "--replicas", "2", "--machine", "n1-standard-1")
    assert screen.end() == 0, screen.seen
    colours = re.findall(r"\x1b\[(\d+)m(workerpool\d-0) \|\x1b\[0m rank", screen.seen)
    assert {task for _, task in colours} == {"workerpool0-0", "workerpool1-0"}
    assert len({colour for colour, _ in colours}) == 2
    assert "SUCCEEDED" in screen.seen


def test_ctrl_c_detaches_and_says_how_to_come_back(person: Person) -> None:
    person.write(train__py="import time; print('here', flush=True); time.sleep(600)")
    screen = person.at_terminal("submit", "train.py", "--name", "long one")
    screen.until("here")
    screen.type("\x03")
    assert screen.end() == 130
    [identity] = re.findall(r"trainshed logs -f (\d+)", screen.seen)
    assert f"trainshed cancel {identity}" in screen.seen
    assert person.job(identity)["state"] == "JOB_STATE_RUNNING"
    assert person("cancel", identity).returncode == 0


def test_the_exit_code_is_the_jobs_own(person: Person) -> None:
    person.write(bad__py="raise SystemExit(7)")
    assert person("submit", "bad.py").returncode == 7
    detached = person("submit", "bad.py", "--json", "--detach")
    identity = json.loads(detached.stdout)["name"].rpartition("/")[2]
    assert person("wait", identity).returncode == 7


def test_every_kind_of_program_starts_where_the_person_stands(person: Person) -> None:
    deep = person.here / "deep är"
    (deep / "pkg").mkdir(parents=True)
    (deep / "pkg" / "__main__.py").write_text("print(open('data.txt').read(), 'folder')")
    (deep / "pkg" / "mod.py").write_text("print(open('data.txt').read(), 'module')")
    (deep / "s p.py").write_text("print(open('data.txt').read(), 'script')")
    (deep / "run").write_text('#!/bin/sh\ncat data.txt; echo " program $1"\n')
    (deep / "run").chmod(0o755)
    (deep / "plain.sh").write_text("cat data.txt; echo ' shell'\n")
    (deep / "data.txt").write_text("däta")
    subprocess.run(["git", "init", "-q", str(person.here)], check=True)
    there = Person(person.server, deep)
    for args, said in (
        (("s p.py",), "däta script"),
        (("pkg",), "däta folder"),
        (("-m", "pkg.mod"), "däta module"),
        (("run", "--", "a b"), "däta program a b"),
        (("plain.sh",), "däta shell"),
    ):
        done = there("submit", *args)
        assert (done.returncode, done.stdout) == (0, f"{said}\n"), done.stderr
        assert f"of {person.here}" in done.stderr


def test_a_yaml_file_stays_what_it_was(person: Person) -> None:
    person.write(job__yaml=YAML)
    done = person("submit", "job.yaml")
    assert done.returncode == 0
    assert re.fullmatch(r"\d+\n", done.stdout)
    assert "packed" not in done.stderr
    followed = person("submit", "job.yaml", "--follow")
    assert (followed.returncode, followed.stdout) == (0, "hello\n")
    assert person("submit", "job.yaml", "--detach").stdout.strip().isdigit()
    refused = person("submit", "job.yaml", "--replicas", "2")
    assert refused.returncode == 2
    assert "--replicas" in refused.stderr


YAML = """
workerPoolSpecs:
- machineSpec: {machineType: n1-standard-1}
  containerSpec: {imageUri: "trainshed/python:3", command: [echo, hello]}
"""


def sparse(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.truncate(size)


def test_a_large_file_is_asked_about_at_a_terminal_and_refused_in_a_pipe(person: Person) -> None:
    sparse(person.here / "big.bin", 100_000_001)
    refused = person("submit", "train.py")
    assert refused.returncode == 1
    assert "big.bin has 100 MB" in refused.stderr
    assert "--yes" in refused.stderr
    screen = person.at_terminal("submit", "train.py")
    screen.until("[y/N]")
    screen.type("\n")
    assert screen.end() == 1
    assert "nothing was submitted" in screen.seen
    screen = person.at_terminal("submit", "train.py")
    screen.until("[y/N]")
    screen.type("y\n")
    assert screen.end() == 0, screen.seen
    assert person("submit", "train.py", "--yes").returncode == 0
    assert person("submit", "train.py", "--exclude", "*.bin").returncode == 0


def test_ctrl_c_before_the_job_is_there_submits_nothing(person: Person) -> None:
    sparse(person.here / "big.bin", 100_000_001)
    screen = person.at_terminal("submit", "train.py", "--name", "never")
    screen.until("[y/N]")
    screen.type("\x03")
    assert screen.end() == 130
    assert "before the job was submitted" in screen.seen
    assert json.loads(person("ls", "--json", "--filter", 'display_name="never"').stdout or "[]") == []


def test_the_code_of_a_job_comes_back_byte_for_byte(person: Person, tmp_path: Path) -> None:
    person.write(a__py="print(1)\n", empty="")
    (person.here / "ü b").mkdir()
    (person.here / "ü b" / "run me").write_bytes(bytes(range(256)))
    (person.here / "ü b" / "run me").chmod(0o755)
    (person.here / "link").symlink_to("ü b/run me")
    identity = person("submit", "train.py", "--detach").stdout.strip()
    person.write(a__py="print(2)\n")
    done = person("code", identity, str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    out = tmp_path / "out"
    assert (out / "a.py").read_text() == "print(1)\n"
    assert (out / "empty").read_bytes() == b""
    assert (out / "ü b" / "run me").read_bytes() == bytes(range(256))
    assert os.access(out / "ü b" / "run me", os.X_OK)
    assert os.readlink(out / "link") == "ü b/run me"
    assert sorted(os.listdir(out)) == ["a.py", "empty", "link", "train.py", "ü b"]
    (out / "mine").write_text("x")
    assert person("code", identity, str(out)).returncode == 1
    (out / "a.py").write_text("spoilt")
    assert person("code", identity, str(out), "--force").returncode == 0
    assert (out / "a.py").read_text() == "print(1)\n"
    assert (out / "mine").exists()
    listed = person("code", identity, "--list").stdout.splitlines()
    assert listed[0].split() == ["100644", "9", "a.py"]
    told = json.loads(person("code", identity, "--json").stdout)
    assert Path(told["folder"]) == person.here / identity
    manifest = json.loads(person("code", identity, "--list", "--json").stdout)
    assert manifest["code"] == told["code"] == person.job(identity)["jobSpec"]["code"]


def test_a_job_without_a_folder_has_no_code(person: Person) -> None:
    person.write(job__yaml=YAML)
    identity = person("submit", "job.yaml").stdout.strip()
    refused = person("code", identity)
    assert refused.returncode == 1
    assert "without a folder" in refused.stderr


def test_two_jobs_are_compared_as_diff_compares(person: Person) -> None:
    person.write(a__py="one\ntwo\n", gone="x", mode="m")
    (person.here / "bin").write_bytes(b"\0\1")
    first = person("submit", "train.py", "--detach").stdout.strip()
    person.write(a__py="one\n2", new="y\n")
    (person.here / "bin").write_bytes(b"\0\2")
    (person.here / "gone").unlink()
    (person.here / "mode").chmod(0o755)
    second = person("submit", "train.py", "--detach", "--label", "x=y", "--timeout", "1h").stdout.strip()
    done = person("diff", first, second)
    assert done.returncode == 1
    for line in ('+ labels.x: "y"', '  scheduling.timeout: "604800s" -> "3600s"', "-two", "+2"):
        assert line in done.stdout.splitlines()
    for text in (
        "\\ No newline",
        "--- a/a.py",
        "binary files a/bin and b/bin differ",
        "mode of mode: 100644 -> 100755",
    ):
        assert text in done.stdout
    assert "removed: gone" in done.stdout
    assert "added: new" in done.stdout
    assert "\x1b" not in done.stdout
    same = person("diff", first, first)
    assert (same.returncode, same.stdout) == (0, "")
    told = json.loads(person("diff", first, second, "--json").stdout)
    changes = {one["path"]: one["change"] for one in told["files"]}
    assert changes == {"a.py": "changed", "bin": "changed", "gone": "removed", "mode": "mode", "new": "added"}
    assert person("diff", first, "nobody").returncode == 2
    screen = person.at_terminal("diff", first, second)
    assert screen.end() == 1
    assert "\x1b[31m-two" in screen.seen


def test_a_retry_runs_the_files_of_then_or_those_of_today(person: Person) -> None:
    person.write(train__py="print('then')")
    first = person("submit", "train.py", "--detach").stdout.strip()
    person.write(train__py="print('today')")
    assert person("retry", first, "--follow").stdout == "then\n"
    assert person("retry", first, "--with-folder", "--follow").stdout == "today\n"
    elsewhere = Person(person.server, person.here.parent)
    assert elsewhere("retry", first, "--follow", "--with-folder", str(person.here)).stdout == "today\n"
    assert elsewhere("retry", first, "--with-folder", "nowhere").returncode == 1


def test_names_that_talk_to_the_terminal_are_shown_and_not_obeyed(person: Person) -> None:
    person.write(**{"a\x1b]0;title\x07\x1b[2Jb\nc": ""})
    identity = person("submit", "train.py", "--detach").stdout.strip()
    listed = person.at_terminal("code", identity, "--list")
    assert listed.end() == 0
    assert "ab^Jc" in listed.seen
    (person.here / "out\x1b[2J").symlink_to("/")
    refused = person.at_terminal("submit", "train.py")
    assert refused.end() == 1
    assert "\x1b[2J" not in listed.seen + refused.seen
    assert "\x1b" in person("code", identity, "--list").stdout  # into a pipe it goes as it is


def test_a_dry_run_sends_nothing_and_says_whether_it_would_start(person: Person) -> None:
    done = person("submit", "train.py", "--dry-run", "--name", "dry")
    assert done.returncode == 0
    assert "would start now" in done.stdout
    assert person("show", "dry").returncode == 1


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("nope.py",), 1, "there is no nope.py"),
        (("trian.py",), 1, "did you mean train.py?"),
        (("train.py", "--epochs", "5"), 2, "goes behind --"),
        (("train.py", "5"), 2, "goes behind --"),
        (("train.py", "--machine", "huge"), 1, '--machine: "huge" is not a known machine type'),
        (("train.py", "--runtime", "nope:1"), 1, "--runtime: Image 'nope:1'"),
        (("train.py", "--follow", "--detach"), 2, "exclude each other"),
        (("train.py", "--exclude", "*", "--folder", "empty"), 2, "is not in the folder"),
        (("-m", "x", "--folder", "empty"), 1, "no files to pack"),
        (("train.py", "--url", "http://127.0.0.1:1"), 1, "no server answers"),
        (("train.py", "--url", "nonsense"), 1, "not the address of a server"),
        ((), 2, "say what to run"),
    ],
)
def test_what_is_wrong_is_said_with_what_helps(
    person: Person, args: tuple[str, ...], code: int, said: str
) -> None:
    (person.here / "empty").mkdir()
    done = person("submit", *args)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unreadable_file_is_named(person: Person) -> None:
    if os.geteuid() == 0:
        pytest.skip("root reads everything")
    person.write(secret="x")
    (person.here / "secret").chmod(0)
    refused = person("submit", "train.py")
    assert refused.returncode == 1
    assert "secret" in refused.stderr


def test_a_reader_that_goes_away_ends_the_command_and_not_the_job(person: Person) -> None:
    person.write(train__py="import time\nwhile True: print('x' * 1000, flush=True); time.sleep(0.01)")
    follower = subprocess.Popen(
        [*START, "submit", "train.py", "--name", "chatty"],
        cwd=person.here,
        env=person.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    )
    assert follower.stdout is not None
    assert follower.stderr is not None
    follower.stdout.readline()
    follower.stdout.close()
    said = follower.stderr.read()
    follower.stderr.close()
    assert follower.wait(PATIENCE) == 141, said
    assert b"Traceback" not in said
    assert person("cancel", "chatty").returncode == 0


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("words", ["submit train.py", "submit train.py --detach --json", "ls", "runtimes ls"])
def test_streams_that_are_closed_from_the_start_change_nothing_but_what_is_read(
    person: Person, words: str, closed: str
) -> None:
    line = f"{shlex.join([*START, *words.split()])} {closed}"
    done = subprocess.run(
        ["sh", "-c", line],
        cwd=person.here,
        env=person.environ,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr


def test_words_that_are_no_utf_8_are_answered_with_a_sentence(person: Person) -> None:
    for words in (("show", "\udcff"), ("ls", "--filter", "state=\udcff"), ("runtimes", "build", "\udcff")):
        done = person(*words)
        assert (done.returncode, done.stderr[:6]) == (1, "error:"), done.stderr


@pytest.mark.fault(
    "The server",
    "The server is killed in the middle of a submit",
    "The command sends it again. There is one job, not two.",
)
def test_a_submit_outlasts_a_server_that_is_killed_in_the_middle_of_it(
    person: Person, tmp_path: Path
) -> None:
    with LiveServer() as own:
        there = Person(own, person.here)
        for number in range(40):
            (person.here / f"part{number}.bin").write_bytes(os.urandom(1 << 20))
        begun = subprocess.Popen(
            [*START, "submit", "train.py", "--detach"],
            cwd=there.here,
            env={**there.environ, "TRAINSHED_URL": own.url},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        deadline = time.monotonic() + PATIENCE
        while not any((own.home).rglob("*")) or not _kept(own.home):
            assert time.monotonic() < deadline
            assert begun.poll() is None, begun.communicate()
            time.sleep(0.005)
        own.kill()
        own.start()
        out, err = begun.communicate(timeout=PATIENCE)
        assert begun.returncode == 0, err
        assert own.wait(there.job(out)["name"])["state"] == "JOB_STATE_SUCCEEDED"
        jobs = json.loads(there("ls", "--json").stdout)
        assert len(jobs) == 1
        assert there("code", out.strip(), str(tmp_path / "back")).returncode == 0
        back = tmp_path / "back"
        assert all((back / p.name).read_bytes() == p.read_bytes() for p in person.here.glob("*.bin"))


def _kept(home: Path) -> bool:
    """Whether something of the folder has reached the server's disk."""
    return sum(path.stat().st_size for path in home.rglob("code/**/*") if path.is_file()) > 1 << 20


def test_sigterm_ends_the_follower_and_not_the_job(person: Person) -> None:
    person.write(train__py="import time; print('here', flush=True); time.sleep(600)")
    screen = person.at_terminal("submit", "train.py", "--name", "stays")
    screen.until("here")
    os.kill(screen.pid, signal.SIGTERM)
    assert screen.end() == -signal.SIGTERM
    assert person.job("stays")["state"] == "JOB_STATE_RUNNING"
    assert person("cancel", "stays").returncode == 0
