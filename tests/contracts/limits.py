"""What holds a replica to its memory, on any backend: by the kernel, or by a watch on what it uses.

A replica has a limit of its own; the replicas of a job that was cut to fit share one. Whoever goes over it is
ended alone, its end says so with the numbers, and the next run would meet the same limit.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from tests.contracts.backend_bench import Bench, until
from tests.contracts.stats import stats_of
from trainshed.core.jobs.launch import Launch
from trainshed.core.jobs.limits import SharedRoom
from trainshed.core.jobs.replica import Exit, Observation

MIB = 1 << 20
GIB = 1 << 30


def using(megabytes: int, then: str = "time.sleep(1000)") -> tuple[str, ...]:
    """A program that has so much in memory, in steps that leave somebody the time to look."""
    source = f"""
import time
kept = []
for _ in range({megabytes} // 10):
    kept.append(bytearray(b'x' * (10 << 20)))
    time.sleep(0.02)
print('ready', flush=True)
{then}
"""
    return ("python3", "-c", source)


def limited(launch: Launch, memory: int) -> Launch:
    return replace(launch, placement=replace(launch.placement, memory=memory))


def sharing(launch: Launch, *, own: int, room: int, replicas: int) -> Launch:
    """A launch of a job that was cut: `own` is its part of the room."""
    shared = SharedRoom(cpus=1, memory=room, asked_memory=52 * GIB, sharers=replicas)
    return replace(launch, room=shared, placement=replace(launch.placement, memory=own, cpus=1 / replicas))


class LimitsContract:
    async def test_a_replica_over_its_memory_is_ended_alone_and_told_the_numbers(self, bench: Bench):
        await bench.backend.launch(limited(bench.launch(using(10), index=1), 128 * MIB))
        seen = await ended(bench, limited(bench.launch(using(400)), 128 * MIB))
        assert seen.exit == Exit(signal=9)
        assert "want of memory" in seen.out_of_memory and seen.over_limit, seen
        assert "its limit is 128 MiB" in seen.out_of_memory
        other = await bench.see(bench.key(index=1))
        assert other is not None and other.alive

    async def test_a_replica_below_its_memory_is_left_alone(self, bench: Bench):
        seen = await ended(bench, limited(bench.launch(using(60, "time.sleep(1)")), 256 * MIB))
        assert seen.exit == Exit(code=0) and not seen.out_of_memory and not seen.over_limit

    async def test_pages_shared_with_children_count_once(self, bench: Bench):
        forks = """
import os
for _ in range(4):
    if os.fork() == 0:
        time.sleep(1.5)
        os._exit(0)
for _ in range(4): os.wait()
"""
        seen = await ended(bench, limited(bench.launch(using(90, forks)), 256 * MIB))
        assert seen.exit == Exit(code=0), bench.err()

    async def test_one_that_was_cut_may_use_what_the_others_leave(self, bench: Bench):
        launch = sharing(bench.launch(using(120, "time.sleep(1)")), own=32 * MIB, room=256 * MIB, replicas=8)
        await bench.backend.launch(sharing(small(bench, 1), own=32 * MIB, room=256 * MIB, replicas=8))
        seen = await ended(bench, launch)
        assert seen.exit == Exit(code=0) and not seen.out_of_memory

    async def test_over_what_they_share_the_greediest_is_ended_and_told_of_the_cut(self, bench: Bench):
        await bench.backend.launch(sharing(small(bench, 1), own=64 * MIB, room=192 * MIB, replicas=3))
        launch = sharing(bench.launch(using(400)), own=64 * MIB, room=192 * MIB, replicas=3)
        seen = await ended(bench, launch)
        assert seen.exit == Exit(signal=9) and seen.over_limit
        assert "asked for 52.0 GiB on this replica" in seen.out_of_memory
        assert "cut to share 192 MiB with 2 more" in seen.out_of_memory
        other = await bench.see(bench.key(index=1))
        assert other is not None and other.alive

    async def test_two_that_share_are_limited_together(self, bench: Bench):
        await bench.backend.launch(
            sharing(bench.launch(using(100), index=1), own=96 * MIB, room=192 * MIB, replicas=2)
        )
        await until(lambda: "ready" in bench.out(1))
        async with looking(bench):
            await bench.backend.launch(
                sharing(bench.launch(using(150)), own=96 * MIB, room=192 * MIB, replicas=2)
            )
            both = [bench.key(index=0), bench.key(index=1)]
            while len(alive := [seen for key in both if (seen := await bench.see(key)) and seen.alive]) == 2:
                await asyncio.sleep(0.02)
            (over,) = [seen for key in both if (seen := await bench.see(key)) and not seen.alive]
        assert len(alive) == 1 and over.over_limit and "192 MiB with 1 more" in over.out_of_memory

    async def test_a_later_server_knows_the_limit_and_the_verdict(self, bench: Bench):
        launch = limited(bench.launch(using(40, "time.sleep(2)\n" + MORE)), 128 * MIB)
        await bench.backend.launch(launch)
        await until(lambda: "ready" in bench.out())
        await bench.renew()
        async with looking(bench):
            seen = await bench.ended(launch.key)
        assert seen.exit == Exit(signal=9) and "its limit is 128 MiB" in seen.out_of_memory
        await bench.renew()
        again = await bench.see(launch.key)
        assert again is not None and again.over_limit and "its limit is 128 MiB" in again.out_of_memory


MORE = "for _ in range(40):\n    kept.append(bytearray(b'x' * (10 << 20)))\n    time.sleep(0.02)\n"


def small(bench: Bench, index: int) -> Launch:
    return bench.launch(using(10), index=index)


@asynccontextmanager
async def looking(bench: Bench) -> AsyncIterator[None]:
    """While the collector looks at what runs use, if more often than it does."""

    async def look() -> None:
        while True:
            await stats_of(bench).sample()
            await asyncio.sleep(0.2)

    task = asyncio.create_task(look())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def ended(bench: Bench, launch: Launch) -> Observation:
    async with looking(bench):
        await bench.backend.launch(launch)
        return await bench.ended(launch.key)
