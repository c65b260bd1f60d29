"""The process backend keeps the promises, with the compiled keeper and with the one in shell."""

import asyncio
import os
import pickle
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.contracts.backend import BackendContract, WritesHere
from tests.contracts.backend_bench import Bench, Programs, Words, until
from trainshed.backends.machine.cgroup import locate
from trainshed.backends.machine.run_storage import RunStorage
from trainshed.backends.process import ProcessBackend
from trainshed.backends.process.interpreters import Interpreters
from trainshed.backends.process.keeper import ShellKeeper, make_keeper
from trainshed.backends.process.net import label
from trainshed.backends.process.record import parse
from trainshed.backends.process.run import reload
from trainshed.backends.process.stats import devices
from trainshed.core.errors import Conflict, Unavailable
from trainshed.core.jobs.replica import Exit, Sight
from trainshed.core.names import RunKey
from trainshed.core.ports import Backend
from trainshed.testing import FakeRuntimes
from trainshed.testing.run_files import FolderRunFiles

OWN_GROUP = locate()

FORK_AWAY = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    code = "import time; print('ready', flush=True); time.sleep(1000)"
    os.execve(sys.executable, [sys.executable, "-c", code, sys.argv[1]], {})
os.wait()
"""

# Signals 32 and 33 belong to the C library; make starts its children with the first ignored.
LIBRARY_SIGNALS = 0b11 << 31


class ShellPrograms:
    def exits(self, code: int) -> Words:
        return ("sh", "-c", f"exit {code}")

    def dies(self, number: int) -> Words:
        return ("sh", "-c", f"kill -{number} $$")

    def prints(self, text: str) -> Words:
        return ("printf", "%s", text)

    def finds(self, host: str) -> Words:
        return ("python3", "-c", f"import socket; socket.gethostbyname({host!r})")

    def sleeps(self) -> Words:
        return ("sh", "-c", "echo ready; exec sleep 1000")

    def stubborn(self) -> Words:
        return ("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done")

    def counts(self) -> Words:
        return ("sh", "-c", "trap 'echo term' TERM; echo ready; while :; do sleep 0.1; done")

    def escapes(self, job: str) -> Words:
        return ("python", "-c", FORK_AWAY + "time.sleep(1000)", job)

    def abandons(self, job: str, code: int) -> Words:
        return ("python", "-c", FORK_AWAY + f"sys.exit({code})", job)

    def missing(self) -> Words:
        return ("no-such-program",)

    def forbidden(self) -> Words:
        return ("/etc/passwd",)


class ProcessWorld:
    files: FolderRunFiles

    def __init__(self, home: Path, tools: Path, keeper: str) -> None:
        self.programs: Programs = ShellPrograms()
        self.image, self.refused = "trainshed/python:3", "example/train:1"
        self.home = home
        self.keeper = ShellKeeper() if keeper == "shell" else make_keeper(tools)
        self.runtimes = FakeRuntimes(sys.executable)

    async def backend(self) -> Backend:
        backend = ProcessBackend(
            self.home,
            storage=RunStorage(files=self.files),
            keeper=self.keeper,
            interpreters=Interpreters(runtimes=self.runtimes),
        )
        await backend.start()
        return backend

    def unmake(self) -> str:
        self.runtimes.unmade.add("trainshed/made")
        return "trainshed/made"

    async def make(self, image: str, *, well: bool) -> None:
        self.runtimes.make(image, well=well)

    def record(self, key: RunKey) -> Path:
        name = key.name
        replica = f"{name.pool}-{name.index}"
        return self.home / "jobs" / name.job / str(name.attempt) / replica / str(key.run) / "record"

    async def lose(self, key: RunKey) -> None:
        keeper = parse(self.record(key).read_bytes()).keeper
        assert keeper is not None
        os.kill(keeper.pid, signal.SIGKILL)

    def leftovers(self, job: str) -> list[str]:
        found: list[str] = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                words = (process / "cmdline").read_bytes(), (process / "environ").read_bytes()
            except OSError:
                continue
            if any(job.encode() in text for text in words):
                found.append(words[0].decode())
        return found

    def private_files(self, job: str) -> list[str]:
        groups = [str(path) for path in OWN_GROUP.glob(f"{label(self.home)}/{job}*")] if OWN_GROUP else []
        return [str(path) for path in self.home.rglob(f"*{job}*")] + groups

    async def close(self) -> None:
        # A killed server's group is its successor's to remove, which here may not know of groups.
        if OWN_GROUP and (OWN_GROUP / label(self.home)).exists():
            (OWN_GROUP / label(self.home)).rmdir()


class ProcessContract(WritesHere, BackendContract):
    keeper: str

    @pytest.fixture
    async def world(self, tmp_path: Path, tools: Path):
        if self.keeper == "compiled" and shutil.which("cc") is None:
            pytest.skip("needs a C compiler (cc)")
        yield ProcessWorld(tmp_path / "home", tools, self.keeper)

    async def test_a_run_older_than_the_latest_is_refused(self, bench: Bench):
        await bench.begin(bench.programs.sleeps(), run=1)
        with pytest.raises(Conflict):
            await bench.backend.launch(bench.launch(bench.programs.sleeps(), run=0))

    async def test_the_program_has_its_own_folder_and_no_file_but_its_output(self, bench: Bench):
        # No pipes: they would be open in the shell that is looked at.
        await bench.run(("sh", "-c", "ls /proc/$$/fd; pwd"))
        *fds, folder = bench.out().split()
        assert [fd for fd in fds if int(fd) < 10] == ["0", "1", "2"]  # above: the shell's own
        assert folder.endswith("/1/0-0/work")

    async def test_the_program_has_no_signal_ignored_or_blocked(self, bench: Bench):
        await bench.run(("grep", "-E", "SigBlk|SigIgn", "/proc/self/status"))
        _, blocked, _, ignored = bench.out().split()
        assert int(blocked, 16) == 0
        assert int(ignored, 16) & ~LIBRARY_SIGNALS == 0

    async def test_a_restart_finds_the_files_of_the_run_before(self, bench: Bench):
        await bench.run(("sh", "-c", "echo kept > checkpoint"))
        await bench.backend.launch(bench.launch(("cat", "checkpoint"), run=1))
        await bench.ended(bench.key(1))
        assert bench.out() == "kept\n"

    async def test_a_keeper_is_not_impressed_by_signals(self, bench: Bench):
        key = await bench.begin(bench.programs.sleeps())
        world = bench.world
        assert isinstance(world, ProcessWorld)
        keeper = parse(world.record(key).read_bytes()).keeper
        assert keeper is not None
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            os.kill(keeper.pid, number)
        await bench.backend.stop(key, force=True)
        assert (await bench.ended(key)).exit == Exit(signal=9)

    async def test_a_stopped_keeper_is_woken_to_see_the_end(self, bench: Bench):
        key = await bench.begin(bench.programs.sleeps())
        world = bench.world
        assert isinstance(world, ProcessWorld)
        keeper = parse(world.record(key).read_bytes()).keeper
        assert keeper is not None
        os.kill(keeper.pid, signal.SIGSTOP)
        await bench.backend.stop(key, force=True)
        assert (await bench.ended(key)).exit == Exit(signal=9)

    async def test_children_of_children_end_with_the_run(self, bench: Bench):
        tree = (
            "import os, time\n"
            "for _ in range(3): os.fork()\n"
            "if os.getpid() != os.getpgid(0): os.setsid()\n"
            "os.write(1, b'ready\\n')\n"
            "time.sleep(1000)"
        )
        key = await bench.begin(("python", "-c", tree, bench.job))
        await until(lambda: bench.out().count("ready") == 8)
        await bench.backend.stop(key, force=True)
        assert (await bench.ended(key)).exit == Exit(signal=9)
        assert bench.world.leftovers(bench.job) == []

    async def test_a_reboot_loses_what_ran(self, bench: Bench, monkeypatch: pytest.MonkeyPatch):
        key = await bench.begin(bench.programs.sleeps())
        await bench.backend.close()
        with monkeypatch.context() as patch:
            patch.setattr("trainshed.backends.machine.processes.boot_id", lambda: "another boot")
            bench.backend = await bench.world.backend()
            seen = await bench.see(key)
        assert seen is not None and seen.sight is Sight.LOST
        await bench.renew()

    async def test_arguments_longer_than_the_system_takes_end_with_126(self, bench: Bench):
        seen = await bench.run(("echo", "x" * 300_000))
        assert seen.exit == Exit(code=126)
        assert "cannot be started" in bench.err()

    async def test_a_launch_without_room_for_its_files_can_be_tried_again(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ):
        launch = bench.launch(bench.programs.exits(0))
        real = os.write

        def full(handle: int, content: bytes) -> int:
            if len(content) > 1000:
                raise OSError(28, "No space left on device")
            return real(handle, content)

        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            with pytest.raises(Unavailable):
                await bench.backend.launch(launch)
        assert await bench.backend.observe(bench.job) == ()
        await bench.backend.launch(launch)
        assert (await bench.ended(bench.key())).exit == Exit(code=0)

    async def test_a_launch_whose_log_cannot_be_opened_can_be_tried_again(self, bench: Bench):
        launch = bench.launch(bench.programs.exits(0))
        bench.folder.rename(bench.folder.with_name("away"))
        with pytest.raises(Unavailable):
            await bench.backend.launch(launch)
        bench.folder.with_name("away").rename(bench.folder)
        await bench.backend.launch(launch)
        assert (await bench.ended(bench.key())).exit == Exit(code=0)

    async def test_a_launch_into_a_fifo_is_refused_and_can_be_tried_again(self, bench: Bench):
        launch = bench.launch(bench.programs.exits(0))
        output = bench.files.output(launch.key.name).stdout
        os.mkfifo(output)
        with pytest.raises(Unavailable):
            await bench.backend.launch(launch)
        Path(output).unlink()
        await bench.backend.launch(launch)
        assert (await bench.ended(bench.key())).exit == Exit(code=0)

    async def test_fifos_in_the_folder_of_a_run_hold_no_server_up(self, bench: Bench):
        key = await bench.begin(bench.programs.sleeps())
        world = bench.world
        assert isinstance(world, ProcessWorld)
        folder = world.record(key).parent
        for name in ("record", "over-memory"):
            folder.joinpath(name).unlink(missing_ok=True)
            os.mkfifo(folder / name)
        await bench.renew()  # reads both
        assert await bench.see(key) is not None
        kept = folder.joinpath("launch.json").rename(folder / "kept")
        os.mkfifo(folder / "launch.json")
        assert reload(key, folder).group is None
        assert devices(folder) == ()
        kept.replace(folder / "launch.json")

    async def test_a_run_prepared_by_a_server_killed_before_it_started_it_is_started_once(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ):
        launch = bench.launch(bench.programs.prints("once\n"))

        def die(*_: object) -> int:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(type(bench.world.keeper), "spawn", die)  # pyright: ignore[reportAttributeAccessIssue]
            with pytest.raises(KeyboardInterrupt):
                await bench.backend.launch(launch)
        await bench.renew()
        assert await bench.backend.observe(bench.job) == ()
        assert bench.job in await bench.backend.jobs()
        await bench.backend.launch(launch)
        assert (await bench.ended(bench.key())).exit == Exit(code=0)
        assert bench.out() == "once\n"

    async def test_of_two_keepers_for_one_run_one_starts_it(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ):
        keeper = type(bench.world.keeper)  # pyright: ignore[reportAttributeAccessIssue]
        real = keeper.spawn

        def twice(self: object, order: object) -> int:
            first = real(self, order)
            second = real(self, order)
            strays.append(first)
            return second

        strays: list[int] = []
        with monkeypatch.context() as patch:
            patch.setattr(keeper, "spawn", twice)
            await bench.backend.launch(bench.launch(("sh", "-c", "echo once; exec sleep 0.2")))
        assert (await bench.ended(bench.key())).exit == Exit(code=0)
        assert bench.out() == "once\n"
        for pid in strays:
            try:
                os.waitpid(pid, 0)
            except ChildProcessError:
                continue  # it was the one that was watched

    async def test_a_server_killed_with_sigkill_loses_nothing(self, bench: Bench):
        """A real one: launched by another process that is gone without a word."""
        world = bench.world
        assert isinstance(world, ProcessWorld)
        await bench.backend.close()
        script = f"""
