"""Jobs with users of their own (--run-as): what such a job cannot do, and that all else works as before."""

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests import folders
from tests.acceptance.test_gcs_paths import media
from tests.acceptance.test_shell import PROTOCOL, a_ticket, path, said
from tests.live import PROJECT, LiveServer, by_id, pool, python, until
from tests.reachable import reachable
from tests.shared_server import forget_jobs
from trainshed.client.websocket import WebSocket

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.geteuid() != 0, reason="only root can start programs as other users: run it as root"
    ),
    pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler (cc)"),
]

FIRST, LAST = 200_000, 200_003
RANGE = f"{FIRST}-{LAST}"
NO_RIGHTS = {"CapInh": 0, "CapPrm": 0, "CapEff": 0, "CapBnd": 0, "CapAmb": 0, "NoNewPrivs": 1}

# Tries to read, list and write what is not the job's, and to reach other processes; prints what it could do.
PROBE = """
import ctypes, json, os, sys
home, server, *others = sys.argv[1:]
able = []
def attempt(name, call):
    try:
        call()
    except OSError:
        return
    able.append(name)
for folder in (".", "buckets", "code", "containers", "logs", "metrics", "metrics/.reports", "run", "run/jobs",
               "run/trash", "run/warm", "runtimes", "spool", "tls"):
    attempt("list " + folder, lambda: os.listdir(home + "/" + folder))
    attempt("write " + folder, lambda: open(home + "/" + folder + "/probe", "w"))
for name in ("token", "job-secret", "trainshed.db", "trainshed.db-wal", "tls/authority.pem",
             "tls/server.pem", "buckets/.trainshed/index.db", "buckets/shelf/a", "run/asked"):
    attempt("read " + name, lambda: open(home + "/" + name, "rb").read(1))
def trace(pid):
    if ctypes.CDLL(None, use_errno=True).ptrace(0x4206, int(pid), 0, 0):  # PTRACE_SEIZE
        raise OSError
for pid in (server, str(os.getppid()), *others):
    attempt("signal " + pid, lambda: os.kill(int(pid), 0))
    attempt("trace " + pid, lambda: trace(pid))
    attempt("environ " + pid, lambda: open("/proc/" + pid + "/environ", "rb").read(1))
    attempt("memory " + pid, lambda: open("/proc/" + pid + "/mem", "rb"))
    attempt("root " + pid, lambda: os.listdir("/proc/" + pid + "/cwd"))
for call in ("setuid", "setgid"):
    attempt(call, lambda: getattr(os, call)(0))
attempt("setgroups", lambda: os.setgroups([0]))
own = os.environ["TRAINSHED_RUN_DIR"]
for name in ("launch.json", "record"):
    attempt("read own " + name, lambda: open(own + "/" + name))
status = dict(line.rstrip().split(":", 1) for line in open("/proc/self/status"))
names = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs")
fds = ["/proc/self/fd/" + n for n in os.listdir("/proc/self/fd") if int(n) > 2]
print(json.dumps({"able": able, "ids": [*os.getresuid(), *os.getresgid()], "groups": os.getgroups(),
                  "rights": {name: int(status[name], 16) for name in names},
                  "files": [os.readlink(fd) for fd in fds if os.path.exists(fd)],
                  "input": os.readlink("/proc/self/fd/0")}))
"""

# Uses everything that is its own.
USES = """
import json, os, subprocess, sys, tempfile
for folder in (".", os.environ["HOME"], tempfile.gettempdir()):
    with open(folder + "/mine", "w") as file:
        file.write("1")
    assert os.stat(folder).st_uid == os.getuid() and os.stat(folder).st_mode & 0o777 == 0o700, folder
assert os.getcwd() != os.environ["HOME"] != os.environ["TMPDIR"]
subprocess.run(["sh", "-c", "echo again > /dev/stdout"], check=True)
open("/proc/self/environ").read()
from trainshed import report
report.step(3, total=9, loss=0.5)
with open(os.environ["CLOUD_ML_HP_METRIC_FILE"], "w") as file:
    file.write(json.dumps({"timestamp": 9e9, "acc": "0.5", "global_step": "4"}) + chr(10))
open(os.environ["SSL_CERT_FILE"]).read() if "SSL_CERT_FILE" in os.environ else None
print(json.dumps({"uid": os.getuid(), "user": os.environ["USER"], "umask": os.umask(0)}))
"""
STAYS = "import os, time; print(os.getpid(), os.getuid(), flush=True); time.sleep(1000)"


