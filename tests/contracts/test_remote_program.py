"""What starts programs in other replicas: whom it serves, what it passes on, what ends with a connection."""

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.live import PATIENCE, until
from tests.network import needs_ipv6
from trainshed.backends.machine.remote import NO_REMOTE, remote_program

SECRET = "5" * 64
Run = subprocess.CompletedProcess[bytes]


@dataclass
class Bench:
    program: str
    folder: Path
    port: int = 0
    env: dict[str, str] = field(default_factory=dict[str, str])
    children: list["subprocess.Popen[bytes]"] = field(default_factory=list["subprocess.Popen[bytes]"])

    def __post_init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = probe.getsockname()[1]
        hosts = f"workerpool1-0,pi-worker-0=127.0.0.1:{self.port}"
        secret = {"TRAINSHED_REMOTE_SECRET": SECRET, "TRAINSHED_REMOTE_HOSTS": hosts}
        self.env = {"PATH": os.environ["PATH"], **secret}

    def start(self, *words: str, **env: str) -> "subprocess.Popen[bytes]":
        pipe = subprocess.PIPE
        command, env = [self.program, *words], self.env | env
        child = subprocess.Popen(
            command, env=env, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
        )
        self.children.append(child)
        return child

    def serve(self, *program: str) -> "subprocess.Popen[bytes]":
        server = self.start("--serve", "workerpool1-0", "127.0.0.1", str(self.port), *program)
        until(self.listens)
        return server

    def listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def run(self, *words: str, feed: bytes = b"", **env: str) -> Run:
        """What it says as the remote shell."""
        command, env = [self.program, *words], self.env | env
        return subprocess.run(
            command, env=env, input=feed, capture_output=True, timeout=PATIENCE, check=False
        )

    def close(self) -> None:
        for child in self.children:
            with child, contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)


@pytest.fixture
def bench(tools: Path, tmp_path: Path) -> Iterator[Bench]:
    program, note = remote_program(tools)
    if note:
        pytest.skip(note)
    bench = Bench(program, tmp_path)
    yield bench
    bench.close()


@needs_ipv6
def test_whoever_listens_everywhere_is_reached_by_addresses_of_both_kinds(bench: Bench):
    bench.start("--serve", "workerpool1-0", "::", str(bench.port))
    until(bench.listens)
    for address in ("127.0.0.1", "[::1]"):
        hosts = f"workerpool1-0=nobody.example:1 workerpool1-1={address}:{bench.port}"
        assert bench.run("workerpool1-1", "echo here", TRAINSHED_REMOTE_HOSTS=hosts).stdout == b"here\n"


def lives(pid: str) -> bool:
    """A zombie has ended."""
    try:
        return " Z " not in Path(f"/proc/{int(pid)}/stat").read_text()
    except FileNotFoundError:
        return False


def test_a_command_gets_its_input_and_its_output_and_exit_status_come_back(bench: Bench):
    bench.serve()
    done = bench.run("workerpool1-0", "cat;", "echo", "$0 more >&2;", "exit 7", feed=b"given\n" * 100_000)
    assert (done.returncode, done.stdout, done.stderr) == (7, b"given\n" * 100_000, b"sh more\n")
    assert bench.run("workerpool1-0", "kill -9 $$").returncode == 128 + 9


@pytest.mark.parametrize(
    "words",
    [
        ("-x", "workerpool1-0"),
        (
            "-x",
            "-l",
            "somebody",
            "-oBatchMode=yes",
            "-o",
            "StrictHostKeyChecking=no",
            "workerpool1-0",
            "-p",
            "22",
        ),
        ("-q", "root@pi-worker-0.pi.default.svc", "-T"),
    ],
)
def test_the_options_of_ssh_are_understood_and_not_heeded(bench: Bench, words: tuple[str, ...]):
    bench.serve()
    assert bench.run(*words, "echo", "here").stdout == b"here\n"


def test_many_run_at_once(bench: Bench):
    bench.serve()
    callers = [bench.start("workerpool1-0", f"sleep 0.2; echo {number}") for number in range(20)]
    assert [caller.communicate(timeout=PATIENCE)[0] for caller in callers] == [
        f"{number}\n".encode() for number in range(20)
    ]


