"""What a person relies on: whatever happens to the server, a job goes on and its end is told truly."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise

import pytest

from tests.faults import Sentence
from tests.live import JOBS, PATIENCE, LiveServer, pool, python, until
from tests.shared_server import forget_jobs

pytestmark = pytest.mark.slow

ROOM = ("--cpus", "32", "--memory", "120GiB", "--fit", "strict")
WHOLE = "n1-standard-32"


@pytest.fixture(scope="module")
def shared_server() -> Iterator[LiveServer]:
    with LiveServer(*ROOM) as live:
        yield live
        assert "Traceback" not in live.said(), live.said()


@pytest.fixture
def server(shared_server: LiveServer) -> Iterator[LiveServer]:
    """The same for all, without jobs."""
    yield shared_server
    forget_jobs(shared_server)
    (shared_server.base / "go").unlink(missing_ok=True)
    until(lambda: not shared_server.processes(), "the end of all jobs")


def waits_for(server: LiveServer, flag: str, then: str) -> list[str]:
    """A program that prints, waits for a file in the server's folder, and ends as told."""
    path = str(server.base / flag)
    return python(
        f"import os, sys, time\nprint('begun', os.getpid(), flush=True)\n"
        f"while not os.path.exists({path!r}): time.sleep(0.02)\nprint('done', flush=True)\n{then}"
    )


def texts(server: LiveServer, job: str) -> list[str]:
    return [row["text"] for row in server.lines(job)]


def begun(server: LiveServer, job: str) -> int:
    """The pid of the job's program, once it has printed it."""
    until(lambda: bool(texts(server, job)), "the first line")
    return int(texts(server, job)[0].split()[1])


