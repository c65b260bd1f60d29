"""Stacks of the process backend, by looking and by asking; and of the fake."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.contracts.backend_bench import Bench, Words, World, benched, until
from tests.contracts.stacks import StacksContract, stacks_of
from tests.contracts.test_fake_backend import FakeWorld
from tests.contracts.test_process_backend import ProcessWorld
from tests.contracts.test_warm_backend import WarmWorld
from trainshed.backends.machine import spy
from trainshed.backends.process import ask
from trainshed.core.jobs.launch import Launch
from trainshed.core.jobs.stacks import MOST_FRAMES, MOST_PROCESSES, StackDump, StackFrame, grouped

TREE = """
import os, subprocess, sys, threading, time
def load_batch():
    print('ready', flush=True)
    time.sleep(1000)
threading.Thread(target=time.sleep, args=(1000,), name='helper', daemon=True).start()
native = subprocess.Popen(['sleep', '1000'])
if os.fork() == 0:
    os.setsid()
    load_batch()
load_batch()
"""
MANY = """
import os, time
for _ in range(40):
    if os.fork() == 0: break
os.write(1, b'ready\\n')
time.sleep(1000)
"""
DEEP = """
import sys, time
sys.setrecursionlimit(100000)
def down(n):
    if n: return down(n - 1)
    print('ready', flush=True); time.sleep(1000)
