"""Shells on a real server: who may, what a WebSocket carries, `trainshed shell` on terminals and pipes."""

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults import Sentence
from tests.live import LOCATION, PATIENCE, PROJECT, LiveServer, by_id, pool, python, until
from trainshed.client.errors import ApiError
from trainshed.client.websocket import WebSocket

STAYS = python("open('note', 'w').write('here'); import time; print('up', flush=True); time.sleep(1000)")
PROTOCOL = "trainshed.shell"
FLAGS = ("--cpus", "64", "--memory", "512GiB", "--engine", "none")
NO_PROFILE = {
    "HOME": "/nonexistent"
}  # else bash runs the .bashrc of whoever tests, which may wait for a lock
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer(*FLAGS, env=NO_PROFILE) as server:
        yield server


@pytest.fixture(scope="module")
def job(server: LiveServer) -> str:
    name = server.submit(pools=[pool(STAYS), pool(STAYS)])
    runs(server, name, 2)
    return name


def runs(server: LiveServer, name: str, replicas: int = 1) -> None:
    """Wait for a line of each replica. Its program may write one before the server has seen that it runs."""
    until(lambda: len(server.lines(name)) == replicas)
    server.wait_for(name, ["JOB_STATE_RUNNING"])


def path(job: str, task: str = "workerpool0-0") -> str:
    return f"/shell/{PROJECT}/{LOCATION}/{by_id(job)}/{task}"


def a_ticket(server: LiveServer, job: str, origin: str = "", **wish: object) -> str:
    headers = {"Origin": origin} if origin else {}
    answer = server.request("POST", f"/v1/{job}:shell", wish, headers=headers)
    assert answer.status == 200, answer.body
    return answer.json["ticket"]


def knock(server: LiveServer, where: str, ticket: str, origin: str = "") -> int:
    """The status with which a WebSocket begins, or does not."""
    headers = {**UPGRADE, "Sec-WebSocket-Protocol": f"{PROTOCOL}, {ticket}"}
    if origin:
        headers["Origin"] = origin
    return server.request("GET", where, headers=headers, token=None).status


def said(socket: WebSocket, enough: str = "\0never") -> tuple[str, dict[str, object]]:
    """All that is printed, until that much is there or it is over; and the last words."""
    printed, words = b"", dict[str, object]()
    deadline = time.monotonic() + PATIENCE
    while not socket.is_over and enough not in printed.decode(errors="replace"):
        assert time.monotonic() < deadline, printed
        select.select([socket], [], [], 1)
        for message in socket.hear():
            if isinstance(message, bytes):
                printed += message
            else:
                words |= json.loads(message)
        socket.flush()
    return printed.decode(errors="replace"), words


# Who may


def test_a_ticket_is_given_to_those_who_may_cancel(server: LiveServer, job: str):
    assert server.request("POST", f"/v1/{job}:shell", {}, token=None).status == 403
    assert server.request("POST", f"/v1/{job}:shell", {}, token="x" * 40).status == 401
    answer = server.request("POST", f"/v1/{job}:shell", {})
    assert answer.status == 200
    assert answer.json["path"] == path(job) and answer.json["task"] == "workerpool0-0"


def test_a_jobs_own_token_opens_no_shell(server: LiveServer, job: str):
    socket = WebSocket(server.url, path(job), (PROTOCOL, a_ticket(server, job, command=["env"])))
    printed, _ = said(socket)
    socket.close()
    own = re.search(r"/t/(\S+?)(?:/|\s)", printed)
    assert own is not None, printed
    assert server.request("POST", f"/v1/{job}:shell", {}, token=own[1]).status in (401, 403)


def test_a_page_of_another_site_gets_neither_ticket_nor_conversation(server: LiveServer, job: str):
    evil = "http://evil.example"
    assert server.request("POST", f"/v1/{job}:shell", {}, headers={"Origin": evil}).status == 403
    assert knock(server, path(job), a_ticket(server, job), evil) == 403


