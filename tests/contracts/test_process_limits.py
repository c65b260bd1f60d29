"""Processes are held to their memory: by a cgroup where one can be made, else by a watch."""

from pathlib import Path

import pytest

from tests.contracts.backend_bench import Bench, benched
from tests.contracts.limits import LimitsContract, limited
from tests.contracts.test_process_backend import ProcessWorld
from trainshed.backends.machine import cgroup
from trainshed.backends.machine.memory_group import discard, found_below, limit_memory


class ProcessLimits(LimitsContract):
    keeper = "compiled"

    @pytest.fixture
    async def bench(self, tmp_path: Path, tools: Path):
        async with benched(ProcessWorld(tmp_path / "home", tools, self.keeper), tmp_path) as bench:
            yield bench


class TestByTheKernel(ProcessLimits):
    @pytest.fixture(autouse=True)
    def needs_groups(self) -> None:
        if found_below(cgroup.locate(), "trainshed-test") is None:
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
        tree = found_below(cgroup.locate(), "")
        assert tree is not None
        await bench.run(("true",))
        await bench.backend.remove(bench.job)
        assert not list(Path(tree.base).rglob(f"*{bench.job}*"))

    def test_a_limit_can_grow_and_shrink(self, tmp_path: Path):
        tree = found_below(cgroup.locate(), f"trainshed-{tmp_path.name}")
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
