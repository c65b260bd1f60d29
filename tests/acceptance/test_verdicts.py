"""A gallery of programs that fail, each in its own way, and what a person is told about it."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults import Sentence
from tests.live import PATIENCE, PROJECT, LiveServer, pool, python

ONE_TRY = {"scheduling": {"disableRetries": True}}
MEMORY = Path("/sys/fs/cgroup/memory")
TORCH = Path(__file__).parents[2] / ".venv-train" / "bin" / "python"


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "32", "--memory", "120GiB") as live:
        yield live
        assert "Traceback" not in live.said(), live.said()


def failed(server: LiveServer, job: str) -> dict[str, Any]:
    """The verdict over a job that has failed."""
    done = server.wait(job)
    assert done["state"] == "JOB_STATE_FAILED"
    failure = server.get(f"/v1/{job}:status")["failure"]
    verdict = failure["verdict"]
    message = done["error"]["message"]
    assert message.splitlines()[0] == failure["message"]
    assert len(message.splitlines()[0]) < 200
    assert verdict["cause"] in message
    assert verdict["advice"] in message
    assert len(verdict["lines"]) <= 20
    last = server.get(f"/v1/{job}:events")["events"][-1]
    assert f"{verdict['cause']}: " in last["message"]
    assert verdict["advice"] in last["message"]
    assert "\n" not in last["message"]
    return verdict


def run(server: LiveServer, *command: str) -> dict[str, Any]:
    return failed(server, server.submit(command, spec=ONE_TRY))


@pytest.mark.parametrize(
    ("source", "cause", "summary"),
    [
        (
            "import not_installed_here",
            "IMPORT_ERROR",
            "ModuleNotFoundError: No module named 'not_installed_here'",
        ),
        ("from os import nothing", "IMPORT_ERROR", "ImportError: cannot import name 'nothing' from 'os'"),
        ("open('data/train.csv')", "MISSING_FILE", "FileNotFoundError: [Errno 2] No such file"),
        ("x = [0] * (1 << 60)", "HOST_OUT_OF_MEMORY", "MemoryError"),
        ("open('/proc/sys/kernel/random/boot_id', 'w')", "PERMISSION", "PermissionError: [Errno 13]"),
        (
            "open('/dev/full', 'w', buffering=1).write('x' * 9999)",
            "DISK_FULL",
            "OSError: [Errno 28] No space left",
        ),
        ("1 / 0", "USER_EXCEPTION", "ZeroDivisionError: division by zero"),
        ("def f(:", "SYNTAX_ERROR", "SyntaxError: "),
        ("import sys; sys.exit('no data for today')", "PROGRAM_EXIT", "no data for today"),
        (
            "import socket; socket.create_connection(('127.0.0.1', 1))",
            "NETWORK_ERROR",
            "ConnectionRefusedError",
        ),
        (
            "raise TimeoutError('the store did not answer')",
            "NETWORK_TIMEOUT",
            "TimeoutError: the store did not",
        ),
        (
            "import argparse; argparse.ArgumentParser().parse_args(['--epoch'])",
            "BAD_ARGUMENTS",
            "error: unrec",
        ),
        ("import os; os.abort()", "ABORTED", "it was killed by signal 6 (SIGABRT"),
        ("import os; os.execvp('nowhere-to-be-found', ['x'])", "MISSING_FILE", "FileNotFoundError"),
    ],
)
def test_a_program_that_fails_gets_the_verdict_it_deserves(
    server: LiveServer, source: str, cause: str, summary: str
) -> None:
    verdict = run(server, *python(source))
    assert verdict["cause"] == cause
    assert summary in verdict["summary"]
    assert verdict["task"] == "workerpool0-0"
    assert verdict["ending"]
    if cause not in ("NETWORK_ERROR", "NETWORK_TIMEOUT"):
        assert not verdict["retryMayHelp"]


def test_a_traceback_is_told_by_its_end_and_what_led_to_it(server: LiveServer) -> None:
    source = """
import sys, tempfile, os
def read(path):
    return open(path)
def load():
    try:
        read('weights.bin')
    except OSError as error:
        raise RuntimeError('the model cannot be loaded') from error
def deep(n):
    return deep(n - 1) if n else load()
for step in range(300):
    print(f'step {step}: ' + '#' * 300)
    print(f'\\r {step}%|####| {step}/300 [00:01<00:02, 3.00it/s]', end='', file=sys.stderr)
