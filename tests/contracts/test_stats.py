"""Stats of the process backend, with both keepers and thus with and without cgroups; and of the fake."""

import asyncio
import shutil
import time
from pathlib import Path

import pytest

from tests.contracts.backend_bench import Bench, Words, World, benched, until
from tests.contracts.stats import StatsContract, stats_of
from tests.contracts.test_fake_backend import FakeWorld
from tests.contracts.test_process_backend import ProcessWorld
from trainshed.backends.machine.processes import ProcessFamilies
from trainshed.backends.process.keeper import CompiledKeeper, make_keeper
from trainshed.core.metrics import Measure, Usage
from trainshed.core.names import RunKey
from trainshed.core.stats_port import Stats

BURN = "import time, sys\nend = time.process_time() + %s\nwhile time.process_time() < end: pass\n"
CHILD = "import subprocess, sys\nprint('ready', flush=True)\nsubprocess.run([sys.executable, '-c', %r])\n"
GRANDCHILDREN = """
import os, sys, time
for _ in range(2):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            memory = bytearray(60_000_000)
            print('ready', flush=True)
            time.sleep(1000)
        os._exit(0)
    os.wait()
time.sleep(1000)
"""

ORPHAN = """
import os, time
if os.fork() == 0:
    if os.fork() == 0:
        print('ready', flush=True)
        end = time.process_time() + 0.6
        while time.process_time() < end: pass
    os._exit(0)
os.wait()
time.sleep(1000)
"""
TALKING = """
import os, socket, time
door = socket.create_server(("127.0.0.1", 0))
if os.fork() == 0:
    line = socket.create_connection(door.getsockname())
    line.sendall(bytes(3_000_000))
    time.sleep(1000)
line, _ = door.accept()
door.close()
left = 3_000_000
while left:
    left -= len(line.recv(1 << 16))
time.sleep(0.2)
print("ready", flush=True)
time.sleep(1000)
"""
SHARING = """
import mmap, os, time
memory = mmap.mmap(-1, 100_000_000)
for _ in range(3):
    if os.fork() == 0:
        break
for at in range(0, 100_000_000, 4096):
    memory[at] = 1
print('ready', flush=True)
time.sleep(1000)
"""


class _Benched(StatsContract):
    @pytest.fixture
    async def bench(self, world: World, tmp_path: Path):
        async with benched(world, tmp_path) as bench:
            yield bench


class TestFakeStats(_Benched):
    @pytest.fixture
    def world(self) -> FakeWorld:
        return FakeWorld()


def python(source: str) -> Words:
    return ("python", "-c", source)


class _ProcessStats(_Benched):
    keeper: str

    @pytest.fixture
    def world(self, tmp_path: Path, tools: Path) -> ProcessWorld:
        if self.keeper == "compiled" and shutil.which("cc") is None:
            pytest.skip("needs a C compiler (cc)")
        return ProcessWorld(tmp_path / "home", tools, self.keeper)

    async def sampled(self, stats: Stats, key: RunKey, enough: float = 0, least: int = 0) -> Usage:
        """The run's usage once it has used so much CPU and memory."""
        async with asyncio.timeout(60):
            while True:
                usage = (await stats.sample()).get(key)
                if usage and (usage.cpu_seconds or 0) >= enough and (usage.memory or 0) >= least:
                    return usage
                await asyncio.sleep(0.02)

    async def test_the_cpu_of_a_program_is_counted_as_the_kernel_counts_it(self, bench: Bench, stats: Stats):
        began = time.monotonic()
        key = await bench.begin(python("print('ready', flush=True)\n" + BURN % 1000))
        usage = await self.sampled(stats, key, enough=0.5)
        assert usage.cpu_seconds is not None
        assert usage.cpu_seconds <= time.monotonic() - began + 0.1

    async def test_the_cpu_of_children_that_have_ended_is_not_lost(self, bench: Bench, stats: Stats):
        key = await bench.begin(python(CHILD % (BURN % 0.5) + "import time; time.sleep(1000)"))
        await self.sampled(stats, key, enough=0.2)
        async with asyncio.timeout(60):
            while (usage := (await stats.sample())[key]).processes > 1:
                await asyncio.sleep(0.02)
        assert (usage.cpu_seconds or 0) >= 0.2

    async def test_memory_that_processes_share_counts_once(self, bench: Bench, stats: Stats):
        key = await bench.begin(python(SHARING))
        await until(lambda: bench.out().count("ready") == 4)
        usage = (await stats.sample())[key]
        assert usage.processes == 4
        assert 100_000_000 <= (usage.memory or 0) < 190_000_000

    async def test_processes_that_left_their_parents_are_counted_too(self, bench: Bench, stats: Stats):
        key = await bench.begin(python(GRANDCHILDREN))
        usage = await self.sampled(stats, key, least=120_000_000)
        assert usage.processes == 3
        assert (usage.memory or 0) < 300_000_000

    async def test_what_a_program_writes_to_disk_is_counted(self, bench: Bench, stats: Stats):
        write = "import os, time\nf = open('data', 'wb')\nf.write(bytes(3_000_000))\nf.flush()\nos.fsync(f)\n"
        key = await bench.begin(python(write + "print('ready', flush=True); time.sleep(1000)"))
        usage = await self.sampled(stats, key)
        assert (usage.written_bytes or 0) >= 3_000_000

    async def test_what_a_programs_children_send_and_receive_is_counted(self, bench: Bench, stats: Stats):
        if Measure.NETWORK not in bench.backend.capabilities.measures:
            pytest.skip("needs a kernel that tells of its connections (sock_diag)")
        key = await bench.begin(python(TALKING))
        usage = (await stats.sample())[key]
        assert 3_000_000 <= (usage.received_bytes or 0) < 3_100_000
        assert 3_000_000 <= (usage.sent_bytes or 0) < 3_100_000