import asyncio, os, pickle, signal, sys
from pathlib import Path
from trainshed.backends.process import ProcessBackend
from trainshed.backends.process.keeper import ShellKeeper
from trainshed.backends.machine.run_storage import RunStorage
from trainshed.testing.run_files import FolderRunFiles
async def main():
    keeper = ShellKeeper() if {self.keeper == "shell"} else None
    files = FolderRunFiles(Path({str(bench.folder)!r}))
    backend = ProcessBackend(Path({str(world.home)!r}), storage=RunStorage(files=files), keeper=keeper)
    await backend.start()
    for launch in pickle.load(sys.stdin.buffer):
        await backend.launch(launch)
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""
        wait = "echo ready; read line < go; exit 77"
        launches = [
            bench.launch(("sh", "-c", f"mkfifo go; {wait}"), index=0),
            bench.launch(bench.programs.dies(11), index=1),
        ]
        server = await asyncio.to_thread(
            subprocess.run, [sys.executable, "-c", script], input=pickle.dumps(launches), check=False
        )
        assert server.returncode == -signal.SIGKILL
        bench.backend = await world.backend()
        await until(lambda: "ready" in bench.out())
        for launch in launches:
            await bench.backend.launch(launch)
        running = await bench.see(bench.key())
        assert running is not None and running.sight is Sight.RUNNING
        fifo = world.record(bench.key()).parent.parent / "work" / "go"
        await asyncio.to_thread(fifo.write_text, "go\n")
        assert (await bench.ended(bench.key())).exit == Exit(code=77)
        assert (await bench.ended(bench.key(index=1))).exit == Exit(signal=11)