@pytest.fixture(scope="module")
def shared_server() -> Iterator[LiveServer]:
    with reachable("--run-as", RANGE) as live:
        for bucket in ("shelf", "training-data"):
            live.post(f"/storage/v1/b?project={PROJECT}", {"name": bucket})
        yield live
        assert "Traceback" not in live.said(), live.said()


@pytest.fixture
def server(shared_server: LiveServer) -> Iterator[LiveServer]:
    """The same for all, without jobs."""
    yield shared_server
    forget_jobs(shared_server)
    until(lambda: not list((shared_server.home / "run/jobs").iterdir()))


def put(server: LiveServer, name: str, content: bytes) -> None:
    answer = server.request("POST", f"/upload/storage/v1/b/shelf/o?uploadType=media&name={name}", content)
    assert answer.status == 200, answer.body


def printed(server: LiveServer, job: str) -> list[str]:
    return [str(line["text"]).rstrip("\n") for line in server.lines(job)]


def succeeded(server: LiveServer, job: str) -> list[str]:
    done = server.wait(job)
    assert done["state"] == "JOB_STATE_SUCCEEDED", (done.get("error"), printed(server, job))
    return printed(server, job)


def stays(server: LiveServer, **more: Any) -> tuple[str, int, int]:
    """A job that stays, the pid of its program, and its user."""
    job = server.submit(python(STAYS), **more)
    pid, uid = until(lambda: printed(server, job))[0].split()
    server.wait_for(job, ["JOB_STATE_RUNNING"])  # its program may write before the server has seen it run
    return job, int(pid), int(uid)


def probe(server: LiveServer, *others: int) -> dict[str, Any]:
    words = [*python(PROBE), str(server.home), str(server.pid), *map(str, others)]
    return json.loads(succeeded(server, server.submit(words))[-1])


def test_a_job_gets_to_nothing_of_the_server_and_of_other_jobs(server: LiveServer) -> None:
    put(server, "a", b"1")
    _, pid, uid = stays(server)
    seen = probe(server, pid)
    assert seen["able"] == []
    assert seen["rights"] == NO_RIGHTS
    assert (seen["groups"], seen["files"], seen["input"]) == ([], [], "/dev/null")
    [own] = set(seen["ids"])
    assert FIRST <= own <= LAST
    assert own != uid
    keeper = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
    assert Path(f"/proc/{keeper}").stat().st_uid == 0


def test_a_job_cannot_read_the_folders_logs_and_reports_of_another(server: LiveServer) -> None:
    job, _, _ = stays(server)
    own = f"{server.home}/run/jobs/{by_id(job)}"
    places = [
        own,
        f"{own}/0/0-0",
        f"{own}/0/0-0/work",
        f"{own}/0/0-0/tmp",
        f"{own}/0/0-0/home",
        f"{own}/0/0-0/0",
    ]
    reports = [str(file) for file in (server.home / "metrics" / ".reports").iterdir()]
    logs = [str(file) for file in (server.home / "logs" / by_id(job)).iterdir()]
    source = "import os, sys\nfor p in sys.argv[1:]:\n if os.access(p, 4) or os.access(p, 2): print(p)"
    assert all(Path(place).exists() for place in places)
    assert len(reports) == 2  # with that of hypertune
    assert logs
    assert succeeded(server, server.submit([*python(source), *places, *reports, *logs])) == []


def test_what_belongs_to_a_job_works_for_its_user(server: LiveServer) -> None:
    job = server.submit(python(USES))
    again, line = succeeded(server, job)
    assert again == "again"
    seen = json.loads(line)
    assert FIRST <= seen["uid"] <= LAST
    assert seen["user"] == "trainshed"
    assert server.get(f"/v1/{job}:metrics")["progress"]["values"] == {"acc": 0.5}


def test_a_secret_that_is_a_file_is_for_the_user_of_the_job_alone(server: LiveServer) -> None:
    server.post("/v1/projects/p1/secrets?secretId=key")
    server.post("/v1/projects/p1/secrets/key:addVersion", {"payload": {"data": "czNjcjN0LXZhbHVl"}})
    source = (
        "import os, pathlib\n"
        "path = pathlib.Path(os.environ['KEY'])\n"
        "print(path.read_text(), oct(path.stat().st_mode), path.stat().st_uid == os.getuid() != 0)\n"
        "print(path, flush=True)\n"
        "import time; time.sleep(1000)\n"
    )
    keyed = pool(python(source))
    keyed["containerSpec"]["env"] = [{"name": "KEY", "value": "secret-file://key"}]
    job = server.submit(pools=[keyed])
    text, place = until(lambda: lines if len(lines := printed(server, job)) == 2 else None)
    assert text == "s3cr3t-value 0o100400 True"
    other = server.submit(python(f"open({place!r})"))
    assert server.wait(other)["state"] == "JOB_STATE_FAILED"
    assert "PermissionError" in " ".join(printed(server, other))
    server.cancel(job)
    server.wait(job)
    assert not Path(place).exists()


