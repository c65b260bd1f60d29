"""The process backend keeps every promise with warm starts too, and some more that only they have to keep."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.contracts.backend_bench import Bench, Words, until
from tests.contracts.test_process_backend import ProcessContract, ProcessWorld, ShellPrograms
from trainshed.backends.machine.processes import Identity
from trainshed.backends.machine.run_storage import RunStorage
from trainshed.backends.process import ProcessBackend
from trainshed.backends.process.interpreters import Interpreters
from trainshed.backends.process.keeper import StartRequest
from trainshed.backends.process.warm.pool import WarmPool
from trainshed.backends.process.warm.process import WarmProcess
from trainshed.core.jobs.replica import Exit, Sight
from trainshed.core.ports import Backend
from trainshed.core.supplies.runtime import WarmState

STAY = "import time; print('ready'); time.sleep(1000)"


class WarmPrograms(ShellPrograms):
    """Everything that can be is said in Python, so that it is forked."""

    def exits(self, code: int) -> Words:
        return ("python", "-c", f"import sys; sys.exit({code})")

    def dies(self, number: int) -> Words:
        default = "signal.signal(2, signal.SIG_DFL)" if number == 2 else ""
        return ("python", "-c", f"import os, signal; {default}\nos.kill(os.getpid(), {number})")

    def prints(self, text: str) -> Words:
        return ("python", "-c", f"import sys; sys.stdout.write({text!r})")

    def sleeps(self) -> Words:
        return ("python", "-c", STAY)

    def stubborn(self) -> Words:
        return ("python", "-c", "import signal; signal.signal(15, signal.SIG_IGN)\n" + STAY)

    def counts(self) -> Words:
        code = "import signal; signal.signal(15, lambda *_: print('term'))\n" + STAY
        return ("python", "-c", code.replace("time.sleep(1000)", "\nwhile True: time.sleep(0.1)"))


class WarmWorld(ProcessWorld):
    def __init__(self, home: Path, tools: Path) -> None:
        super().__init__(home, tools, "compiled")
        self.programs = WarmPrograms()
        self.image, self.refused = "trainshed/python:3", "example/train:1"
        self.made: ProcessBackend | None = None

    async def backend(self) -> Backend:
        interpreters = Interpreters(runtimes=self.runtimes, warm=["trainshed/python:3"])
        backend = ProcessBackend(
            self.home, storage=RunStorage(files=self.files), keeper=self.keeper, interpreters=interpreters
        )
        self.made = backend
        await backend.start()
        await until(self.is_warm)
        return backend

    @property
    def interpreter(self):
        assert self.made is not None
        [warmth] = self.made.warmth()
        return warmth

    @property
    def pid(self) -> int:
        return self.interpreter.pid

    def is_warm(self) -> bool:
        assert self.made is not None
        return any(interpreter.state is WarmState.WARM for interpreter in self.made.warmth())


class TestWarmProcessBackend(ProcessContract):
    keeper = "compiled"

    @pytest.fixture
    async def world(self, tmp_path: Path, tools: Path):
        if shutil.which("cc") is None:
            pytest.skip("needs a C compiler (cc)")
        yield WarmWorld(tmp_path / "home", tools)

    async def test_a_run_prepared_by_a_server_killed_before_it_started_it_is_started_once(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ):
        launch = bench.launch(bench.programs.prints("once\n"))

        async def die(*_: object) -> str:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(WarmPool, "spawn", die)
            with pytest.raises(KeyboardInterrupt):
                await bench.backend.launch(launch)
        await bench.renew()
        assert await bench.backend.observe(bench.job) == ()
        await bench.backend.launch(launch)
        assert (await bench.ended(bench.key())).exit == Exit(code=0)
        assert bench.out() == "once\n"

    async def test_of_two_keepers_for_one_run_one_starts_it(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ):
        """A warm interpreter whose answer came too late, and the fresh start that overtook it, or did not."""
        real = WarmProcess.fork

        async def late(self: WarmProcess, order: StartRequest) -> str:
            assert isinstance(await real(self, order), Identity)
            return "too late"

        with monkeypatch.context() as patch:
            patch.setattr(WarmProcess, "fork", late)
            await bench.backend.launch(
                bench.launch(("python", "-c", "import time; print('once'); time.sleep(0.2)"))
            )
        assert (await bench.ended(bench.key())).exit == Exit(code=0)
        assert bench.out() == "once\n"

    async def test_a_warm_program_is_a_fork_of_the_warm_interpreter_and_a_fresh_one_is_not(
        self, bench: Bench
    ):
        world = bench.world
        assert isinstance(world, WarmWorld)
        await bench.run(("python", "-c", "import os; print(os.environ['TRAINSHED_RUN'])"))
        assert world.interpreter.uses == 1
        await bench.backend.launch(bench.launch(("python", "-u", "-c", "print('flag')"), index=1))
        assert (await bench.ended(bench.key(index=1))).exit == Exit(code=0)
        assert world.interpreter.uses == 1

    async def test_fifty_jobs_through_one_warm_interpreter_leave_nothing_behind(self, bench: Bench):
        world = bench.world
        assert isinstance(world, WarmWorld)
        pid = world.pid
        before = set(os.listdir(f"/proc/{pid}/fd"))
        launches = [bench.launch(bench.programs.exits(i), index=i) for i in range(50)]
        await asyncio.gather(*(bench.backend.launch(launch) for launch in launches))
        for i in range(50):
            assert (await bench.ended(bench.key(index=i))).exit == Exit(code=i)
        assert world.interpreter.uses == 50 and world.pid == pid
        assert set(os.listdir(f"/proc/{pid}/fd")) == before
        assert Path(f"/proc/{pid}/task/{pid}/children").read_text().split() == []
        assert bench.world.leftovers(bench.job) == []

    async def test_programs_outlive_a_warm_interpreter_killed_with_sigkill_and_keep_their_true_end(
        self, bench: Bench
    ):
        world = bench.world
        assert isinstance(world, WarmWorld)
        key = await bench.begin(bench.programs.sleeps())
        first = world.pid
        os.kill(first, signal.SIGKILL)
        await until(lambda: not world.is_warm())
        seen = await bench.see(key)
        assert seen is not None and seen.sight is Sight.RUNNING
        await bench.backend.launch(bench.launch(bench.programs.exits(7), index=1))
        assert (await bench.ended(bench.key(index=1))).exit == Exit(code=7)
        await bench.backend.stop(key, force=False)
        assert (await bench.ended(key)).exit == Exit(signal=15)
        await until(world.is_warm)
        assert world.pid != first

    async def test_a_warm_interpreter_that_does_not_answer_is_overtaken_and_started_anew(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ):
        world = bench.world
        assert isinstance(world, WarmWorld)
        monkeypatch.setattr("trainshed.backends.process.warm.process._PATIENCE", 0.1)
        first = world.pid
        os.kill(first, signal.SIGSTOP)
        assert (await bench.run(bench.programs.exits(5))).exit == Exit(code=5)
        monkeypatch.undo()
        await until(lambda: world.is_warm() and world.pid != first)

    async def test_a_warm_interpreter_whose_runtime_has_changed_is_started_anew(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ):
        world = bench.world
        assert isinstance(world, WarmWorld)
        first = world.pid
        monkeypatch.setattr("trainshed.backends.process.warm.process._marks", lambda _: ((1, 1),))
        assert (await bench.run(bench.programs.exits(5))).exit == Exit(code=5)
        monkeypatch.undo()
        await until(lambda: world.is_warm() and world.pid != first)

    async def test_a_warm_interpreter_ends_with_the_backend_and_with_the_server(self, bench: Bench):
        world = bench.world
        assert isinstance(world, WarmWorld)
        pid = world.pid
        await bench.renew()
        await until(lambda: not os.path.exists(f"/proc/{pid}"))
        script = f"""
import asyncio, os, signal
from pathlib import Path
from trainshed.backends.process import ProcessBackend
from trainshed.backends.machine.run_storage import RunStorage
from trainshed.backends.process.interpreters import Interpreters
from trainshed.testing.run_files import FolderRunFiles
async def main():
    home = Path({str(world.home)!r} + "2")
    interpreters = Interpreters(warm=["trainshed/python:3"])
    backend = ProcessBackend(home, storage=RunStorage(files=FolderRunFiles(home)), interpreters=interpreters)
    await backend.start()
    while not backend.warmth(): await asyncio.sleep(0.01)
    print(backend.warmth()[0].pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""
        server = await asyncio.to_thread(
            subprocess.run, [sys.executable, "-c", script], capture_output=True, text=True, check=False
        )
        assert server.returncode == -signal.SIGKILL
        interpreter = int(server.stdout)
        await until(lambda: not os.path.exists(f"/proc/{interpreter}/exe"))
