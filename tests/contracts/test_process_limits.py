"""Processes are held to their memory and their number: by a cgroup where one can be made, else by a watch."""

import os
from pathlib import Path

import pytest

from tests.contracts.backend_bench import Bench, benched, until
from tests.contracts.limits import LimitsContract, ended, limited
from tests.contracts.stats import stats_of
from tests.contracts.test_process_backend import ProcessWorld
from trainshed.backends.machine import cgroup
from trainshed.backends.machine.limit_tree import discard, found_below
from trainshed.backends.machine.memory_group import limit_memory
from trainshed.backends.machine.process_group import ProcessCeiling
from trainshed.core.jobs.replica import Exit

MOST = 40
# Forks until it is refused, or 400 times: never without end, whatever the limits do.
BOMB = """
import os, time
for _ in range(400):
    if os.fork() == 0:
        time.sleep(1000)
        os._exit(0)
    {pace}
time.sleep(1000)
"""
# Each process starts another one; a file counts them, so that there are never more than 400.
CHAIN = """
import os, sys, time
while True:
    try:
        pid = os.fork()
    except OSError:
        continue
    with open(sys.argv[1], "ab") as file:
        file.write(b"x")
    if os.path.getsize(sys.argv[1]) > 400:
        time.sleep(1000)
"""


def bomb(pace: str = "pass") -> tuple[str, ...]:
    return ("python3", "-c", BOMB.format(pace=pace))


class ProcessLimits(LimitsContract):
    @pytest.fixture
    def few(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ProcessCeiling, "of", lambda *_: MOST)

    async def test_a_fork_bomb_is_held_leaves_nothing_and_is_told_its_limit(self, bench: Bench, few: None):
        seen = await ended(bench, bench.launch(bomb("time.sleep(0.02)")))
        assert seen.exit is not None and not seen.exit.ok
        assert f"its limit is {MOST}" in seen.process_limit
        assert bench.world.leftovers(bench.job) == []

    async def test_threads_count_like_processes(self, bench: Bench, few: None):
        source = f"""
import threading, time
for _ in range(2 * {MOST}):
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
    time.sleep(0.02)
time.sleep(1000)
"""
        seen = await ended(bench, bench.launch(("python3", "-c", source)))
        assert seen.exit is not None and not seen.exit.ok
        assert f"its limit is {MOST}" in seen.process_limit

    async def test_a_program_within_its_processes_is_left_alone_and_counted(self, bench: Bench, few: None):
        source = f"""
import threading, time
for _ in range({MOST} // 2):
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
print("ready", flush=True)
time.sleep(1000)
"""
        key = await bench.begin(("python3", "-c", source))
        usage = (await stats_of(bench).sample())[key]
        assert (usage.processes, usage.threads) == (1, MOST // 2 + 1)
        seen = await bench.see(key)
        assert seen is not None and seen.alive

    keeper = "compiled"

    @pytest.fixture
    async def bench(self, tmp_path: Path, tools: Path):
        async with benched(ProcessWorld(tmp_path / "home", tools, self.keeper), tmp_path) as bench:
            yield bench


@pytest.fixture
def counts() -> None:
    if found_below(cgroup.locate(), "trainshed-test", "pids") is None:
        pytest.skip("needs the right to make cgroups that limit processes")


class TestByTheKernel(ProcessLimits):
    async def test_the_kernel_refuses_a_process_over_the_limit_and_nobody_need_look(
        self, bench: Bench, few: None, counts: None
    ):
        launch = bench.launch(bomb())
        await bench.backend.launch(launch)  # nobody counts
        seen = await bench.ended(launch.key)
        assert seen.exit == Exit(code=1) and "BlockingIOError" in bench.err()
        assert f"its limit is {MOST} processes and threads" in seen.process_limit and not seen.over_limit
        await bench.renew()  # the cgroup that counted is gone
        again = await bench.see(launch.key)
        assert again is not None and again.process_limit == seen.process_limit

    async def test_a_fork_bomb_that_does_not_stop_is_killed_whole(
        self, bench: Bench, few: None, counts: None, tmp_path: Path
    ):
        counted = tmp_path / "counted"
        await bench.backend.launch(bench.launch(("python3", "-c", CHAIN, str(counted))))
        await until(lambda: counted.exists() and counted.stat().st_size >= MOST)
        await bench.backend.stop(bench.key(), force=True)
        await bench.ended(bench.key())
        assert counted.stat().st_size <= 2 * MOST  # two write for each fork
        assert bench.world.leftovers(bench.job) == []

    @pytest.fixture(autouse=True)
    def needs_groups(self) -> None:
        if found_below(cgroup.locate(), "trainshed-test", "memory") is None:
            pytest.skip("needs the right to make cgroups that limit memory")

    async def test_the_kernel_itself_kills_it(self, bench: Bench):
        hog = "x = []\nwhile True: x.append(bytearray(1 << 20))"
        launch = limited(bench.launch(("python3", "-c", hog)), 64 << 20)
        await bench.backend.launch(launch)  # nobody looks at what it uses
        seen = await bench.ended(launch.key)
        assert "the kernel killed" in seen.out_of_memory and seen.over_limit

    async def test_a_command_of_a_shell_is_held_too(self, bench: Bench):
        hog = "x = []\nwhile True: x.append(bytearray(1 << 20))"
        launch = limited(bench.launch(("sh", "-c", f"python3 -c '{hog}'; exit $?")), 64 << 20)
        await bench.backend.launch(launch)
        seen = await bench.ended(launch.key)
        assert seen.exit is not None and seen.exit.code == 137
        assert "its limit is 64 MiB" in seen.out_of_memory and seen.over_limit

    async def test_no_cgroup_stays_behind(self, bench: Bench):
        tree = found_below(cgroup.locate(), "", "memory")
        assert tree is not None
        await bench.run(("true",))
        await bench.backend.remove(bench.job)
        assert not groups_of(bench.job, Path(tree.base))
        counting = found_below(cgroup.locate(), "", "pids")
        assert counting is None or not groups_of(bench.job, Path(counting.base))

    def test_a_limit_can_grow_and_shrink(self, tmp_path: Path):
        tree = found_below(cgroup.locate(), f"trainshed-{tmp_path.name}", "memory")
        assert tree is not None
        group = tree.make("job")
        assert group is not None
        grown = [limit_memory(group, size << 20) for size in (64, 256, 128)]
        discard(group)
        discard(tree.base)
        assert grown == [True] * 3


class TestByAWatch(ProcessLimits):
    @pytest.fixture(autouse=True)
    def no_groups(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("trainshed.backends.machine.cgroup.locate", lambda *_: None)


class TestByAWatchWithTheShellKeeper(ProcessLimits):
    keeper = "shell"


def groups_of(job: str, base: Path) -> list[Path]:
    """The cgroups of a job. Those of other tests come and go meanwhile."""
    names = (Path(folder) / name for folder, names, _ in os.walk(base) for name in names)
    return [path for path in names if job in path.name]
