"""The collector over the fakes, in stepped time."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from tests.builders import at
from tests.unit.control.stepped import SteppedClock, in_stepped_time
from trainshed.control.collector import Collector
from trainshed.core.jobs.launch import Launch
from trainshed.core.jobs.replica import Exit
from trainshed.core.metrics import MetricQuery, Report, RunReading, Series
from trainshed.core.names import ReplicaName, RunKey
from trainshed.core.queue.fleet import Placement
from trainshed.service.metrics import LatestReadings
from trainshed.testing.backend import FakeBackend, FakeMachine
from trainshed.testing.metrics import MemoryMetricStore

NAME = ReplicaName("j1", 0, 0, 0)
KEY = RunKey(NAME, 0)


@dataclass
class World:
    backend: FakeBackend = field(default_factory=lambda: FakeBackend(FakeMachine(clock=SteppedClock())))
    store: MemoryMetricStore = field(default_factory=MemoryMetricStore)
    shown: list[Sequence[RunReading]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.collector = Collector(
            backend=self.backend,
            stats=self.backend.stats,
            metrics=self.store,
            clock=SteppedClock(),
            show=self.shown.append,
        )

    async def launch(self, key: RunKey = KEY, *, begun: bool = True) -> None:
        await self.backend.launch(a_launch(key))
        self.collector.watch(key, "", begun=begun)

    async def told(self, name: str) -> list[float]:
        series = await self.store.query("j1", MetricQuery(since=at(0), until=at(1e6)))
        found: list[Series] = [one for one in series if one.name == name]
        return [point.value for point in found[0].points] if found else []


def a_launch(key: RunKey) -> Launch:
    return Launch(
        key=key,
        image="trainshed/python:3",
        command=("sleep",),
        args=(),
        placement=Placement(pool=0, index=0, node="n", host="127.0.0.1", cpus=1, memory=1),
    )


@in_stepped_time
async def test_a_run_is_looked_at_every_two_seconds_from_its_start():
    world = World()
    task = asyncio.create_task(world.collector.run())
    world.backend.busy[KEY] = 1.5
    await asyncio.sleep(100)
    await world.launch()
    await asyncio.sleep(9)
    assert await world.told("cpu") == pytest.approx([1.5] * 4)
    assert [reading.values["cpu"] for [reading] in world.shown] == pytest.approx([1.5] * 4)
    task.cancel()


@in_stepped_time
async def test_a_run_found_again_has_no_rate_before_its_second_look():
    world = World()
    world.backend.busy[KEY] = 1.0
    await world.launch(begun=False)
    for _ in range(2):
        await asyncio.sleep(5)
        await world.collector.look()
    assert await world.told("cpu") == pytest.approx([1.0])
    assert len(await world.told("processes")) == 2


@in_stepped_time
async def test_while_nothing_runs_the_collector_does_not_wake():
    world = World()
    task = asyncio.create_task(world.collector.run())
    await world.launch()
    await asyncio.sleep(5)
    world.backend.machine.end(KEY, Exit(code=0))
    await asyncio.sleep(5)
    looks = len(world.shown)
    assert world.shown[-1] == []
    await asyncio.sleep(1000)
    assert len(world.shown) == looks
    await world.launch(RunKey(NAME, 1))
    await asyncio.sleep(3)
    assert len(world.shown) == looks + 1
    task.cancel()


@in_stepped_time
async def test_the_last_word_of_a_program_that_has_ended_is_kept():
    world = World()
    await world.launch()
    world.backend.machine.end(KEY, Exit(code=0))
    world.store.said[NAME] = Report(at=at(1), step=10, total=10, values={"loss": 0.25})
    await world.collector.settle("j1")
    assert (await world.told("step"), await world.told("value.loss")) == ([10], [0.25])
    await world.collector.settle("j1")  # nothing is still to come
    assert len(world.shown) == 1


@in_stepped_time
async def test_a_report_is_kept_once_and_its_pace_counts_from_the_first():
    world = World()
    await world.launch()
    for second, step in ((2, 10), (4, 20), (4, 20), (6, 30)):
        world.store.said[NAME] = Report(at=at(second), step=step, total=100)
        await asyncio.sleep(2)
        await world.collector.look()
    assert await world.told("step") == [10, 20, 30]
    board = LatestReadings(SteppedClock())
    board.show(world.shown[-1])
    told = board.progress("j1")
    assert told is not None
    # 20 steps in 4 seconds; 70 are left, and 2 seconds of that have passed.
    assert (told.step, told.left) == (30, timedelta(seconds=12))
    assert [series.name for series in board.recent("j1")] == ["cpu", "processes"]
    assert board.progress("other") is None


@in_stepped_time
async def test_a_look_that_fails_ends_nothing():
    world = World()
    task = asyncio.create_task(world.collector.run())
    await world.launch()
    world.backend.fail("sample")
    await asyncio.sleep(5)
    assert not task.done()
    assert len(world.shown) == 1
    task.cancel()


@in_stepped_time
async def test_what_is_kept_of_a_deleted_job_goes():
    world = World()
    await world.launch()
    await asyncio.sleep(2)
    await world.collector.look()
    assert await world.told("processes")
    await world.collector.forget("j1")
    await world.collector.look()
    assert await world.told("processes") == []