def test_the_code_of_a_job_is_its_users(server: LiveServer) -> None:
    source = b"""import os
os.chdir('sub')
for name in ('.', 'x', '../main.py', '../run'):
    assert os.stat(name).st_uid == os.getuid(), name
open('x', 'a').write('changed')
os.rename('x', 'y')
print(os.popen('../run').read())
"""
    files = {"main.py": source, "sub/x": b"1", "run": (folders.EXECUTABLE, b"#!/bin/sh\necho ran")}
    answer = folders.submit(server, folders.keep(server, files), "python", "main.py")
    assert succeeded(server, answer.json["name"])[0] == "ran"


def test_replicas_of_a_job_share_its_user_and_a_restart_keeps_it(server: LiveServer) -> None:
    source = """
import os, sys
print('user', os.getuid(), len(os.listdir('.')), flush=True)
if os.path.exists('before'):
    sys.exit(os.stat('link/passwd').st_uid)
open('before', 'w').write('x')
os.symlink('/etc', 'link')
os.kill(os.getpid(), 9)
"""
    rules = {"scheduling": {"restartRule": {"backoff": "0.2s", "maxReplicaRestarts": 2}}}
    job = server.submit(pools=[pool(python(source)), pool(python(source))], spec=rules)
    lines = [line.split() for line in succeeded(server, job)]
    assert len({uid for _, uid, _ in lines}) == 1
    assert {count for *_, count in lines} == {"0", "2"}  # the second run finds what the first one wrote
    assert Path("/etc").stat().st_uid == 0


def test_two_jobs_never_share_a_user_also_after_a_kill_of_the_server(server: LiveServer) -> None:
    before = [stays(server) for _ in range(2)]
    server.kill()
    server.start()
    after = [stays(server) for _ in range(2)]
    assert len({uid for _, _, uid in (*before, *after)}) == 4
    waiting = server.submit(python(STAYS))
    until(lambda: "All 4 users of --run-as have jobs" in json.dumps(server.get(f"/v1/{waiting}:events")))
    job, pid, uid = before[0]
    assert Path(f"/proc/{pid}").stat().st_uid == uid  # it was found again, and runs on
    server.cancel(job)
    server.wait_for(job, ["JOB_STATE_CANCELLED"])
    assert until(lambda: printed(server, waiting))[0].split()[1] == str(uid)


def test_gcs_is_read_and_written_by_the_user_announced_or_not(server: LiveServer) -> None:
    source = """
root = '/' + 'gcs/training-' + 'data'
import os
print(open(root + '/in/a').read())
open(root + '/in/a', 'a').write('2')
os.makedirs(root + '/new', exist_ok=True)
open(root + '/new/model', 'w').write('m')
os.unlink(root + '/in/b')
"""
    for word in ("unannounced", "/gcs/training-data/in"):
        for name in ("in/a", "in/b"):
            url = f"/upload/storage/v1/b/training-data/o?uploadType=media&name={name}"
            assert server.request("POST", url, b"1").status == 200
        assert succeeded(server, server.submit([*python(source), word])) == ["1"]
        assert media(server, "in/a") == b"12"
        assert media(server, "new/model") == b"m"
    source = "import os\nfor _, _, names in os.walk('/proc/1/root' + os.environ['H']): print(names)"
    assert (
        succeeded(server, server.submit(pools=[pool(python(source), env={"H": f"{server.home}/buckets"})]))
        == []
    )


def test_a_shell_runs_as_the_user_of_the_job(server: LiveServer) -> None:
    job, _, uid = stays(server)
    script = "id -u; id -G; pwd; echo $HOME; grep -c 'NoNewPrivs:.1' /proc/self/status; cat /proc/1/environ"
    script += "; echo > /dev/stderr"
    for screen in ({}, {"screen": {"rows": 30, "columns": 90}}):
        wish = {"command": ["sh", "-c", script], **screen}
        socket = WebSocket(server.url, path(job), (PROTOCOL, a_ticket(server, job, **wish)))
        text, _ = said(socket)
        socket.close()
        lines = text.replace("\r", "").splitlines()
        work = f"{server.home}/run/jobs/{by_id(job)}/0/0-0"
        assert lines[:5] == [str(uid), str(uid), f"{work}/work", f"{work}/home", "1"]
        assert "Permission denied" in lines[5]
    assert "<module>" in json.dumps(server.get(f"/v1/{job}:stacks"))