class TestWithTheCompiledKeeper(_ProcessStats):
    keeper = "compiled"


class TestWithTheShellKeeper(_ProcessStats):
    keeper = "shell"


class TestWithoutCgroups(_ProcessStats):
    keeper = "compiled"

    @pytest.fixture
    def world(self, tmp_path: Path, tools: Path) -> ProcessWorld:
        keeper = make_keeper(tools)
        if not isinstance(keeper, CompiledKeeper):
            pytest.skip("needs a C compiler (cc)")
        world = ProcessWorld(tmp_path / "home", tools, self.keeper)
        world.keeper = CompiledKeeper(keeper.path, joins_groups=False)
        return world

    async def test_the_cpu_of_an_orphan_that_has_ended_is_not_lost(self, bench: Bench, stats: Stats):
        key = await bench.begin(python(ORPHAN))
        async with asyncio.timeout(60):
            while (await stats.sample())[key].processes > 1:
                await asyncio.sleep(0.02)
        # Another server has seen nothing of it: what it knows it has from the keeper.
        await bench.renew()
        usage = await self.sampled(stats_of(bench), key, enough=0.2)
        assert usage.processes == 1


class Proc:
    """A /proc of files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, pid: int, parent: int) -> None:
        (self.folder / str(pid)).mkdir(exist_ok=True)
        (self.folder / str(pid) / "stat").write_text(f"{pid} (x) S {parent} " + "0 " * 50)

    def end(self, pid: int) -> None:
        shutil.rmtree(self.folder / str(pid))


def found(families: ProcessFamilies, *heads: int) -> dict[int, list[int]]:
    return {head: sorted(pids) for head, pids in families.look(set(heads)).items()}


def test_a_family_is_all_that_descends_from_its_head(tmp_path: Path):
    proc, families = Proc(tmp_path), ProcessFamilies(str(tmp_path))
    for pid, parent in ((1, 0), (10, 1), (11, 10), (12, 11), (20, 1), (21, 20), (30, 1), (31, 30)):
        proc.put(pid, parent)
    assert found(families, 10, 20) == {10: [11, 12], 20: [21]}
    proc.put(13, 12)
    proc.put(12, 10)  # an orphan, adopted
    proc.end(11)
    assert found(families, 10, 20) == {10: [12, 13], 20: [21]}
    assert found(families, 10, 20, 30) == {10: [12, 13], 20: [21], 30: [31]}
    assert found(families, 99) == {99: []}


def test_a_pid_given_to_another_is_found_out_in_time(tmp_path: Path):
    proc, families = Proc(tmp_path), ProcessFamilies(str(tmp_path))
    for pid, parent in ((1, 0), (10, 1), (11, 1)):
        proc.put(pid, parent)
    assert found(families, 10) == {10: []}
    proc.put(11, 10)
    assert [11] in [found(families, 10)[10] for _ in range(15)]
