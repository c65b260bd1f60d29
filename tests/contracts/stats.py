"""The promises of core.ports.Stats as tests, for every backend that has the ability.

Inherit beside the backend's contract: the same World and Bench serve.
"""

import asyncio

import pytest

from tests.contracts.backend_bench import Bench
from trainshed.core.metrics import Measure
from trainshed.core.stats_port import Stats


def stats_of(bench: Bench) -> Stats:
    assert bench.backend.stats is not None
    return bench.backend.stats


class StatsContract:
    @pytest.fixture
    def stats(self, bench: Bench) -> Stats:
        assert bench.backend.capabilities.measures, "a backend with Stats says what it measures"
        return stats_of(bench)

    # 1. every run that is alive, and no other

    async def test_only_runs_that_are_alive_are_sampled(self, bench: Bench, stats: Stats):
        assert await stats.sample() == {}
        key = await bench.begin(bench.programs.sleeps())
        assert set(await stats.sample()) == {key}
        await bench.backend.stop(key, force=True)
        await bench.ended(key)
        assert await stats.sample() == {}

    async def test_a_new_server_samples_what_an_earlier_one_started(self, bench: Bench):
        key = await bench.begin(bench.programs.sleeps())
        await bench.renew()
        assert set(await stats_of(bench).sample()) == {key}

    # 2. counters never run backwards

    async def test_counters_never_run_backwards(self, bench: Bench, stats: Stats):
        key = await bench.begin(bench.programs.counts())
        before = (await stats.sample())[key]
        for _ in range(20):
            await asyncio.sleep(0.01)
            now = (await stats.sample())[key]
            assert now.taken > before.taken
            for name in ("cpu_seconds", "read_bytes", "written_bytes", "received_bytes", "sent_bytes"):
                old, new = getattr(before, name), getattr(now, name)
                assert old is None or new >= old, name
            before = now

    # 3. what is not declared is not told

    async def test_what_is_not_among_the_measures_is_not_told(self, bench: Bench, stats: Stats):
        key = await bench.begin(bench.programs.sleeps())
        usage = (await stats.sample())[key]
        measures = bench.backend.capabilities.measures
        assert (usage.cpu_seconds is not None) is (Measure.CPU in measures)
        assert (usage.memory is not None) is (Measure.MEMORY in measures)
        assert (usage.read_bytes is not None) is (Measure.DISK in measures)
        assert (usage.sent_bytes is not None) is (Measure.NETWORK in measures)
        assert usage.gpus == ()  # none was given

    # 4. nothing blocks the event loop

    async def test_samples_may_be_asked_for_at_once(self, bench: Bench, stats: Stats):
        key = await bench.begin(bench.programs.sleeps())
        found = await asyncio.gather(*(stats.sample() for _ in range(5)))
        assert [set(one) for one in found] == [{key}] * 5