os.environ['API_TOKEN'] = 'abcd1234efgh5678'
deep(30)
"""
    verdict = run(server, *python(source))
    assert verdict["cause"] == "MISSING_FILE"
    lines = verdict["lines"]
    assert lines[-1] == "RuntimeError: the model cannot be loaded"
    assert any("weights.bin" in line for line in lines)
    assert "The above exception was the direct cause of the following exception:" in lines
    assert any("in load" in line for line in lines)
    assert not any("it/s" in line or "step 1" in line for line in lines)


def test_a_secret_in_the_last_words_is_masked_everywhere(server: LiveServer) -> None:
    source = "raise ValueError('refused: API_TOKEN=abcd1234efgh5678, https://me:hunter2@host/x')"
    job = server.submit(python(source), spec=ONE_TRY)
    verdict = failed(server, job)
    assert "refused" in verdict["summary"]
    told = str(server.job(job)["error"]) + str(server.get(f"/v1/{job}:events")) + str(verdict)
    assert "abcd1234" not in told
    assert "hunter2" not in told


@pytest.mark.fault(
    "Programs",
    "Another process has the port that a program wants",
    "The verdict is PORT_IN_USE, and trying again may help.",
    sentence="Another process has that port: use the one in the replica's environment "
    "(MASTER_PORT, TF_CONFIG) or port 0.",
)
def test_a_port_somebody_has_is_named_as_such(sentence: Sentence, server: LiveServer) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        verdict = run(server, *python(f"import socket; socket.socket().bind(('127.0.0.1', {port}))"))
    assert verdict["cause"] == "PORT_IN_USE"
    assert sentence.is_in(verdict["advice"])
    assert verdict["retryMayHelp"]


FORKS = """
import os, time
for _ in range(300):  # not without end, whatever the limits do
    if os.fork() == 0:
        time.sleep(1000)
        os._exit(0)
    time.sleep(0.02)
