"""The queue as people see it: places, reasons, pages and times, over a store and a backend."""

import asyncio
from dataclasses import replace
from datetime import datetime

import pytest

from tests.builders import T0, a_job, a_node, a_pool, at, running
from trainshed.core.event import Reason, Waiting
from trainshed.core.fleet import Fit
from trainshed.core.job import Job, Scheduling
from trainshed.core.place import Amount
from trainshed.core.readiness import PreparationKind
from trainshed.core.shape import Order
from trainshed.core.share import UNDIVIDED
from trainshed.service import queue as queue_module
from trainshed.service.queue import QueuePage, QueueService
from trainshed.testing.backend import FakeBackend, FakeMachine
from trainshed.testing.store import MemoryStore

HOLDER = running(a_job(id="h"))
BEHIND = Waiting(reason=Reason.WAITS_BEHIND_OTHERS, message="Behind.", remedy="Wait.")


class HandClock:
    at = T0

    def now(self) -> datetime:
        return self.at


class World:
    def __init__(self, *jobs: Job) -> None:
        self.jobs, self.unready, self.clock = jobs, dict[str, Job](), HandClock()
        self.machine = FakeMachine(nodes=(a_node(cpus=1),))
        self.store = MemoryStore()
        self.service = QueueService(
            self.store,
            FakeBackend(self.machine),
            self.clock,
            Fit.SHRINK,
            reason={"1": BEHIND}.get,
            unready=lambda: self.unready,
        )

    async def page(
        self,
        after: Order | None = None,
        limit: int = 100,
        *,
        project: str = "-",
        location: str = "-",
        eta: bool = False,
    ) -> QueuePage:
        for job in self.jobs:
            await self.store.insert(job, ())
        self.jobs = ()
        return await self.service.page(project, location, after, limit, with_eta=eta)


def waiting(id: str, *, priority: int = 0, project: str = "shed") -> Job:
    job = a_job(a_pool(2), id=id, created_at=at(int(id)), scheduling=Scheduling(priority=priority))
    return replace(job, project=project)


async def test_waiting_jobs_come_in_the_order_of_the_scheduler_with_place_reason_and_demand():
    page = await World(HOLDER, waiting("2"), waiting("1"), waiting("3", priority=5)).page()
    assert [(row.job.id, row.position) for row in page.rows] == [("3", 1), ("1", 2), ("2", 3)]
    assert page.rows[1].waiting == BEHIND
    assert page.rows[1].needs == Amount(2, 2 << 30)
    assert (page.total, page.next) == (3, None)


async def test_pages_go_on_where_they_ended_though_jobs_left_the_queue_meanwhile():
    world = World(*[waiting(str(number)) for number in range(1, 6)])
    first = await world.page(limit=2)
    left = first.rows[1].job
    await world.store.write(left, running(left).status)
    second = await world.page(first.next, limit=2)
    third = await world.page(second.next, limit=2)
    assert [[(row.job.id, row.position) for row in page.rows] for page in (first, second, third)] == [
        [("1", 1), ("2", 2)],
        [("3", 2), ("4", 3)],
        [("5", 4)],
    ]
    assert third.next is None


async def test_a_job_in_preparation_has_no_place_and_the_others_are_counted_without_it():
    world = World(waiting("1"), waiting("2"), waiting("3"))
    world.unready = {"1": waiting("1")}
    assert [row.position for row in (await world.page()).rows] == [None, 1, 2]
    first = await world.page(limit=1)
    assert [row.position for row in (await world.page(first.next)).rows] == [1, 2]


async def test_the_jobs_of_a_project_keep_their_places_among_all():
    world = World(waiting("1"), waiting("2", project="other"), waiting("3"), waiting("4", project="other"))
    page = await world.page(project="other", limit=1)
    assert [(row.job.id, row.position) for row in page.rows] == [("2", 2)]
    assert page.total == 2
    rest = await world.page(page.next, project="other", limit=1)
    assert [(row.job.id, row.position) for row in rest.rows] == [("4", 4)]
    assert (await world.page(location="elsewhere")).rows == ()


async def test_the_time_of_a_start_is_told_where_it_is_asked_for_and_known_to_why():
    world = World(HOLDER, waiting("1"), waiting("2"))
    assert [row.eta for row in (await world.page()).rows] == [None, None]
    etas = [row.eta for row in (await world.page(eta=True)).rows]
    assert [eta is not None and eta.earliest for eta in etas] == [T0, T0]


async def test_many_who_ask_when_jobs_start_cost_one_simulation(monkeypatch: pytest.MonkeyPatch):
    world, calls = World(HOLDER, waiting("1")), list[int]()
    foresee = queue_module.foresee_several

    def counted(*given: object) -> object:
        calls.append(1)
        return foresee(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(queue_module, "foresee_several", counted)
    await world.page()
    await asyncio.gather(*(world.page(eta=True) for _ in range(5)))
    assert len(calls) == 1
    world.clock.at = T0 + queue_module.FRESH * 2
    await world.page(eta=True)
    assert len(calls) == 2


async def test_only_the_first_jobs_of_a_long_queue_are_simulated():
    world = World(HOLDER, *[waiting(str(number)) for number in range(1, 100)])
    rows = (await world.page(eta=True)).rows
    assert [row.eta is not None for row in rows] == [True] * 50 + [False] * 49


async def test_what_is_prepared_is_told_with_the_jobs_that_wait_for_it():
    world = World(waiting("1"))
    await world.page()
    world.machine.runtimes.unmade.add("trainshed/python:3")
    world.service.backend.prepare(waiting("1").spec, "1")
    ((item, jobs),) = world.service.preparing()
    assert (item.kind, item.name, item.message) == (
        PreparationKind.RUNTIME,
        "trainshed/python:3",
        "Making trainshed/python:3.",
    )
    assert [job.id for job in jobs] == ["1"]


async def test_with_shares_the_jobs_come_in_their_turn_and_pages_go_on_behind_the_last_one():
    jobs = [waiting(str(number)) for number in range(1, 5)]
    world = World(*jobs)
    world.unready = {"1": jobs[0]}
    world.service.shares, world.service.in_turn = lambda: UNDIVIDED, lambda: (jobs[3], jobs[1], jobs[2])
    first = await world.page(limit=2)
    assert [(row.job.id, row.position) for row in first.rows] == [("4", 1), ("2", 2)]
    second = await world.page(first.next, limit=2)
    assert [(row.job.id, row.position) for row in second.rows] == [("3", 3), ("1", None)]
    assert (second.total, second.next) == (4, None)