def test_a_conversation_wants_a_ticket_and_takes_it_once(server: LiveServer, job: str):
    assert knock(server, path(job), "guessed") == 403
    assert server.request("GET", path(job), headers=UPGRADE, token=None).status == 403
    ticket = a_ticket(server, job)
    assert knock(server, path(job), ticket) == 101
    assert knock(server, path(job), ticket) == 403


def test_a_ticket_is_good_for_its_page_and_its_replica_only(server: LiveServer, job: str):
    assert knock(server, path(job), a_ticket(server, job, server.url)) == 403
    assert knock(server, path(job), a_ticket(server, job), server.url) == 403
    assert knock(server, path(job, "workerpool1-0"), a_ticket(server, job)) == 403
    assert knock(server, path(job), a_ticket(server, job, server.url), server.url) == 101


def test_elsewhere_there_are_no_conversations(server: LiveServer, job: str):
    assert knock(server, "/healthz", a_ticket(server, job)) == 404
    assert knock(server, f"/v1/{job}", a_ticket(server, job)) == 404


def test_a_wish_is_checked_with_every_violation(server: LiveServer, job: str):
    wish = {"command": "ls", "screen": {"rows": 0, "columns": 80}}
    answer = server.request("POST", f"/v1/{job}:shell", wish)
    assert answer.status == 400
    assert set(answer.violations) == {"command", "screen.rows"}


def test_a_job_that_has_ended_has_no_shells_and_ends_those_it_had(server: LiveServer):
    name = server.submit(STAYS)
    runs(server, name)
    screen = {"rows": 10, "columns": 40}
    open_, unused = a_ticket(server, name, screen=screen), a_ticket(server, name)
    socket = WebSocket(server.url, path(name), (PROTOCOL, open_))
    said(socket, "$" if os.geteuid() else "#")
    server.cancel(name)
    _, words = said(socket)
    assert words["exit"] == 137
    server.wait(name)
    late = WebSocket(server.url, path(name), (PROTOCOL, unused))
    assert "is over" in str(said(late)[1]["error"])
    refused = server.request("POST", f"/v1/{name}:shell", {})
    assert refused.status == 400 and "is over" in refused.error["message"]
    for one in (socket, late):
        one.close()


# What passes


def test_bytes_pass_both_ways_and_the_exit_code_comes_last(server: LiveServer, job: str):
    wish = {"command": ["sh"], "screen": {"rows": 30, "columns": 90}}
    socket = WebSocket(server.url, path(job), (PROTOCOL, a_ticket(server, job, **wish)))
    socket.say(b"stty size; cat note; exit 12\n")
    socket.flush()
    printed, words = said(socket)
    socket.close()
    assert "30 90" in printed and "here" in printed
    assert words == {"exit": 12}


def test_words_that_are_none_end_the_conversation_with_a_sentence(server: LiveServer, job: str):
    socket = WebSocket(server.url, path(job), (PROTOCOL, a_ticket(server, job, command=["cat"])))
    socket.say("nonsense")
    socket.flush()
    assert "must be JSON" in str(said(socket)[1]["error"])
    socket.close()


def test_a_program_that_floods_costs_the_server_no_memory(server: LiveServer, job: str):
    words = ["sh", "-c", "echo flood-of-a-test; exec yes"]
    socket = WebSocket(server.url, path(job), (PROTOCOL, a_ticket(server, job, command=words)))
    said(socket, "flood-of-a-test")
    before = _memory(server.pid)
    time.sleep(2)  # in which it would print gigabytes
    assert _memory(server.pid) - before < 32 << 20
    socket.close()
    until(lambda: not [one for one in server.commands() if one.startswith("yes")])