time.sleep(1000)
"""


@pytest.mark.fault(
    "Programs",
    "A program starts processes or threads without end",
    "It may have so many and no more, and the machine goes on. If it then fails, the verdict is "
    "PROCESS_LIMIT. Nothing of it is left.",
    sentence="its limit is 64",
)
def test_a_fork_bomb_is_held_to_its_processes_and_told_the_setting(sentence: Sentence) -> None:
    with LiveServer("--cpus", "32", "--memory", "120GiB", "--processes-per-replica", "64") as live:
        verdict = run(live, *python(FORKS))
        assert verdict["cause"] == "PROCESS_LIMIT"
        assert sentence.is_in(verdict["summary"])
        assert "trainshed up --processes-per-replica" in verdict["advice"]


@pytest.mark.parametrize("command", [["no-such-program-here"], ["sh", "-c", "no-such-program-here"]])
def test_a_command_that_is_not_there_is_named(server: LiveServer, command: list[str]) -> None:
    verdict = run(server, *command)
    assert verdict["cause"] == "COMMAND_NOT_FOUND"
    assert "no-such-program-here" in verdict["summary"]


def test_a_file_that_cannot_be_executed_is_a_matter_of_permission(server: LiveServer) -> None:
    script = server.base / "script"
    script.write_text("#!/bin/sh\nexit 0\n")
    script.chmod(0o600)
    assert run(server, str(script))["cause"] == "PERMISSION"


def test_a_script_that_is_not_there_is_a_missing_file(server: LiveServer) -> None:
    verdict = run(server, "python", "train.py")
    assert verdict["cause"] == "MISSING_FILE"
    assert "train.py" in verdict["summary"]


def test_a_module_that_is_not_there_is_an_import_error(server: LiveServer) -> None:
    assert run(server, "python", "-m", "trainer_not_here")["cause"] == "IMPORT_ERROR"


@pytest.mark.fault(
    "Disks",
    "A program meets a full disk",
    "The job fails with the verdict DISK_FULL.",
    sentence="Make room on the disk it writes to (old checkpoints, caches, /dev/shm), "
    "or write somewhere else.",
)
def test_a_full_disk_is_told_by_the_program_that_met_it(
    sentence: Sentence, server: LiveServer, tmp_path: Path
) -> None:
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("a small disk cannot be mounted here: run as root")
    try:
        verdict = run(server, *python(f"open('{tmp_path}/model', 'wb').write(b'x' * 1000000)"))
        assert verdict["cause"] == "DISK_FULL"
        assert sentence.is_in(verdict["advice"])
        verdict = run(server, "dd", "if=/dev/zero", f"of={tmp_path}/more", "bs=1M", "count=1")
        assert verdict["cause"] == "DISK_FULL"
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_crash_in_native_code_shows_the_python_that_called_it(server: LiveServer) -> None:
    source = "import ctypes\ndef poke():\n    ctypes.string_at(0)\npoke()"
    plain = run(server, *python(source))
    assert plain["cause"] == "SEGMENTATION_FAULT"
    assert plain["summary"] == "it was killed by signal 11 (SIGSEGV, segmentation fault)"
    told = run(server, "python", "-X", "faulthandler", "-c", source)
    assert told["summary"] == "Fatal Python error: Segmentation fault"
    assert any("in poke" in line for line in told["lines"])


def begun(server: LiveServer, job: str) -> int:
    deadline = time.monotonic() + PATIENCE
    while not (lines := server.lines(job)):
        assert time.monotonic() < deadline, "the program never began"
        time.sleep(0.02)
    return int(lines[0]["text"])


@pytest.mark.parametrize("number", [9, 15])
def test_a_program_somebody_killed_is_not_put_down_to_memory(server: LiveServer, number: int) -> None:
    source = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    job = server.submit(python(source), spec=ONE_TRY)
    os.kill(begun(server, job), number)
    verdict = failed(server, job)
    assert verdict["cause"] == "KILLED"
    assert f"killed by signal {number}" in verdict["summary"]
    assert "not known" in verdict["advice"]
    assert verdict["retryMayHelp"]


@pytest.fixture
def little_memory() -> Iterator[Path]:
    """A group of processes that may have next to no memory."""
    group = MEMORY / f"ts-verdicts-{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text("33554432")
    except OSError:
        with contextlib.suppress(OSError):
            group.rmdir()
        pytest.skip("no memory cgroup can be made here: needs root and cgroup v1")
    yield group
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            group.rmdir()
            return
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.05)


@pytest.mark.fault(
    "Programs",
    "The machine runs out of memory",
    "The job fails with the verdict HOST_OUT_OF_MEMORY.",
    sentence="Use less memory (smaller batches, fewer loader workers, data read in pieces) "
    "or a machine with more of it.",
)
def test_a_program_the_kernel_killed_for_memory_is_told_so(
    sentence: Sentence, server: LiveServer, little_memory: Path
) -> None:
    source = f"""
import os
open('{little_memory}/cgroup.procs', 'w').write(str(os.getpid()))
kept = [bytearray(b'x' * 4000000) for _ in range(40)]
"""
    job = server.submit(python(source), spec=ONE_TRY)
    verdict = failed(server, job)
    assert verdict["cause"] == "HOST_OUT_OF_MEMORY"
    assert "kernel" in verdict["summary"]
    assert sentence.is_in(verdict["advice"])
    # The same through a shell, which only passes the number on, and with tries left: the restart says so too.
    rule = {"restartRule": {"maxReplicaRestarts": 1, "maxJobRetries": 0, "backoff": "0.01s"}}
    again = server.submit(["sh", "-c", '"$0" "$@"; exit $?', *python(source)], spec={"scheduling": rule})
    assert failed(server, again)["cause"] == "HOST_OUT_OF_MEMORY"
    events = server.get(f"/v1/{again}:events")["events"]
    restarts = [event["message"] for event in events if event["reason"] == "REPLICA_RESTARTED"]
    assert len(restarts) == 1
    assert "HOST_OUT_OF_MEMORY" in restarts[0]


def test_the_replica_that_failed_first_is_blamed_not_the_one_that_followed(server: LiveServer) -> None:
    flag = server.base / "first-is-gone"
    first = f"open('{flag}', 'w'); raise KeyError('shard 7')"
    second = f"import os, time\nwhile not os.path.exists('{flag}'): time.sleep(0.01)\ntime.sleep(600)"
    job = server.submit(pools=[pool(python(second)), pool(python(first))], spec=ONE_TRY)
    verdict = failed(server, job)
    assert (verdict["task"], verdict["summary"]) == ("workerpool1-0", "KeyError: 'shard 7'")


def test_only_what_the_last_run_said_counts(server: LiveServer) -> None:
    """A first run that raised and was restarted, then one that is killed without a word."""
    source = """