def alive(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


@pytest.mark.fault(
    "The server",
    "The server is killed while a job runs",
    "The job's programs go on. The next server finds them again, with every line they printed meanwhile.",
)
def test_a_job_goes_on_while_the_server_is_killed_and_started_again(server: LiveServer) -> None:
    job = server.submit(waits_for(server, "go", "sys.exit(0)"))
    pid = begun(server, job)
    for _ in range(3):
        server.kill()
        assert alive(pid)
        server.start()
        assert server.state(job) == "JOB_STATE_RUNNING"
    (server.base / "go").touch()
    assert server.wait(job)["state"] == "JOB_STATE_SUCCEEDED"
    assert texts(server, job) == [f"begun {pid}", "done"]


@pytest.mark.parametrize(
    ("then", "state", "told"),
    [
        ("sys.exit(0)", "JOB_STATE_SUCCEEDED", ""),
        ("sys.exit(7)", "JOB_STATE_FAILED", "exited with code 7"),
        ("os.kill(os.getpid(), 11)", "JOB_STATE_FAILED", "signal 11 (SIGSEGV)"),
    ],
)
@pytest.mark.fault(
    "The server",
    "A program ends while no server runs",
    "The next server tells its true exit code or signal, and its last lines.",
)
def test_what_ends_while_no_server_runs_is_told_truly_afterwards(
    server: LiveServer, then: str, state: str, told: str
) -> None:
    job = server.submit(waits_for(server, "go", then), spec={"scheduling": {"disableRetries": True}})
    pid = begun(server, job)
    server.kill()
    (server.base / "go").touch()
    until(lambda: not alive(pid), "the program's end")
    until(lambda: not server.processes(), "the keeper's end")
    server.start()
    done = server.wait(job)
    assert done["state"] == state
    assert told in done.get("error", {}).get("message", "")
    assert texts(server, job) == [f"begun {pid}", "done"]


def test_the_ledger_has_no_gap_though_the_server_is_killed_while_replicas_restart(server: LiveServer) -> None:
    program = python("import os, time; time.sleep(0.3); os.kill(os.getpid(), 9)")
    rules = {"scheduling": {"restartRule": {"backoff": "0.2s", "maxReplicaRestarts": 2, "maxJobRetries": 1}}}
    job = server.submit(pools=[pool(program), pool(program, replicas=2)], spec=rules)
    for pause in (0.1, 0.35, 0.6):
        time.sleep(pause)
        server.kill()
        server.start()
    server.wait(job)
    times = server.get(f"/v1/{job}:status")["times"]
    for task in ("workerpool0-0", "workerpool1-0", "workerpool1-1"):
        told = [one for one in server.get(f"/v1/{job}:intervals")["intervals"] if one["task"] == task]
        assert (told[0]["startTime"], told[-1]["endTime"]) == (times["created"], times["ended"])
        for earlier, later in pairwise(told):
            assert earlier["endTime"] == later["startTime"]
        runs = [(one["attempt"], one["run"]) for one in told if "exit" in one]
        assert len(runs) == len(set(runs)) >= 2


def test_a_server_asked_to_end_leaves_its_replicas_running_and_finds_them_again(server: LiveServer) -> None:
    job = server.submit(
        pools=[pool(waits_for(server, "go", "")), pool(waits_for(server, "go", ""), replicas=2)]
    )
    until(lambda: len(texts(server, job)) == 3, "three replicas")
    pids = [int(text.split()[1]) for text in texts(server, job)]
    assert server.stop() == 0
    assert all(alive(pid) for pid in pids)
    server.start()
    assert server.state(job) == "JOB_STATE_RUNNING"
    (server.base / "go").touch()
    assert server.wait(job)["state"] == "JOB_STATE_SUCCEEDED"
    assert {int(text.split()[1]) for text in texts(server, job) if text != "done"} == set(pids)


@pytest.mark.fault(
    "The server",
    "A second server is started on the same home",
    "It ends with exit code 1 and changes nothing. The first one does not notice.",
    sentence="Another server (pid …) already uses …",
)
def test_a_second_server_on_the_same_home_is_refused(sentence: Sentence, server: LiveServer) -> None:
    command = [sys.executable, "-P", "-m", "trainshed.server", "--port", "0", "--home", str(server.home)]
    second = subprocess.run(command, check=False, capture_output=True, text=True, timeout=PATIENCE)
    assert second.returncode == 1
    assert f"(pid {server.pid})" in second.stderr
    assert sentence.is_in(second.stderr)
    assert "Traceback" not in second.stderr
    job = server.submit(python("pass"))  # and the first did not notice
    assert server.wait(job)["state"] == "JOB_STATE_SUCCEEDED"


# Ignores SIGTERM, and leaves a child that has forked itself away with nothing that would give it away.
DEAF = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.chdir("/")
        os.write(1, b"child %d\\n" % os.getpid())  # in one piece: two of them write
        null = os.open("/dev/null", os.O_RDWR)
        for number in (0, 1, 2): os.dup2(null, number)
        os.execve("/bin/sleep", ["sleep", "600"], {})
    os._exit(0)
os.wait()
os.write(1, b"parent %d\\n" % os.getpid())
time.sleep(600)
"""


@pytest.mark.parametrize("killed", [False, True])
def test_a_cancelled_job_is_gone_to_its_last_process_before_the_next_one_starts(
    server: LiveServer, killed: bool
) -> None:
    deaf = server.submit(
        pools=[pool(python(DEAF), machine=WHOLE)], spec={"scheduling": {"gracePeriod": "1s"}}
    )
    until(lambda: len(texts(server, deaf)) == 2, "both processes")
    pids = [int(text.split()[1]) for text in texts(server, deaf)]
    # The next one needs the whole machine too, and says whom of the first it still sees.
    look = f"import os\nprint([p for p in {pids} if os.path.exists(f'/proc/{{p}}')])"
    following = server.submit(pools=[pool(python(look), machine=WHOLE)])
    server.cancel(deaf)
    if killed:
        server.kill()
        server.start()
    assert server.state(following) == "JOB_STATE_QUEUED" or server.state(deaf) == "JOB_STATE_CANCELLED"
    assert server.wait(deaf)["state"] == "JOB_STATE_CANCELLED"
    assert not any(alive(pid) for pid in pids)
    assert server.wait(following)["state"] == "JOB_STATE_SUCCEEDED"
    assert texts(server, following) == ["[]"]


LISTENS = """
import os, signal, sys, time
def hear(*_):
    os.write(1, b"heard\\n")
    sys.exit(0)
signal.signal(signal.SIGTERM, hear)
os.write(1, b"ready\\n")
time.sleep(600)
"""


@pytest.mark.fault(
    "The server",
    "The server is killed just after it took a cancel",
    "The next server carries the cancel out.",
)
def test_a_cancel_acknowledged_before_a_kill_is_carried_out_after_it(server: LiveServer) -> None:
    """And with a word first: a program that saves its work on SIGTERM gets to do so."""
    jobs = [server.submit(python(LISTENS)) for _ in range(6)]
    until(lambda: all(texts(server, job) for job in jobs), "all to be ready")
    for job in jobs:
        server.cancel(job)
    server.kill()
    server.start()
    for job in jobs:
        assert server.wait(job)["state"] == "JOB_STATE_CANCELLED"
        assert texts(server, job) == ["ready", "heard"]
    until(lambda: not server.processes(), "nothing left")


def test_a_deleted_job_stays_deleted_and_its_logs_go_though_the_server_is_killed(server: LiveServer) -> None:
    jobs = [server.submit(python("print('secret')")) for _ in range(4)]
    for job in jobs:
        server.wait(job)
    kept = server.submit(python("print('kept')"))
    server.wait(kept)
    folders = {job: server.home / "logs" / job.rsplit("/", 1)[-1] for job in [*jobs, kept]}
    for job in jobs:
        assert server.request("DELETE", f"/v1/{job}").status == 200
    server.kill()
    for job in jobs:  # as if it had been killed before it came to that
        folders[job].mkdir(exist_ok=True)
    (server.home / "logs" / "unknown").mkdir()
    server.start()
    until(lambda: not any(folders[job].exists() for job in jobs), "the logs of deleted jobs to go")
    assert [job["name"] for job in server.get(JOBS)["customJobs"]] == [kept]
    assert texts(server, kept) == ["kept"]
    assert (server.home / "logs" / "unknown").exists()  # nobody asked to delete it


def test_a_follower_of_a_job_that_ended_just_before_a_kill_is_sent_home(server: LiveServer) -> None:
    first = server.submit(pools=[pool(waits_for(server, "go", ""), machine=WHOLE)])
    begun(server, first)
    waiting = [server.submit(pools=[pool(python("pass"), machine=WHOLE)]) for _ in range(5)]
    for job in waiting:
        server.cancel(job)
        if job == waiting[2]:
            server.kill()
            server.start()
    (server.base / "go").touch()
    server.wait(first)
    server.kill()
    server.start()
    for job in waiting:
        assert server.wait(job)["state"] == "JOB_STATE_CANCELLED"
        assert server.lines(job, follow="true") == []
    assert [row["text"] for row in server.lines(first, follow="true")][1:] == ["done"]


def test_jobs_that_waited_when_the_server_was_killed_run_afterwards_in_their_order(
    server: LiveServer,
) -> None:
    first = server.submit(pools=[pool(waits_for(server, "go", ""), machine=WHOLE)])
    begun(server, first)
    later = [
        server.submit(pools=[pool(python("import time; print(time.monotonic_ns())"), machine=WHOLE)])
        for _ in range(3)
    ]
    server.kill()
    server.start()
    waiting = server.get(f"/v1/{later[0]}:status")["waiting"]
    assert waiting["reason"] in ("WAITS_FOR_CAPACITY", "WAITS_FOR_ADMISSION", "WAITS_BEHIND_OTHERS")
    (server.base / "go").touch()
    for job in later:
        assert server.wait(job)["state"] == "JOB_STATE_SUCCEEDED"
    times = [int(texts(server, job)[0]) for job in later]
    assert times == sorted(times)


@pytest.mark.fault(
    "The server",
    "The server is killed while somebody follows a log",
    "The follower waits for the next server and gets every line once.",
)
def test_a_follower_is_told_every_line_once_though_the_server_is_killed_in_between(
    server: LiveServer,
) -> None:
    """By the command people use."""
    source = "import time\nfor n in range(60): print('line', n, flush=True); time.sleep(0.1)"
    job = server.submit(python(source))
    follower = subprocess.Popen(
        [sys.executable, "-P", "-m", "trainshed.cli", "logs", "-f", job],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,  # what `readline` reads ahead would be lost for `communicate`
        env={**os.environ, "TRAINSHED_HOME": str(server.home)},
        cwd=server.base,
    )
    try:
        assert follower.stdout is not None
        first = follower.stdout.readline()
        server.kill()
        time.sleep(0.5)
        server.start()
        rest, errors = follower.communicate(timeout=PATIENCE)
    finally:
        if follower.poll() is None:
            follower.kill()
            follower.wait()
    found = [int(line.rsplit(b" ", 1)[-1]) for line in (first + rest).splitlines()]
    assert found == list(range(60)), errors