def test_a_page_is_sent_no_more_than_it_says_it_has_taken(server: LiveServer, job: str):
    words = ["sh", "-c", "read begin; exec head -c 3000000 /dev/zero"]
    socket = WebSocket(server.url, path(job), (PROTOCOL, a_ticket(server, job, command=words)))
    socket.say(json.dumps({"taken": "0"}))
    socket.say(b"begin\n")
    socket.flush()
    got = 0
    while select.select([socket], [], [], 0.5 if got else PATIENCE)[0]:
        got += sum(len(one) for one in socket.hear() if isinstance(one, bytes))
    assert 256 << 10 < got < 1 << 20
    socket.say(json.dumps({"taken": str(1 << 40)}))
    socket.flush()
    printed, told = said(socket)
    assert (got + len(printed), told) == (3_000_000, {"exit": 0})
    socket.close()


def test_who_goes_away_hangs_up(server: LiveServer, job: str):
    words = ["sh", "-c", "echo began; exec sleep 4242"]
    socket = WebSocket(server.url, path(job), (PROTOCOL, a_ticket(server, job, command=words)))
    said(socket, "began")
    socket.close()
    until(lambda: not [one for one in server.commands() if "sleep 4242" in one])


def test_a_server_that_ends_says_so_and_leaves_no_shell(server: LiveServer, job: str):
    name = server.submit(STAYS)
    runs(server, name)
    words = ["sh", "-c", "trap '' HUP TERM; echo began; sleep 4243; sleep 4243"]
    socket = WebSocket(server.url, path(name), (PROTOCOL, a_ticket(server, name, command=words)))
    said(socket, "began")
    assert server.stop() == 0
    said(socket)
    socket.close()
    assert not [one for one in server.commands() if "4243" in one]
    assert "Traceback" not in server.said()
    server.start()


# The page


def test_the_page_is_open_holds_no_secret_and_lets_nothing_in(server: LiveServer, job: str):
    lead = server.request("GET", path(job), token=None)
    assert lead.status == 303 and lead.headers["location"].endswith("/shell?task=workerpool0-0")
    answer = server.request("GET", lead.headers["location"], token=None)
    assert answer.status == 200 and answer.headers["content-type"].startswith("text/html")
    policy = answer.headers["content-security-policy"]
    assert (
        "default-src 'none'" in policy
        and "script-src 'self'" in policy
        and "frame-ancestors 'none'" in policy
    )
    assert server.token.encode() not in answer.body
    assert not re.search(rb"https?://", answer.body)
    for name in re.findall(rb"/console/files/([\w./-]+)", answer.body):
        if b"vendor/" not in name:
            assert server.request("GET", f"/console/files/{name.decode()}", token=None).status == 200
    for name in ("nothing.js", "..%2f__init__.py", "__init__.py"):
        assert server.request("GET", f"/console/files/x/{name}", token=None).status == 404


def test_a_job_with_web_access_tells_where_its_pages_are(server: LiveServer):
    name = server.submit(STAYS, spec={"enableWebAccess": True})
    uris = server.wait_for(name, ["JOB_STATE_RUNNING"])["webAccessUris"]
    assert uris == {"workerpool0-0": server.url + path(name)}
    server.cancel(name)
    assert "webAccessUris" not in server.wait(name)


# The command


def shell(server: LiveServer, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "trainshed.cli", "shell", *words],
        env=_environ(server),
        input=stdin,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )


