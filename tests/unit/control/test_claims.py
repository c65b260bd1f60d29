"""The scheduler and stored claims: kept while their claimant is prepared anew, and none for who has ended."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from tests.builders import a_node, at
from tests.shares import a_job_of, started
from tests.unit.control.engine import Engine
from tests.unit.control.stepped import SteppedClock, in_stepped_time
from trainshed.control.preemption import PREPARING
from trainshed.core.jobs.job import Job, JobSpec, Requeue
from trainshed.core.jobs.readiness import READY, Readiness, ReadinessState
from trainshed.core.queue.fleet import Claim, Fit, Placement
from trainshed.testing.backend import FakeMachine

PREPARED_LATER = Readiness(standing=ReadinessState.PREPARING, message="Looking for the container engine.")
PLACE = Placement(pool=0, index=0, node="n", host="h", cpus=8, memory=1 << 30)


def an_engine() -> Engine:
    engine = Engine(FakeMachine(clock=SteppedClock(), nodes=(a_node(cpus=8),)), fit=Fit.STRICT)
    engine.scheduler.hint_job = lambda _: None
    engine.scheduler.hint = lambda: None  # the test calls each cycle itself
    engine.scheduler.__post_init__()
    return engine


async def stop_between_claim_and_start(engine: Engine) -> None:
    """As a killed server leaves it: the spot job has stopped and waits again, and its room is claimed."""
    victim, claimant = a_job_of("a", "victim", 8, spot=True), a_job_of("a", "claimant", 8, created_at=at(-5))
    requeue = Requeue(at=at(0), message="Preempted by job claimant.")
    victim = replace(victim, status=replace(victim.status, attempt=1, requeue=requeue))
    claim = Claim(placements=(PLACE,), victims=(("victim", 0),), claimed_at=at(0))
    claimant = replace(claimant, status=replace(claimant.status, claim=claim))
    await engine.store.insert(victim, ())
    await engine.store.insert(claimant, ())


async def admitted(engine: Engine) -> list[str]:
    jobs = [await engine.store.load(id) for id in ("victim", "claimant")]
    return [job.id for job in jobs if job is not None and job.status.admission is not None]


def prepare(readiness: Callable[[], Readiness]) -> Callable[[JobSpec, str], Readiness]:
    return lambda _, job="": readiness() if job == "claimant" else READY


@in_stepped_time
async def test_a_claim_is_kept_while_its_claimant_is_prepared_anew():
    engine = an_engine()
    await stop_between_claim_and_start(engine)
    standing = PREPARED_LATER
    engine.backend.prepare = prepare(lambda: standing)  # pyright: ignore[reportAttributeAccessIssue]
    for _ in range(3):
        await engine.scheduler.cycle()
        assert await admitted(engine) == []
        await asyncio.sleep(1)
    standing = READY
    engine.scheduler.look_at("claimant")
    await engine.scheduler.cycle()
    assert await admitted(engine) == ["claimant"]


@in_stepped_time
async def test_a_claimant_that_is_never_prepared_does_not_keep_its_places_for_ever():
    engine = an_engine()
    await stop_between_claim_and_start(engine)
    engine.backend.prepare = prepare(lambda: PREPARED_LATER)  # pyright: ignore[reportAttributeAccessIssue]
    await engine.scheduler.cycle()
    await asyncio.sleep(PREPARING.total_seconds() + 1)
    await engine.scheduler.cycle()
    await engine.scheduler.cycle()
    assert await admitted(engine) == ["victim"]


@in_stepped_time
async def test_nobody_is_stopped_for_a_claim_of_which_one_has_ended_meanwhile():
    engine = an_engine()
    for id in ("ends", "runs"):
        await engine.store.insert(started(a_job_of("a", id, 4, spot=True)), ())

    async def it_ends(_: Job) -> None:
        engine.scheduler.backlog.admitted.pop("ends", None)

    engine.scheduler.checkpointed = it_ends
    engine.scheduler.__post_init__()
    await engine.store.insert(a_job_of("a", "claimant", 8), ())
    await engine.scheduler.cycle()
    runs = await engine.store.load("runs")
    assert runs is not None
    assert runs.status.closing is None