def test_a_wrong_secret_gets_nothing(bench: Bench):
    bench.serve()
    mark = bench.folder / "mark"
    for secret in ("6" * 64, "5" * 63, "", SECRET + "5"):
        done = bench.run("workerpool1-0", f"touch {mark}", TRAINSHED_REMOTE_SECRET=secret)
        assert (done.returncode, done.stdout) == (255, b"")
        assert b"workerpool1-0 cannot be reached" in done.stderr
    with socket.create_connection(("127.0.0.1", bench.port)) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
        stranger.settimeout(PATIENCE)
        with contextlib.suppress(ConnectionResetError):  # it hangs up without reading the rest
            assert stranger.recv(1) == b""
    assert not mark.exists()
    assert bench.run("workerpool1-0", "true").returncode == 0


def test_without_a_secret_it_does_not_begin(bench: Bench):
    server = bench.start("--serve", "a", "127.0.0.1", str(bench.port), TRAINSHED_REMOTE_SECRET="")
    assert server.wait(PATIENCE) == 125
    assert b"TRAINSHED_REMOTE_SECRET is not set" in server.communicate()[1]


def test_all_that_a_command_started_ends_when_its_connection_breaks(bench: Bench):
    bench.serve()
    note = bench.folder / "pids"
    stubborn = "setsid sh -c 'trap \"\" TERM; sleep 600'"
    script = f"{stubborn} & echo $! $$ > {note}; (sleep 600 & echo $! >> {note}); wait"
    caller = bench.start("workerpool1-0", script)
    until(lambda: note.exists() and len(note.read_text().split()) == 3)
    pids = note.read_text().split()
    assert all(map(lives, pids))
    caller.kill()
    until(lambda: not any(map(lives, pids)))


def test_what_a_command_leaves_behind_stays_when_it_ends_by_itself(bench: Bench):
    bench.serve()
    done = bench.run("workerpool1-0", "setsid sleep 600 >/dev/null 2>&1 </dev/null & echo $!")
    assert done.returncode == 0
    try:
        assert lives(done.stdout.decode())
    finally:
        os.kill(int(done.stdout), signal.SIGKILL)


def test_a_server_ends_with_the_program_beside_it(bench: Bench):
    server = bench.serve("sh", "-c", "sleep 1; exit 5")
    assert bench.run("workerpool1-0", "echo there").stdout == b"there\n"
    assert server.wait(PATIENCE) == 5


def test_a_host_that_is_none_of_the_job_is_named(bench: Bench):
    done = bench.run("elsewhere", "true")
    assert done.returncode == 255
    assert b"'elsewhere' is none of the replicas" in done.stderr
    assert b"opens no shells" in bench.run("workerpool1-0").stderr


def test_a_program_begins_once_all_others_answer_and_finds_the_list(bench: Bench):
    place = bench.folder / "hosts"
    launched = bench.start(
        "--launch", str(place), "60", "cat", str(place), TRAINSHED_REMOTE_LIST="one slots=2\n"
    )
    time.sleep(0.3)
    assert launched.poll() is None
    bench.serve()
    out, err = launched.communicate(timeout=PATIENCE)
    assert (launched.returncode, out, err) == (0, b"one slots=2\n", b"")


def test_a_program_is_not_started_where_others_do_not_answer(bench: Bench):
    done = bench.run("--launch", str(bench.folder / "hosts"), "1", "echo", "begun")
    assert (done.returncode, done.stdout) == (1, b"")
    why = "workerpool1-0 does not answer after 1 s (Connection refused), so the program is not started"
    assert done.stderr.decode() == f"trainshed: {why}\n"
    nowhere = bench.run("--launch", str(bench.folder / "no" / "hosts"), "1", "true")
    assert b"the list of hosts cannot be written to" in nowhere.stderr


def test_where_there_is_no_compiler_a_note_says_what_is_missing(tmp_path: Path):
    assert remote_program(tmp_path, "no-compiler") == (str(tmp_path / "remote"), NO_REMOTE)
