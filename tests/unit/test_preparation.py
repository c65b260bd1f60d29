"""One task per key, whoever needs it joins, hints while it goes on, outcomes remembered."""

import asyncio

from trainshed import preparation
from trainshed.core.jobs.readiness import Readiness, ReadinessState
from trainshed.preparation import Preparation, Preparations

FAILED = Readiness(standing=ReadinessState.FAILED, message="no")


def waiting_for(*jobs: str) -> Preparation:
    return Preparation(jobs=set(jobs))


async def test_every_job_that_joined_gets_a_hint_and_the_outcome():
    hints: list[str] = []
    preparations = Preparations[str, Preparation](hints.append)

    async def work(_: Preparation) -> Readiness:
        return FAILED

    begun = preparations.begin("key", waiting_for("1"), work)
    begun.jobs.add("2")
    assert preparations.going == {"key": begun}
    assert begun.task is not None
    await begun.task
    assert sorted(hints) == ["1", "2"]
    assert preparations.going == {}
    assert [preparations.outcome("key", job) for job in ("1", "2", "3", "")] == [FAILED, FAILED, None, None]
    assert preparations.remembered == {"1", "2"}


async def test_what_is_forgotten_begins_anew():
    preparations = Preparations[str, Preparation](lambda _: None)
    preparations.remember("key", "1", FAILED)
    assert preparations.forget("key", "1") is FAILED
    assert preparations.outcome("key", "1") is None
    assert preparations.forget("key", "1") is None


async def test_one_of_those_who_wait_is_hinted_while_it_goes_on(monkeypatch):
    monkeypatch.setattr(preparation, "PACE", 0.001)
    hinted = asyncio.Event()
    preparations = Preparations[str, Preparation](lambda _: hinted.set())
    over = asyncio.Event()

    async def work(_: Preparation) -> None:
        await over.wait()

    begun = preparations.begin("key", waiting_for("1", "2"), work)
    await asyncio.wait_for(hinted.wait(), 10)
    over.set()
    assert begun.task is not None
    await begun.task


async def test_at_the_close_what_goes_on_is_given_up_and_forgotten():
    preparations = Preparations[str, Preparation](lambda _: None)

    async def work(_: Preparation) -> None:
        await asyncio.sleep(600)

    preparations.begin("key", waiting_for("1"), work)
    await asyncio.sleep(0)
    await preparations.close()
    assert preparations.going == {}
    assert preparations.outcome("key", "1") is None


def test_the_oldest_outcomes_go_first(monkeypatch):
    monkeypatch.setattr(preparation, "MOST_REMEMBERED", 2)
    kept: dict[int, str] = {}
    for number in range(4):
        preparation.remember(kept, number, str(number))
    assert kept == {2: "2", 3: "3"}