import os, sys
if not os.path.exists('seen'):
    open('seen', 'w')
    import traceback
    try: 1 / 0
    except ZeroDivisionError: traceback.print_exc()
    sys.exit(200)
os.kill(os.getpid(), 9)
"""
    rule = {"restartRule": {"maxReplicaRestarts": 1, "maxJobRetries": 0, "backoff": "0.5s"}}
    job = server.submit(python(source), spec={"scheduling": rule})
    verdict = failed(server, job)
    assert (verdict["cause"], verdict["lines"]) == ("KILLED", [])
    events = server.get(f"/v1/{job}:events")["events"]
    restart = next(event["message"] for event in events if event["reason"] == "REPLICA_RESTARTED")
    assert restart.endswith("USER_EXCEPTION: ZeroDivisionError: division by zero")


def test_a_job_over_its_time_is_told_with_its_last_lines(server: LiveServer) -> None:
    source = "import time; print('epoch 1', flush=True); time.sleep(600)"
    job = server.submit(python(source), spec={"scheduling": {"timeout": "1s", "gracePeriod": "1s"}})
    verdict = failed(server, job)
    assert verdict["cause"] == "JOB_TIMED_OUT"
    assert verdict["lines"] == ["epoch 1"]
    assert "task" not in verdict


def test_show_prints_the_verdict(server: LiveServer) -> None:
    job = server.submit(python("import not_installed_here"), spec=ONE_TRY)
    server.wait(job)
    command = [sys.executable, "-m", "trainshed.cli", "show", job.rsplit("/", 1)[-1]]
    env = os.environ | {"TRAINSHED_HOME": str(server.home), "TRAINSHED_PROJECT": PROJECT}
    out = subprocess.run(
        command, check=True, capture_output=True, text=True, env=env, timeout=PATIENCE
    ).stdout
    assert "IMPORT_ERROR: ModuleNotFoundError: No module named 'not_installed_here'" in out
    assert "| Traceback (most recent call last):" in out
    assert "Install what is missing" in out


@pytest.mark.needs_torch
@pytest.mark.slow
@pytest.mark.skipif(not TORCH.exists(), reason="needs PyTorch: make demo-env")
def test_a_collective_nobody_else_comes_to_is_a_collective_timeout(server: LiveServer) -> None:
    source = """
import datetime, time, torch, torch.distributed as dist
dist.init_process_group('gloo', timeout=datetime.timedelta(seconds=3))
if dist.get_rank() == 0:
    dist.all_reduce(torch.ones(1))
time.sleep(600)
"""
    command = [str(TORCH), "-c", source]
    job = server.submit(pools=[pool(command), pool(command)], spec=ONE_TRY)
    verdict = failed(server, job)
    assert (verdict["cause"], verdict["task"]) == ("COLLECTIVE_TIMEOUT", "workerpool0-0")
    assert verdict["retryMayHelp"]


@pytest.mark.needs_torch
@pytest.mark.slow
@pytest.mark.skipif(not TORCH.exists(), reason="needs PyTorch: make demo-env")
def test_a_replica_that_goes_first_is_blamed_and_not_those_it_leaves_behind(server: LiveServer) -> None:
    source = """
import torch, torch.distributed as dist
dist.init_process_group('gloo')
if dist.get_rank() == 1:
    raise ValueError('bad shard')
dist.all_reduce(torch.ones(1))
"""
    command = [str(TORCH), "-c", source]
    job = server.submit(pools=[pool(command), pool(command)], spec=ONE_TRY)
    verdict = failed(server, job)
    assert (verdict["cause"], verdict["task"]) == ("USER_EXCEPTION", "workerpool1-0")
    assert "bad shard" in verdict["summary"]


@pytest.mark.needs_torch
@pytest.mark.slow
@pytest.mark.skipif(not TORCH.exists(), reason="needs PyTorch: make demo-env")
def test_a_launcher_is_passed_over_for_what_its_child_said(server: LiveServer) -> None:
    script = server.base / "child.py"
    script.write_text("raise KeyError('label')\n")
    launcher = [str(TORCH), "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=1", str(script)]
    verdict = run(server, *launcher)
    assert (verdict["cause"], verdict["summary"]) == ("USER_EXCEPTION", "KeyError: 'label'")
