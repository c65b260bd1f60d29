"""The queue as people see it: places, reasons, pages and times, over a store and a backend."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

import pytest

from tests.builders import T0, a_job, a_node, a_pool, at, running
from tests.shares import a_share, a_tree
from trainshed.core.event import Reason, Waiting
from trainshed.core.jobs.job import Job, Scheduling
from trainshed.core.jobs.readiness import PreparationKind
from trainshed.core.queue.fleet import Fit
from trainshed.core.queue.place import Amount
from trainshed.core.queue.queue_walk import MOST_LANES, QueuePlace
from trainshed.core.queue.shape import order
from trainshed.core.queue.share import ShareTree
from trainshed.service import queue as queue_module
from trainshed.service.queue import QueuePage, QueueService
from trainshed.testing.backend import FakeBackend, FakeMachine
from trainshed.testing.store import MemoryStore
from trainshed.wire.page import LONGEST_TOKEN, PageTokens
from trainshed.wire.queue import cursor_of, place_of

PAGES = PageTokens.signed_with(b"key")
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
        after: QueuePlace | None = None,
        limit: int = 100,
        *,
        project: str = "-",
        location: str = "-",
        eta: bool = False,
    ) -> QueuePage:
        for job in self.jobs:
            await self.store.insert(job, ())
        self.jobs = ()
        return await self.service.page(project, location, after or {}, limit, with_eta=eta)


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


class Lanes(World):
    """A queue in which whole shares are before or behind each other, as they have and had the machines."""

    def __init__(self, *jobs: Job, shares: Sequence[str] = ("a", "b")) -> None:
        super().__init__(*jobs)
        self.waiting, self.turn = {job.id: job for job in jobs}, list(shares)
        self.tree: ShareTree | None = a_tree(*(a_share(name, 1) for name in shares))
        self.aside = dict[str, Job]()
        self.service.shares = lambda: self.tree
        self.service.in_turn, self.service.set_aside = self.in_turn, self.aside.values

    def in_turn(self) -> Iterator[Job]:
        ready = [job for id, job in self.waiting.items() if id not in {**self.unready, **self.aside}]
        for share in self.turn:
            yield from sorted((job for job in ready if job.project == share), key=order)
        yield from self.aside.values()

    async def leave(self, id: str) -> None:
        job = self.waiting.pop(id)
        self.unready.pop(id, None)
        await self.store.write((await self.store.load(id)) or job, running(job).status)

    async def rest(self, place: QueuePlace | None, limit: int = 2) -> list[str]:
        """The ids on all further pages, over the wire, as a client asks for them."""
        ids: list[str] = []
        for _ in range(20):
            if place is None:
                return ids
            token = PAGES.encode(cursor_of(place), "q")
            cursor = PAGES.decode(token, "q")
            assert cursor is not None
            page = await self.page(place_of(cursor), limit)
            ids += [row.job.id for row in page.rows]
            place = page.next
        raise AssertionError("it comes to no end")


def of_two(*ids: str) -> list[Job]:
    """Odd ones are of the share a, even ones of b."""
    return [waiting(id, project="b" if int(id) % 2 == 0 else "a") for id in ids]


async def test_with_shares_the_jobs_come_in_their_turn_and_those_that_cannot_start_yet_at_their_place():
    world = Lanes(*of_two("1", "2", "3", "4", "5", "6"))
    world.turn = ["b", "a"]
    world.unready, world.aside["3"] = {"4": world.waiting["4"]}, world.waiting["3"]
    page = await world.page()
    rows = [(row.job.id, row.position) for row in page.rows]
    assert rows == [("2", 1), ("4", None), ("6", 2), ("1", 3), ("3", 4), ("5", 5)]
    first = await world.page(limit=4)
    second = await world.page(first.next, limit=4)
    assert [(row.job.id, row.position) for row in (*first.rows, *second.rows)] == rows
    assert (second.total, second.next) == (6, None)


async def test_pages_go_on_behind_the_last_job_of_a_page_that_has_left_though_there_are_shares():
    world = Lanes(*of_two("1", "3", "5", "7", "9"))
    first = await world.page(limit=2)
    await world.leave("1")
    await world.leave("3")
    assert await world.rest(first.next) == ["5", "7", "9"]


async def test_no_job_that_stays_is_missed_when_the_turn_of_shares_changes_between_pages():
    world = Lanes(*of_two(*map(str, range(1, 11))))
    first = await world.page(limit=3)
    assert [row.job.id for row in first.rows] == ["1", "3", "5"]
    world.turn = ["b", "a"]
    await world.leave("1")
    assert await world.rest(first.next) == ["2", "4", "6", "8", "10", "7", "9"]
    world.turn = ["a", "b"]
    assert await world.rest(first.next) == ["7", "9", "2", "4", "6", "8", "10"]


async def test_no_job_is_missed_that_is_prepared_or_fits_nowhere_any_more_between_pages():
    world = Lanes(*of_two("1", "3", "5", "7", "9"))
    world.unready, world.aside["3"] = {"5": world.waiting["5"]}, world.waiting["3"]
    first = await world.page(limit=1)
    world.unready, world.aside["9"] = {}, world.waiting["9"]
    del world.aside["3"]
    assert await world.rest(first.next) == ["3", "5", "7", "9"]


async def test_pages_come_to_an_end_when_shares_are_set_or_removed_between_them():
    world = Lanes(*of_two("1", "2", "3", "4"))
    tree, world.tree = world.tree, None
    first = await world.page(limit=1)
    world.tree = tree
    assert await world.rest(first.next) == ["2", "3", "4"]
    first = await world.page(limit=1)
    world.tree = None
    assert await world.rest(first.next) == ["1", "2", "3", "4"], "anew, and none is missed"


async def test_pages_over_more_shares_than_a_token_holds_show_every_job():
    shares = [f"s{number}" for number in range(MOST_LANES + 5)]
    jobs = [waiting(str(number), project=name) for number, name in enumerate(shares, 1)]
    world = Lanes(*jobs, shares=shares)
    first = await world.page(limit=MOST_LANES)
    assert len(PAGES.encode(cursor_of(first.next or {}), "q")) <= LONGEST_TOKEN
    seen = {row.job.id for row in first.rows} | set(await world.rest(first.next, limit=10))
    assert seen == {job.id for job in jobs}
    assert len(await world.rest({}, limit=MOST_LANES + 1)) >= len(jobs)
