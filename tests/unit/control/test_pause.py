"""The scheduler and jobs that pause: it writes what a stopped job loses, and looks again in time."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta

from tests.builders import a_node, at
from tests.shares import a_job_of, started
from tests.unit.control.engine import Engine
from tests.unit.control.stepped import SteppedClock, in_stepped_time
from trainshed.core.errors import TrainshedError, Unavailable
from trainshed.core.event import Reason
from trainshed.core.jobs.job import Job, Outcome, Requeue
from trainshed.core.queue.fleet import Fit
from trainshed.testing.backend import FakeMachine


def an_engine(stored_at: datetime | TrainshedError | None = None) -> Engine:
    engine = Engine(FakeMachine(clock=SteppedClock(), nodes=(a_node(cpus=8),)), fit=Fit.STRICT)
    engine.scheduler.hint_job = lambda _: None
    engine.scheduler.hint = lambda: None  # the test calls each cycle itself

    async def checkpointed(_: Job) -> datetime | None:
        if isinstance(stored_at, TrainshedError):
            raise stored_at
        return stored_at

    engine.scheduler.checkpointed = checkpointed
    engine.scheduler.__post_init__()
    return engine


async def insert_paused(engine: Engine) -> None:
    job = a_job_of("a", "1", 4, spot=True)
    requeue = Requeue(at=at(0), message="Preempted.", in_vain=1, pauses_until=at(90), began=at(-600))
    await engine.store.insert(replace(job, status=replace(job.status, requeue=requeue)), ())


async def load(engine: Engine, id: str) -> Job:
    job = await engine.store.load(id)
    assert job is not None
    return job


@in_stepped_time
async def test_a_cycle_is_due_when_a_pause_ends_and_says_why_the_job_waits():
    engine = an_engine()
    await insert_paused(engine)
    assert await engine.scheduler.cycle() == at(60)
    waiting = engine.scheduler.reason("1")
    assert waiting is not None and waiting.reason is Reason.PAUSES
    await asyncio.sleep(60)
    assert await engine.scheduler.cycle() == at(90)
    assert (await load(engine, "1")).status.admission is None
    await asyncio.sleep(30)
    await engine.scheduler.cycle()
    assert (await load(engine, "1")).status.admission is not None


@in_stepped_time
async def test_the_pause_ends_when_a_checkpoint_of_the_run_is_stored_after_all():
    for stored_at, is_admitted in ((at(-1), True), (at(-601), False), (Unavailable("away"), False)):
        engine = an_engine(stored_at)
        await insert_paused(engine)
        await engine.scheduler.cycle()
        await engine.scheduler.cycle()
        status = (await load(engine, "1")).status
        assert (status.admission is not None) is is_admitted
        assert status.requeue is not None
        assert (status.requeue.in_vain == 0) is is_admitted


@in_stepped_time
async def test_what_a_stopped_job_loses_is_written_with_the_decision_to_stop_it():
    async def lost(stored_at: datetime | TrainshedError | None) -> timedelta | None:
        engine = an_engine(stored_at)
        spot = started(a_job_of("a", "spot", 8, spot=True))
        spot = replace(spot, status=replace(spot.status, started_at=at(-600)))
        await engine.store.insert(spot, ())
        await engine.store.insert(a_job_of("a", "1", 4), ())
        await engine.scheduler.cycle()
        closing = (await load(engine, "spot")).status.closing
        assert closing is not None and closing.outcome is Outcome.PREEMPTED
        return closing.lost

    assert await lost(None) == at(0) - at(-600)
    assert await lost(at(-10)) == at(0) - at(-10)
    assert await lost(at(-900)) == at(0) - at(-600)
    assert await lost(Unavailable("the bucket does not answer")) is None
