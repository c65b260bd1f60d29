"""What an event costs does not grow with the number of jobs that wait: counted, not timed."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.builders import a_job, a_node, a_pool, at, cancelled, seconds
from tests.unit.control.engine import Engine
from tests.unit.control.stepped import SteppedClock, in_stepped_time, simulate
from trainshed.control import scheduler as scheduler_module
from trainshed.control.scheduler import MOST_LOOKS
from trainshed.core.jobs.job import Job, JobState, Scheduling
from trainshed.core.queue import demands as demands_module
from trainshed.core.queue.fleet import Fit
from trainshed.core.queue.place import Room
from trainshed.testing.backend import FakeMachine

Event = Callable[["Counted"], Awaitable[None]]
MADE = "trainshed/made"


class Counted:
    """A queue of so many jobs behind one that holds the machine; what is done is counted from then on."""

    def __init__(self, waiting: int, patch: pytest.MonkeyPatch, fit: Fit, cpus: float, alike: bool) -> None:
        self.engine = Engine(FakeMachine(clock=SteppedClock(), nodes=(a_node(),)), fit=fit)
        self.engine.scheduler.hint_job = lambda job: self.calls.update(["hint"])
        self.waiting, self.cpus, self.alike = waiting, cpus, alike
        self.calls: Counter[str] = Counter()
        self._count(patch, Room, "place")
        self._count(patch, scheduler_module, "in_words")
        self._count(patch, demands_module, "ways")
        self._count(patch, self.engine.store, "write")
        self._count(patch, self.engine.store, "active")
        self._count(patch, self.engine.backend, "prepare")

    async def fill(self) -> None:
        await self.engine.store.insert(
            a_job(a_pool(cpus=4), id="holder", created_at=at(-2 * self.waiting)), ()
        )
        await self.engine.scheduler.cycle()
        for number in range(self.waiting):
            await self.engine.store.insert(self.job(number), ())
        while await self.engine.scheduler.cycle() is not None:
            pass
        self.calls.clear()

    def job(self, number: int) -> Job:
        timeout = seconds(600 if self.alike else 600 + number)
        return a_job(
            a_pool(cpus=self.cpus),
            id=f"{number:06d}",
            created_at=at(number - self.waiting),
            scheduling=Scheduling(timeout=timeout),
        )

    def _count(self, patch: pytest.MonkeyPatch, where: object, name: str) -> None:
        real = getattr(where, name)

        def counting(*args: Any, **named: Any) -> Any:
            self.calls[name] += 1
            return real(*args, **named)

        patch.setattr(where, name, counting)


def cost(
    waiting: int, event: Event, fit: Fit = Fit.SHRINK, cpus: float = 8, *, alike: bool = True
) -> Counter[str]:
    async def play() -> Counter[str]:
        with pytest.MonkeyPatch.context() as patch:
            world = Counted(waiting, patch, fit, cpus, alike)
            await world.fill()
            await event(world)
            await world.engine.scheduler.cycle()
            return world.calls

    return simulate(play)


async def nothing(_: Counted) -> None: ...


async def submitted(world: Counted) -> None:
    await world.engine.store.insert(world.job(world.waiting), ())


async def one_ended(world: Counted) -> None:
    holder = await world.engine.store.load("holder")
    assert holder is not None
    await world.engine.store.write(holder, replace(holder.status, state=JobState.SUCCEEDED))


async def one_cancelled(world: Counted) -> None:
    job = await world.engine.store.load(f"{world.waiting // 2:06d}")
    assert job is not None
    await world.engine.store.write(job, cancelled(job).status)


async def asked_about(world: Counted) -> None:
    assert world.engine.scheduler.reason(f"{world.waiting // 2:06d}") is not None


EVENTS = [nothing, submitted, one_ended, one_cancelled, asked_about]


@pytest.mark.parametrize("event", EVENTS)
def test_a_cycle_costs_the_same_behind_a_hundred_jobs_as_behind_two_thousand(event: Event):
    few, many = cost(100, event), cost(2000, event)
    assert few == many
    assert max(many.values()) <= 10


@pytest.mark.parametrize("event", EVENTS)
def test_so_it_does_where_no_two_jobs_are_alike(event: Event):
    assert cost(500, event, alike=False) == cost(900, event, alike=False)


@pytest.mark.parametrize("event", [nothing, submitted, one_cancelled])
def test_jobs_too_large_for_the_machines_are_not_tried_again_until_there_are_others(event: Event):
    few = cost(100, event, Fit.STRICT, cpus=99, alike=False)
    assert few == cost(1000, event, Fit.STRICT, cpus=99, alike=False)
    assert few["place"] <= 5


def test_nothing_is_worded_for_jobs_whose_kind_of_reason_is_known():
    assert cost(500, nothing)["in_words"] == 0
    assert cost(500, asked_about)["in_words"] == 1


def test_a_tick_looks_only_at_jobs_that_hold_something_and_at_the_queue_once():
    def flights(waiting: int) -> Counter[str]:
        async def play() -> Counter[str]:
            engine = Engine(FakeMachine(clock=SteppedClock(), nodes=(a_node(cpus=1),)))
            for number in range(waiting + 1):
                await engine.store.insert(
                    a_job(a_pool(cpus=1), id=f"{number:06d}", created_at=at(number)), ()
                )
            calls: Counter[str] = Counter()
            turn, cycle = engine.loop.turn, engine.scheduler.cycle
            engine.job_queue.serve(lambda job: (calls.update(["turn"]), turn(job))[1])
            engine.schedule_queue.serve(lambda key: (calls.update(["cycle"]), cycle(key))[1])
            await engine.open()
            await asyncio.sleep(5)
            calls.clear()
            await asyncio.sleep(10)
            await engine.close()
            return calls

        return simulate(play)

    assert flights(20) == flights(400)


@in_stepped_time
async def test_of_many_that_are_being_prepared_a_cycle_looks_at_some_and_all_are_ready_soon_after():
    engine = Engine(FakeMachine(clock=SteppedClock(), nodes=(a_node(cpus=1000, memory=10**15),)))
    engine.scheduler.hint_job = lambda _: None
    runtimes = engine.backend.machine.runtimes
    runtimes.unmade.add(MADE)
    for number in range(3 * MOST_LOOKS):
        pool = replace(a_pool(cpus=1), image=MADE)
        await engine.store.insert(a_job(pool, id=f"{number:06d}", created_at=at(number)), ())
    await engine.scheduler.cycle()
    with pytest.MonkeyPatch.context() as patch:
        asked: list[str] = []
        prepare = engine.backend.prepare
        patch.setattr(
            engine.backend, "prepare", lambda spec, job="": (asked.append(job), prepare(spec, job))[1]
        )
        await engine.scheduler.cycle()
        assert len(asked) == len(set(asked)) == MOST_LOOKS
    runtimes.make(MADE)  # nobody is hinted: the loop over jobs stands still
    engine.schedule_queue.hint("cycle")
    await asyncio.sleep(1)
    states = {job.status.state for job in await engine.store.active()}
    assert states == {JobState.PENDING}
