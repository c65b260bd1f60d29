"""Stats and stacks of the container backend, on a real Podman."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from tests.containers.engine import Podman
from tests.contracts.backend_bench import Bench, Words, World, benched
from tests.contracts.stacks import StacksContract
from tests.contracts.stats import StatsContract
from tests.contracts.test_container_backend import ContainerWorld
from trainshed.backends.machine import spy
from trainshed.core.jobs.launch import Launch
from trainshed.core.metrics import Usage
from trainshed.core.names import RunKey
from trainshed.core.stats_port import Stacks, Stats

pytestmark = pytest.mark.containers

BURN = "print('ready', flush=True)\nwhile True: pass\n"
HOLD = "import time\nmemory = bytearray(60_000_000)\nprint('ready', flush=True)\ntime.sleep(1000)\n"
WRITE = """import os, subprocess, sys, time
code = "import os; f = open('/data', 'wb'); f.write(bytes(3_000_000)); f.flush(); os.fsync(f)"
subprocess.run([sys.executable, '-c', code], check=True)
print('ready', flush=True)
time.sleep(1000)
"""
ASLEEP = """import time
def inner():
    print('ready', flush=True)
    time.sleep(1000)
inner()
"""


def python(source: str) -> Words:
    return ("python", "-c", source)


class Roomy(Bench):
    def launch(self, command: Words, run: int = 0, index: int = 0) -> Launch:
        launch = super().launch(command, run, index)
        return replace(launch, placement=replace(launch.placement, memory=256 << 20))


class TestContainerStats(StatsContract, StacksContract):
    @pytest.fixture
    async def bench(self, world: World, tmp_path: Path):
        async with benched(world, tmp_path, Roomy) as bench:
            yield bench

    @pytest.fixture
    def world(self, tmp_path: Path, podman: Podman, tools: Path) -> ContainerWorld:
        return ContainerWorld(tmp_path / "home", podman, tools)

    async def sampled(self, stats: Stats, key: RunKey, enough: float = 0, least: int = 0) -> Usage:
        """The run's usage once it has used so much CPU and memory."""
        while True:
            usage = (await stats.sample()).get(key)
            if usage and (usage.cpu_seconds or 0) >= enough and (usage.memory or 0) >= least:
                return usage
            await asyncio.sleep(0.02)

    async def test_cpu_is_counted(self, bench: Bench, stats: Stats):
        key = await bench.begin(python(BURN))
        usage = await self.sampled(stats, key, enough=0.3)
        assert usage.processes == 1

    async def test_memory_is_that_of_the_program(self, bench: Bench, stats: Stats):
        key = await bench.begin(python(HOLD))
        usage = await self.sampled(stats, key, least=60_000_000)
        assert (usage.memory or 0) < 200_000_000

    async def test_what_an_ended_child_wrote_to_disk_is_counted(self, bench: Bench, stats: Stats):
        key = await bench.begin(python(WRITE))
        usage = await self.sampled(stats, key)
        assert (usage.written_bytes or 0) >= 3_000_000

    async def test_a_python_program_is_shown_by_its_stack(self, bench: Bench, stacks: Stacks):
        if spy.find_spy() is None or not spy.may_look():
            pytest.skip("needs py-spy, and that it may look into processes")
        key = await bench.begin(python(ASLEEP))
        (process,) = (await stacks.stacks([key]))[key].processes
        (thread,) = process.threads
        assert thread.is_main
        assert [frame.name for frame in thread.frames] == ["inner", "<module>"]