def test_a_failed_replica_is_held_for_a_shell_of_its_user(server: LiveServer) -> None:
    spec = {"scheduling": {"holdOnFailure": "600s"}}
    source = "import os; print(os.getuid()); open('left', 'w').write('here'); raise SystemExit(3)"
    job = server.submit(python(source), spec=spec)
    until(lambda: "HELD" in json.dumps(server.get(f"/v1/{job}:events")).upper())
    words = ["sh", "-c", f"cat left; id -u; echo > new; kill -0 {server.pid}"]
    socket = WebSocket(server.url, path(job), (PROTOCOL, a_ticket(server, job, command=words)))
    text, _ = said(socket)
    socket.close()
    [uid] = printed(server, job)
    assert text.startswith(f"here{uid}") and int(uid)
    assert "not permitted" in text
    server.cancel(job)
    server.wait(job)


def test_a_job_is_forked_from_a_warm_interpreter_and_has_no_more_rights_than_a_fresh_one() -> None:
    with reachable("--run-as", RANGE, "--warm", "trainshed/python:3") as server:
        _, pid, _ = stays(server)
        until(
            lambda: "WARM" in json.dumps(server.get(f"/v1/projects/{PROJECT}/locations/us-central1/runtimes"))
        )
        job = server.submit([*python(PROBE), str(server.home), str(server.pid), str(pid)])
        seen = json.loads(succeeded(server, job)[-1])
        assert "Forked from a warm interpreter" in json.dumps(server.get(f"/v1/{job}:events"))
        assert (seen["able"], seen["rights"], seen["groups"], seen["files"]) == ([], NO_RIGHTS, [], [])
        job = server.submit(python(USES))
        assert succeeded(server, job)[0] == "again"
        assert "Forked from a warm interpreter" in json.dumps(server.get(f"/v1/{job}:events"))


def test_all_jobs_can_share_one_user_of_the_machine() -> None:
    with reachable("--run-as", "daemon") as server:
        seen = [probe(server), probe(server)]
        assert [set(one["ids"]) for one in seen] == [{1}, {1}]
        assert [one["able"] for one in seen] == [[], []]


def refused(server: LiveServer, *words: str) -> str:
    server.prefix = (*server.prefix, *words)
    try:
        server.start(wait=False)
        assert server.process is not None
        assert server.process.wait(60) == 1
        return server.said()
    finally:
        server.close()


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["no-such-user"], "there is no user no-such-user"),
        (["0"], "0 is root"),
        (["root"], "root is root"),
        (["9-9"], "larger than the first"),
        (["1-5"], "is the user"),
        ([RANGE, "--no-auth"], "leave that out"),
    ],
)
def test_users_that_jobs_cannot_have_are_refused_at_start(flags: Sequence[str], sentence: str) -> None:
    assert sentence in refused(reachable("--run-as", *flags))


def test_a_server_without_the_rights_is_refused_at_start() -> None:
    server = reachable("--run-as", RANGE)
    server.base.chmod(0o777)
    assert "only root may do that" in refused(server, "setpriv", "--reuid=1", "--clear-groups")
    without = ("setpriv", "--bounding-set=-setuid")
    assert "root without CAP_SETUID" in refused(reachable("--run-as", RANGE), *without)


def test_a_home_that_users_do_not_get_to_is_refused_at_start() -> None:
    server = reachable("--run-as", RANGE)
    server.base.chmod(0o700)
    assert f"does not get to {server.base}" in refused(server)


def test_without_the_setting_the_home_is_closed_again() -> None:
    with reachable("--run-as", RANGE) as server:
        succeeded(server, server.submit(python(USES)))
        assert server.home.stat().st_mode & 0o777 == 0o711
        server.stop()
        server.flags = server.flags[:-2]
        server.start()
        modes = {
            name: (server.home / name).stat().st_mode & 0o777 for name in (".", "run", "metrics", "runtimes")
        }
        assert set(modes.values()) == {0o700}
        assert succeeded(server, server.submit(python("import os; print(os.getuid())"))) == ["0"]
