"""The promises of core.ports.Stacks as tests, for every backend that has the ability.

Inherit beside the backend's contract: the same World and Bench serve.
"""

import asyncio

import pytest

from tests.contracts.backend_bench import Bench, until
from trainshed.core.jobs.replica import Exit
from trainshed.core.stats_port import Stacks


def stacks_of(bench: Bench) -> Stacks:
    assert bench.backend.stacks is not None
    return bench.backend.stacks


class StacksContract:
    @pytest.fixture
    def stacks(self, bench: Bench) -> Stacks:
        return stacks_of(bench)

    # 1. those that are alive, whole

    async def test_only_runs_that_are_alive_and_asked_for_are_shown(self, bench: Bench, stacks: Stacks):
        assert await stacks.stacks([]) == {}
        assert await stacks.stacks([bench.key()]) == {}
        key = await bench.begin(bench.programs.sleeps())
        await bench.backend.launch(bench.launch(bench.programs.sleeps(), index=1))
        found = await stacks.stacks([key, bench.key(index=7)])
        assert set(found) == {key}
        assert found[key].processes
        await bench.backend.stop(key, force=True)
        await bench.ended(key)
        assert await stacks.stacks([key]) == {}

    async def test_a_new_server_shows_what_an_earlier_one_started(self, bench: Bench):
        key = await bench.begin(bench.programs.sleeps())
        await bench.renew()
        assert set(await stacks_of(bench).stacks([key])) == {key}

    # 2. a program does not notice

    async def test_a_program_looked_at_goes_on_as_before(self, bench: Bench, stacks: Stacks):
        key = await bench.begin(bench.programs.counts())
        for _ in range(10):
            assert (await stacks.stacks([key]))[key].processes
        seen = await bench.see(key)
        assert seen is not None and seen.alive
        assert bench.out() == "ready\n"
        await bench.backend.stop(key, force=False)
        await until(lambda: "term" in bench.out())
        await bench.backend.stop(key, force=True)
        assert (await bench.ended(key)).exit == Exit(signal=9)

    # 4. nothing blocks; one after the other

    async def test_stacks_may_be_asked_for_at_once_and_while_a_run_ends(self, bench: Bench, stacks: Stacks):
        key = await bench.begin(bench.programs.sleeps())
        looks = [asyncio.create_task(_look(stacks, bench)) for _ in range(5)]
        await bench.backend.stop(key, force=True)
        for found in await asyncio.gather(*looks):
            assert set(found) <= {key}


async def _look(stacks: Stacks, bench: Bench):
    return await stacks.stacks([bench.key()])