def test_a_command_is_run_and_its_exit_code_is_ours(server: LiveServer, job: str):
    done = shell(server, job, "--", "sh", "-c", "cat note; exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (7, b"here", b"")
    assert shell(server, job, "workerpool1-0", "--", "sh", "-c", "kill -9 $$").returncode == 137


def test_what_is_piped_in_and_out_is_not_changed(server: LiveServer, job: str):
    sent = os.urandom(3_000_000)
    done = shell(server, job, "--", "cat", stdin=sent)
    assert (done.returncode, done.stdout == sent) == (0, True)


def test_a_script_on_stdin_is_run_by_the_shell(server: LiveServer, job: str):
    done = shell(server, job, stdin=b"cat note\nexit 3\n")
    assert (done.returncode, done.stdout) == (3, b"here")


def test_why_there_is_no_shell_is_said(server: LiveServer, job: str):
    done = shell(server, job, "workerpool4-0")
    assert done.returncode == 1 and b"has no replica 'workerpool4-0'" in done.stderr
    done = shell(server, job, "--", "no-such-program")
    assert done.returncode == 127 and b"cannot run 'no-such-program'" in done.stdout
    done = shell(server, job, "ls", "x")
    assert done.returncode == 2 and b"behind --" in done.stderr
    name = server.submit(python("pass"))
    server.wait(name)
    done = shell(server, name)
    assert done.returncode == 1 and b"is over" in done.stderr


@contextlib.contextmanager
def on_a_terminal(server: LiveServer, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The command on a terminal of its own, and our end of that."""
    ours, theirs = pty.openpty()
    _size(ours, 30, 90)

    def take() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        [sys.executable, "-m", "trainshed.cli", "shell", *words],
        env=_environ(server),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=take,  # noqa: PLW1509 - one system call
    )
    os.close(theirs)
    try:
        yield process, ours
    finally:
        process.kill()
        process.wait(PATIENCE)
        os.close(ours)


def test_on_a_terminal_keys_sizes_and_ctrl_c_go_to_the_shell(server: LiveServer, job: str):
    with on_a_terminal(server, job) as (process, ours):
        typed(ours, "stty size\n", "30 90")
        _size(ours, 41, 123)
        typed(ours, "", "")
        typed(ours, "sleep 0.3; stty size\n", "41 123")
        typed(ours, "python3 -c 'import time; print(1111 * 3, flush=True); time.sleep(1000)'\n", "3333")
        typed(ours, "\x03", "KeyboardInterrupt")
        typed(ours, "cat note; echo; exit 9\n", "here")
        assert process.wait(PATIENCE) == 9


def test_a_terminal_is_itself_again_however_the_command_ends(server: LiveServer, job: str):
    for number, code in ((signal.SIGTERM, 143), (None, 5)):
        with on_a_terminal(server, job, "--", "sh") as (process, ours):
            before = termios.tcgetattr(ours)
            typed(ours, "echo $((70 + 7))\n", "77")
            assert not termios.tcgetattr(ours)[3] & termios.ICANON
            if number is None:
                os.write(ours, b"exit 5\n")
            else:
                process.send_signal(number)
            assert process.wait(PATIENCE) == code
            assert termios.tcgetattr(ours) == before


@pytest.mark.fault(
    "The server",
    "The server is killed while a shell is open",
    "The shell ends with exit code 1, and the terminal is as it was before.",
    sentence="the server hung up: it ended, or the shell was closed there",
)
def test_a_server_that_is_killed_ends_the_command_with_a_sentence(server: LiveServer, sentence: Sentence):
    name = server.submit(STAYS)
    runs(server, name)
    with on_a_terminal(server, name) as (process, ours):
        typed(ours, "echo $((70 + 7))\n", "77")
        server.kill()
        assert sentence.is_in(typed(ours, "", "closed there"))
        assert process.wait(PATIENCE) == 1
    server.start()


def test_a_refusal_is_read_by_the_client_of_websockets(server: LiveServer, job: str):
    with pytest.raises(ApiError, match="was used"):
        WebSocket(server.url, path(job), (PROTOCOL, "guessed"))


def test_what_speaks_websocket_is_imported_by_the_first_who_does():
    look = "import sys, trainshed.serving.serve; sys.exit('wsproto' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", look], check=False).returncode == 0


def _environ(server: LiveServer) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TRAINSHED_")}
    return {**kept, "TRAINSHED_HOME": str(server.home), "TRAINSHED_PROJECT": PROJECT}


def typed(ours: int, keys: str, awaited: str) -> str:
    """What is printed until the awaited is among it."""
    os.write(ours, keys.encode())
    shown, deadline = "", time.monotonic() + PATIENCE
    while awaited not in shown:
        assert time.monotonic() < deadline, shown
        if select.select([ours], [], [], 0.2)[0]:
            shown += os.read(ours, 4096).decode(errors="replace")
    return shown


def _size(ours: int, rows: int, columns: int) -> None:
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def _memory(pid: int) -> int:
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")
