"""Who gets a shell: by a ticket that is good once, for a moment, for one replica and one page."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import cast

import pytest

from tests.builders import T0, a_job, a_pool, admitted, closing, running
from trainshed.core.accounts.permission import OWNER, Principal
from trainshed.core.errors import Conflict, Exhausted, Forbidden, NotFound, Unavailable
from trainshed.core.event import Reason, Waiting
from trainshed.core.jobs.job import Job, JobState, Outcome
from trainshed.core.jobs.replica import Exit, Phase
from trainshed.core.names import RunKey
from trainshed.core.shell_port import Screen, Terminal
from trainshed.service.shells import LIFE, MOST_OPEN, ReplicaPlace, ShellService, ShellTicket
from trainshed.service.tickets import MOST_TICKETS
from trainshed.testing.store import MemoryStore

PAGE = "http://127.0.0.1:8080"
PLACE = ReplicaPlace("shed", "here", "1", "workerpool0-0")


@dataclass
class Clock:
    time: datetime = T0

    def now(self) -> datetime:
        return self.time


class Silent:
    async def close(self) -> None: ...


@dataclass
class Opened:
    """Shells that only remember what was asked."""

    asked: list[tuple[RunKey, tuple[str, ...], Screen | None]] = field(default_factory=list)
    fault: Exception | None = None

    async def open_shell(self, key: RunKey, command: Sequence[str], screen: Screen | None) -> Terminal:
        if self.fault is not None:
            raise self.fault
        self.asked.append((key, tuple(command), screen))
        return cast(Terminal, Silent())


@dataclass
class Rights:
    """Those of everybody, until they are taken away."""

    are_left: bool = True

    def of(self, principal: Principal) -> Principal:
        return principal if self.are_left else replace(principal, rights=frozenset())

    def listen(self, principal: Principal, listener: Callable[[], None]) -> contextlib.nullcontext[None]:
        return contextlib.nullcontext()


class Bench:
    def __init__(self) -> None:
        self.clock, self.store, self.shells, self.rights = Clock(), MemoryStore(), Opened(), Rights()
        self.service = ShellService(self.store, self.shells, self.clock, self.rights, patience=0.1)

    async def keep(self, job: Job) -> None:
        await self.store.insert(job, ())

    async def change(self, job: Job) -> None:
        found = await self.store.load(job.id)
        assert found is not None
        await self.store.write(found, job.status, ())

    async def ticket(self, place: ReplicaPlace = PLACE, origin: str | None = PAGE) -> ShellTicket:
        return await self.service.issue(place, ("ls",), Screen(10, 20), origin, OWNER)


@pytest.fixture
async def bench() -> Bench:
    bench = Bench()
    await bench.keep(running(a_job(a_pool(2))))
    return bench


async def test_a_ticket_opens_what_was_asked_for_in_the_run_that_is_there(bench: Bench):
    ticket = await bench.ticket()
    terminal = await bench.service.open(bench.service.redeem(ticket.word, PLACE, PAGE))
    assert bench.shells.asked == [(ticket.order.key, ("ls",), Screen(10, 20))]
    assert ticket.order.key.name.task == "workerpool0-0"
    await bench.service.close(terminal)


async def test_a_ticket_is_good_once(bench: Bench):
    ticket = await bench.ticket()
    bench.service.redeem(ticket.word, PLACE, PAGE)
    with pytest.raises(Forbidden, match="was used"):
        bench.service.redeem(ticket.word, PLACE, PAGE)


async def test_a_ticket_is_good_for_a_moment(bench: Bench):
    ticket = await bench.ticket()
    bench.clock.time += LIFE + timedelta(seconds=1)
    with pytest.raises(Forbidden, match="too old"):
        bench.service.redeem(ticket.word, PLACE, PAGE)


@pytest.mark.parametrize("origin", [None, "http://evil.example", "http://127.0.0.1:8081"])
async def test_a_ticket_is_good_for_the_page_that_asked(bench: Bench, origin: str | None):
    ticket = await bench.ticket()
    with pytest.raises(Forbidden):
        bench.service.redeem(ticket.word, PLACE, origin)
    with pytest.raises(Forbidden):  # who tried it elsewhere has used it
        bench.service.redeem(ticket.word, PLACE, PAGE)


@pytest.mark.parametrize(
    "place", [replace(PLACE, task="workerpool0-1"), replace(PLACE, job="2"), replace(PLACE, project="other")]
)
async def test_a_ticket_is_good_for_one_replica_of_one_job(bench: Bench, place: ReplicaPlace):
    ticket = await bench.ticket()
    with pytest.raises(Forbidden):
        bench.service.redeem(ticket.word, place, PAGE)


async def test_a_ticket_is_good_while_who_asked_may_have_a_shell(bench: Bench):
    redeemed = bench.service.redeem((await bench.ticket()).word, PLACE, PAGE)
    ticket = await bench.ticket()
    bench.rights.are_left = False
    with pytest.raises(Forbidden, match=r"jobs\.shell"):
        bench.service.redeem(ticket.word, PLACE, PAGE)
    with pytest.raises(Forbidden, match=r"jobs\.shell"):
        await bench.service.open(redeemed)
    assert bench.shells.asked == []


async def test_tickets_are_not_guessed_from_each_other(bench: Bench):
    words = {(await bench.ticket()).word for _ in range(100)}
    assert len(words) == 100 and all(len(word) >= 32 for word in words)


async def test_a_job_that_is_over_has_no_shells_and_its_tickets_are_worthless(bench: Bench):
    ticket = await bench.ticket()
    job = await bench.store.load("1")
    assert job is not None
    await bench.change(replace(job, status=replace(job.status, state=JobState.SUCCEEDED)))
    with pytest.raises(Conflict, match="is over"):
        await bench.service.open(bench.service.redeem(ticket.word, PLACE, PAGE))
    with pytest.raises(Conflict, match="is over"):
        await bench.ticket()
    assert bench.shells.asked == []


async def test_a_ticket_is_not_for_a_later_run(bench: Bench):
    ticket = await bench.ticket()
    await bench.change(running(a_job(a_pool(2)), run=1))
    with pytest.raises(Conflict, match="started anew"):
        await bench.service.open(bench.service.redeem(ticket.word, PLACE, PAGE))


async def test_a_replica_that_does_not_run_is_told_as_it_is():
    bench = Bench()
    await bench.keep(a_job())
    with pytest.raises(Conflict, match="the job is QUEUED"):
        await bench.ticket()
    await bench.change(admitted(a_job()))
    with pytest.raises(Conflict, match="it is PLANNED"):
        await bench.ticket()
    job = running(a_job())
    ended = tuple(replace(one, phase=Phase.ENDED, exit=Exit(code=3)) for one in job.status.replicas)
    await bench.change(replace(job, status=replace(job.status, replicas=ended)))
    with pytest.raises(Conflict, match="it exited with code 3"):
        await bench.ticket()


async def test_a_replica_that_is_being_started_is_waited_for():
    bench = Bench()
    bench.service.patience = 60
    await bench.keep(admitted(a_job()))
    asked = asyncio.create_task(bench.ticket())
    await asyncio.sleep(0)
    assert not asked.done()
    await bench.change(running(a_job()))
    assert (await asked).order.key.name.task == "workerpool0-0"


async def test_nobody_waits_for_a_replica_that_is_not_being_started():
    bench = Bench()
    bench.service.patience = 3600
    await bench.keep(a_job())
    with pytest.raises(Conflict, match="the job is QUEUED"):
        await bench.ticket()
    await bench.change(closing(admitted(a_job()), Outcome.CANCELLED))
    with pytest.raises(Conflict, match="it is PLANNED"):
        await bench.ticket()


async def test_a_replica_that_does_not_start_in_time_is_told_with_what_it_waits_for():
    bench = Bench()
    job = admitted(a_job())
    waiting = Waiting(reason=Reason.STARTING, message="Its image is being pulled.")
    await bench.keep(replace(job, status=replace(job.status, waiting=waiting)))
    with pytest.raises(Conflict, match=r"does not run: it is PLANNED: Its image is being pulled\.$"):
        await bench.ticket()


async def test_a_replica_that_is_not_there_is_told_with_those_that_are(bench: Bench):
    with pytest.raises(NotFound, match="it has workerpool0-0, workerpool0-1"):
        await bench.ticket(replace(PLACE, task="workerpool7-0"))


async def test_tickets_and_shells_have_their_number(bench: Bench):
    for _ in range(MOST_TICKETS):
        await bench.ticket()
    with pytest.raises(Exhausted):
        await bench.ticket()
    bench.clock.time += LIFE + timedelta(seconds=1)
    tickets = [await bench.ticket() for _ in range(MOST_OPEN + 1)]
    opened = [await bench.service.open(one.order) for one in tickets[:-1]]
    with pytest.raises(Exhausted):
        await bench.service.open(tickets[-1].order)
    await bench.service.close(opened[0])
    await bench.service.open(tickets[-1].order)


async def test_a_shell_that_does_not_open_counts_for_nothing(bench: Bench):
    bench.shells.fault = Unavailable()
    for _ in range(MOST_OPEN + 1):
        with pytest.raises(Unavailable):
            await bench.service.open((await bench.ticket()).order)


async def test_a_backend_without_shells_is_told_so(bench: Bench):
    with pytest.raises(Conflict, match="has no shells"):
        await ShellService(bench.store, None, bench.clock, bench.rights).issue(PLACE, (), None, None, OWNER)
