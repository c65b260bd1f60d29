"""Projects that have spent their budget: what is logged, and which jobs wait."""

import logging
from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest

from tests.builders import a_job, a_node, a_pool
from tests.unit.control.engine import Engine
from tests.unit.control.stepped import SteppedClock, in_stepped_time
from trainshed.control.budgets import Budgets
from trainshed.core.event import Reason, Waiting
from trainshed.core.jobs.job import JobState
from trainshed.core.notice import Notice
from trainshed.core.prices import Prices
from trainshed.core.queue.share import Share, ShareTree, share_tree
from trainshed.testing.backend import FakeMachine

SPENT = Waiting(reason=Reason.BUDGET_SPENT, message="Spent.", remedy="Wait.")


class Purse:
    """Budgets over amounts that a test sets."""

    def __init__(self, **budgets: int) -> None:
        self.amounts: dict[str, Decimal] = {}
        self.hints = 0
        self.prices = Prices(
            currency="EUR", budgets={name: Decimal(value) for name, value in budgets.items()}
        )
        self.told: list[Notice] = []
        self.shares: ShareTree | None = None
        self.budgets = Budgets(
            SteppedClock(), lambda: self.prices, self._spent, self._hint, self._tell, lambda: self.shares
        )

    async def _spent(self, since: date, until: date) -> dict[str, Decimal]:
        assert since.day == until.day == 1 and since < until
        return self.amounts

    async def _tell(self, notice: Notice) -> None:
        self.told.append(notice)

    def _hint(self) -> None:
        self.hints += 1

    async def look(self, **amounts: str) -> None:
        self.amounts = {name: Decimal(value) for name, value in amounts.items()}
        await self.budgets.look()


async def test_each_level_is_logged_and_told_once(caplog: pytest.LogCaptureFixture):
    purse = Purse(vision=100)
    with caplog.at_level(logging.WARNING, "trainshed"):
        for amount in ("49.99", "50", "60", "99", "99.5", "120", "130"):
            await purse.look(vision=amount)
    assert [record.getMessage().partition(" for ")[0] for record in caplog.records] == [
        "Project 'vision' has spent 50.00 of its 100.00 EUR",
        "Project 'vision' has spent 99.00 of its 100.00 EUR",
        "Project 'vision' has spent 120.00 of its 100.00 EUR",
    ]
    assert [notice.id for notice in purse.told] == [
        f"budget-vision-{purse.told[0].at:%Y-%m}-{level}" for level in (50, 80, 100)
    ]


async def test_new_jobs_of_a_share_wait_while_its_projects_have_spent_its_budget_together():
    purse = Purse()
    team = Share(name="team", nominal={"cpus": 8}, budget=Decimal(100))
    below = [Share(name=n, parent="team", projects=(n,), nominal={"cpus": 4}) for n in ("vision", "speech")]
    purse.shares = share_tree([team, *below])
    await purse.look(vision="60", speech="39", other="1000")
    assert purse.budgets.waiting("vision") is None
    await purse.look(vision="60", speech="40", other="1000")
    waiting = purse.budgets.waiting("speech")
    assert waiting is not None and waiting.message.startswith("Share 'team' has spent 100.00 of its 100.00")
    assert purse.budgets.waiting("vision") is not None
    assert purse.budgets.waiting("other") is None
    assert [item.share for item in purse.budgets.spendings("vision")] == ["team"]
    await purse.look(vision="1")
    assert purse.budgets.waiting("speech") is None and purse.hints == 1


async def test_new_jobs_of_a_project_wait_while_its_budget_is_spent_and_no_others():
    purse = Purse(vision=100, default=10)
    await purse.look(vision="99.99", speech="10")
    assert purse.budgets.waiting("vision") is None
    assert purse.budgets.waiting("nobody") is None
    waiting = purse.budgets.waiting("speech")
    assert waiting is not None and waiting.reason is Reason.BUDGET_SPENT
    assert "10.00 of its 10.00 EUR" in waiting.message
    assert [item.project for item in purse.budgets.spendings("-")] == ["speech", "vision"]


async def test_the_scheduler_is_hinted_when_there_is_money_again():
    purse = Purse(vision=100)
    await purse.look(vision="100")
    assert purse.hints == 0
    purse.prices = replace(purse.prices, budgets={"vision": Decimal(200)})
    await purse.look(vision="100")
    assert (purse.hints, purse.budgets.waiting("vision")) == (1, None)


@in_stepped_time
async def test_a_job_over_budget_waits_with_its_reason_holds_up_nobody_and_starts_when_it_may():
    engine = Engine(FakeMachine(clock=SteppedClock(), nodes=(a_node(),)))
    engine.scheduler.hint_job = lambda _: None
    poor = {"p": SPENT}
    engine.scheduler.budget = poor.get
    for id, project in (("1", "p"), ("2", "q")):
        await engine.store.insert(replace(a_job(a_pool(), id=id), project=project), ())
    await engine.scheduler.cycle()
    held, other = await engine.store.load("1"), await engine.store.load("2")
    assert held is not None and other is not None
    assert (held.status.state, other.status.state) == (JobState.QUEUED, JobState.PENDING)
    assert engine.scheduler.reason("1") == SPENT == held.status.waiting
    assert [event.reason for event in await engine.store.events("1")] == [Reason.BUDGET_SPENT]
    await engine.scheduler.cycle()
    assert len(await engine.store.events("1")) == 1
    poor.clear()
    await engine.scheduler.cycle()
    held = await engine.store.load("1")
    assert held is not None and held.status.state is JobState.PENDING


@in_stepped_time
async def test_a_job_that_was_ready_waits_once_the_budget_is_spent():
    engine = Engine(FakeMachine(clock=SteppedClock(), nodes=(a_node(cpus=1),)))
    engine.scheduler.hint_job = lambda _: None
    poor: dict[str, Waiting] = {}
    engine.scheduler.budget = poor.get
    for id in "12":
        await engine.store.insert(a_job(a_pool(cpus=1), id=id), ())
    await engine.scheduler.cycle()
    waiting = engine.scheduler.reason("2")
    assert waiting is not None and waiting.reason is Reason.WAITS_FOR_CAPACITY
    poor["shed"] = SPENT
    for _ in range(2):
        await engine.scheduler.cycle()
    assert engine.scheduler.reason("2") == SPENT
    first = await engine.store.load("1")
    assert first is not None and first.status.state is JobState.PENDING  # it goes on
