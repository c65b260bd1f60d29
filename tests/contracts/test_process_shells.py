"""The process backend keeps the promises of shells, with the compiled keeper and with the one in shell."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.contracts.backend_bench import Bench, World, benched, until
from tests.contracts.shells import MARKED, STAYS, ShellsContract, all_of, sees
from tests.contracts.test_process_backend import OWN_GROUP, ProcessWorld
from trainshed.backends.process.net import label
from trainshed.core.shell_port import Screen, Shells

OPENER = """
import asyncio, sys
from pathlib import Path
from trainshed.backends.process import ProcessBackend
from trainshed.core.names import ReplicaName, RunKey
from trainshed.backends.machine.run_storage import RunStorage
from trainshed.core.shell_port import Screen
from trainshed.testing.run_files import FolderRunFiles

async def main():
    home = Path(sys.argv[1])
    backend = ProcessBackend(home, storage=RunStorage(files=FolderRunFiles(home)))
    await backend.start()
    script = "trap '' HUP; : shell-of-a-test; echo began; while :; do sleep 1; done"
    key = RunKey(ReplicaName(sys.argv[2], 1, 0, 0), 0)
    terminal = await backend.shells.open_shell(key, ("sh", "-c", script), Screen())
    while b"began" not in await terminal.read():
        pass
    print("began", flush=True)
    await asyncio.sleep(1000)

asyncio.run(main())
"""


class OnProcesses(ShellsContract):
    keeper: str

    @pytest.fixture
    async def world(self, tmp_path: Path, tools: Path):
        if self.keeper == "compiled" and shutil.which("cc") is None:
            pytest.skip("needs a C compiler (cc)")
        yield ProcessWorld(tmp_path / "home", tools, self.keeper)

    @pytest.fixture
    async def bench(self, world: World, tmp_path: Path):
        async with benched(world, tmp_path) as bench:
            yield bench

    async def test_what_was_started_in_a_shell_may_remove_its_files_when_it_is_hung_up(self, opened):  # pyright: ignore
        ends = "trap 'rm lock; exit' HUP; touch lock; echo began; while :; do sleep 0.02; done"
        terminal = await opened(("sh", "-c", f'sh -c "{ends}"; :'))  # its first process has no trap
        await sees(terminal, "began")
        await terminal.close()
        assert "lock" not in (await all_of(await opened(("ls",)))).split()


class TestCompiledKeeper(OnProcesses):
    keeper = "compiled"

    async def test_a_shell_is_in_the_group_of_its_run_and_leaves_none_behind(self, opened, bench: Bench):  # pyright: ignore
        if OWN_GROUP is None:
            pytest.skip("needs a cgroup v2 in which groups may be made")
        terminal = await opened(("sh", "-c", "cat /proc/self/cgroup; sleep 1000"))
        assert str(bench.key()) in await sees(terminal, str(bench.key()))
        await bench.backend.stop(bench.key(), force=True)
        await bench.ended(bench.key())
        await terminal.wait()
        base = OWN_GROUP / label(Path(os.path.dirname(bench.folder)) / "home")
        await until(lambda: not list(base.glob(f"{bench.job}*")))

    async def test_a_shell_sees_the_mounts_of_its_run(self, bench: Bench, shells: Shells, tmp_path: Path):
        if os.geteuid() != 0:
            pytest.skip("needs root, to mount something in a namespace of its own")
        script = (
            f"mkdir -p {tmp_path}/over; mount -t tmpfs none {tmp_path}/over && touch {tmp_path}/over/seen"
        )
        stays = ("unshare", "--mount", "sh", "-c", f"{script}; echo ready; exec sleep 1000")
        await bench.begin(stays)
        terminal = await shells.open_shell(bench.key(), ("ls", f"{tmp_path}/over"), Screen())
        assert await all_of(terminal) == "seen\n"
        assert not (tmp_path / "over" / "seen").exists()
        await terminal.close()

    async def test_a_killed_server_takes_its_shells_along_and_leaves_the_run(self, bench: Bench):
        await bench.begin(STAYS)
        home = str(bench.world.home)  # pyright: ignore[reportAttributeAccessIssue]
        server = subprocess.Popen([sys.executable, "-c", OPENER, home, bench.job], stdout=subprocess.PIPE)
        assert server.stdout is not None
        await asyncio.to_thread(server.stdout.readline)
        server.send_signal(signal.SIGKILL)
        await asyncio.to_thread(server.wait)
        server.stdout.close()
        await until(lambda: not [one for one in bench.world.leftovers(bench.job) if MARKED in one])
        seen = await bench.see(bench.key())
        assert seen is not None and seen.alive


class TestShellKeeper(OnProcesses):
    keeper = "shell"