down(3000)
"""
STOIC = """
import faulthandler, os, signal, time
for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_DFL)
faulthandler.unregister(45)
print('ready', flush=True)
time.sleep(1000)
"""


def python(source: str) -> Words:
    return ("python", "-c", source)


class _Benched(StacksContract):
    @pytest.fixture
    async def bench(self, world: World, tmp_path: Path):
        async with benched(world, tmp_path) as bench:
            yield bench


class TestFakeStacks(_Benched):
    @pytest.fixture
    def world(self) -> FakeWorld:
        return FakeWorld()


class WatchedBench(Bench):
    """Launches programs of watched jobs."""

    def launch(self, command: Words, run: int = 0, index: int = 0) -> Launch:
        return replace(super().launch(command, run, index), watched=True)


class _ProcessStacks(_Benched):
    @pytest.fixture
    def world(self, tmp_path: Path, tools: Path) -> ProcessWorld:
        return ProcessWorld(tmp_path / "home", tools, "compiled")

    @pytest.fixture
    async def bench(self, world: World, tmp_path: Path):
        async with benched(world, tmp_path, WatchedBench) as bench:
            yield bench

    async def dumped(self, bench: Bench, source: str, ready: int = 1) -> StackDump:
        await bench.backend.launch(bench.launch(python(source)))
        await until(lambda: bench.out().count("ready") >= ready)
        await asyncio.sleep(0.1)  # from its last word into its sleep
        return (await stacks_of(bench).stacks([bench.key()]))[bench.key()]

    async def test_every_python_process_of_the_tree_is_shown_and_native_ones_by_what_they_wait_for(
        self, bench: Bench
    ):
        dump = await self.dumped(bench, TREE, ready=2)
        assert dump.fault == ""
        pythons = [process for process in dump.processes if process.main is not None]
        assert len(pythons) == 2
        for process in pythons:
            main = process.main
            assert main is not None and main.waits
            assert main.frames[0] == StackFrame("load_batch", "<string>", 5)
        assert len(pythons[0].threads) == 2
        [native] = [process for process in dump.processes if process.command == "sleep 1000"]
        assert native.state.startswith("sleeps")

    async def test_a_deep_stack_and_many_processes_are_cut(self, bench: Bench):
        dump = await self.dumped(bench, DEEP)
        [process] = dump.processes
        assert process.main is not None
        assert process.main.frames[0].name == "down"
        assert len(process.main.frames) == MOST_FRAMES

    async def test_more_processes_than_are_shown_are_counted(self, bench: Bench):
        dump = await self.dumped(bench, MANY, ready=41)
        assert len(dump.processes) == MOST_PROCESSES
        assert "25 more processes are not shown." in dump.fault

    async def test_replicas_that_run_their_copies_of_a_file_are_in_the_same_place(self, bench: Bench):
        source = "import time; print('ready', flush=True); time.sleep(1000)"
        script = ("sh", "-c", f'mkdir -p sub; echo "{source}" > sub/train.py; exec python sub/train.py')
        for index in range(3):
            await bench.backend.launch(bench.launch(script, index=index))
            await until(lambda index=index: "ready" in bench.out(index))
        await asyncio.sleep(0.1)
        found = await stacks_of(bench).stacks([bench.key(index=index) for index in range(3)])
        [group] = grouped({key.name.task: dump for key, dump in found.items()})
        assert group.sentence == "3 replicas wait in <module> (train.py:1)"
        assert group.dump.processes[0].threads[0].frames[0].file == "sub/train.py"

    async def test_a_stopped_program_is_told_to_be_stopped(self, bench: Bench):
        await self.dumped(bench, "import time\nprint('ready', flush=True)\ntime.sleep(1000)")
        dump = (await stacks_of(bench).stacks([bench.key()]))[bench.key()]
        os.kill(dump.processes[0].pid, signal.SIGSTOP)
        while dump.processes[0].state != "is stopped":  # signals take a moment
            dump = (await stacks_of(bench).stacks([bench.key()]))[bench.key()]
        os.kill(dump.processes[0].pid, signal.SIGCONT)
        seen = await bench.see(bench.key())
        assert seen is not None and seen.alive


class TestByLooking(_ProcessStacks):
    @pytest.fixture(autouse=True)
    def may_look(self) -> None:
        if not spy.may_look() or spy.find_spy() is None:
            pytest.skip("needs py-spy, and a system that lets it look (Yama: root, or ptrace_scope 0)")

    async def test_a_program_sees_nothing_of_it(self, bench: Bench):
        await bench.run(python("import os; print(os.environ.get('PYTHONPATH'))"))
        assert bench.out() == "None\n"


class TestByAsking(_ProcessStacks):
    """On a system that does not let one process look into another."""

    @pytest.fixture(autouse=True)
    def may_not_look(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(spy, "may_look", lambda: False)

    async def test_a_program_that_offers_nothing_is_never_sent_the_signal(self, bench: Bench):
        dump = await self.dumped(bench, STOIC)
        assert "does not offer its stacks" in dump.fault
        assert dump.processes[0].threads == ()
        seen = await bench.see(bench.key())
        assert seen is not None and seen.alive

    async def test_a_program_of_an_unwatched_job_sees_nothing_of_it(self, bench: Bench):
        launch = Bench.launch(bench, python("import os; print(os.environ.get('PYTHONPATH'))"))
        await bench.backend.launch(launch)
        await bench.ended(bench.key())
        assert bench.out() == "None\n"

    async def test_a_watched_program_finds_its_path_and_files_as_they_would_be(self, bench: Bench):
        source = (
            "import os, sys, sitecustomize\n"
            "print(any('customize' in path for path in sys.path))\n"
            "print(sorted(fd for fd in map(int, os.listdir('/proc/self/fd')) if fd < 100))\n"
            "print(os.open('/dev/null', os.O_RDONLY))"
        )
        await bench.run(python(source))
        assert bench.out().splitlines() == ["False", "[0, 1, 2, 3]", "3"]


class _Warm(_ProcessStacks):
    """Programs forked from a warm interpreter tell no less."""

    @pytest.fixture
    def world(self, tmp_path: Path, tools: Path) -> ProcessWorld:
        if shutil.which("cc") is None:
            pytest.skip("needs a C compiler (cc)")
        return WarmWorld(tmp_path / "home", tools)


class TestWarmByLooking(_Warm):
    @pytest.fixture(autouse=True)
    def may_look(self) -> None:
        if not spy.may_look() or spy.find_spy() is None:
            pytest.skip("needs py-spy, and a system that lets it look (Yama: root, or ptrace_scope 0)")


class TestWarmByAsking(_Warm):
    @pytest.fixture(autouse=True)
    def may_not_look(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(spy, "may_look", lambda: False)


def test_the_sitecustomize_that_would_have_been_is_imported_all_the_same(tmp_path: Path):
    (tmp_path / "sitecustomize.py").write_text("print('mine')\n")
    path = f"{ask.CUSTOMIZE}:{tmp_path}"
    code = "import sitecustomize; print(sitecustomize.__file__)"
    assert said(code, path).split() == ["mine", str(tmp_path / "sitecustomize.py")]


@pytest.mark.parametrize("folder", ["", "/nowhere/at/all"])
def test_without_a_place_for_its_stacks_a_program_runs_all_the_same(folder: str):
    assert (
        said("print('well')", str(ask.CUSTOMIZE), TRAINSHED_RUN_DIR=folder, TRAINSHED_STACKS="1") == "well\n"
    )


def said(code: str, path: str, **env: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": path, **env},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout


def test_a_spy_that_is_not_there_fails_or_is_slow_is_told_not_raised(tmp_path: Path) -> None:
    threads, fault = spy.spy_on(str(tmp_path / "none"), 1, 1)
    assert (threads, fault) == ((), "py-spy does not run: No such file or directory.")
    for name, text, words in (
        ("fails", "echo 'Error: no symbols' >&2; exit 1", "Error: no symbols"),
        ("sleeps", "exec sleep 60", "within 0.1 s"),
        ("empty", "echo '[]'", "saw no thread"),
    ):
        script = tmp_path / name
        script.write_text(f"#!/bin/sh\n{text}\n")
        script.chmod(0o700)
        threads, fault = spy.spy_on(str(script), 1, 0.2)
        assert threads == ()
        assert words in fault