def test_without_a_compiler_the_shell_keeper_takes_over(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    assert isinstance(make_keeper(tmp_path, compiler="no-such-compiler"), ShellKeeper)
    assert "shell keeper" in caplog.text


def test_a_compiler_that_fails_leaves_nothing_behind(tmp_path: Path):
    assert isinstance(make_keeper(tmp_path, compiler="false"), ShellKeeper)
    assert list(tmp_path.iterdir()) == []


def test_a_keeper_that_cannot_run_here_is_not_used(tmp_path: Path):
    broken = tmp_path / "cc"
    broken.write_text('#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done; echo broken >"$2"; chmod +x "$2"\n')
    broken.chmod(0o700)
    assert isinstance(make_keeper(tmp_path, compiler=str(broken)), ShellKeeper)


class TestProcessBackendWithCompiledKeeper(ProcessContract):
    keeper = "compiled"


class TestProcessBackendWithShellKeeper(ProcessContract):
    keeper = "shell"


class TestProcessBackendOnAPlainKernel(ProcessContract):
    """Without pidfds and without cgroups."""

    keeper = "compiled"

    @pytest.fixture(autouse=True)
    def plain(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delattr(os, "pidfd_open")
        monkeypatch.setattr("trainshed.backends.machine.cgroup.locate", lambda *_: None)
