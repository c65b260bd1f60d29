"""The scheduling cycle over the fakes: answers made durable, ports kept apart, reasons kept fresh."""

import asyncio
from dataclasses import replace

import pytest

from tests.builders import a_job, a_node, a_pool, at, cancelled, seconds
from tests.shares import a_job_of, a_share, a_tree
from tests.unit.control.engine import Engine
from tests.unit.control.stepped import SteppedClock, in_stepped_time
from trainshed.core.event import Reason, Severity
from trainshed.core.jobs.job import Job, JobState, planned_replicas
from trainshed.core.jobs.readiness import Readiness, ReadinessState
from trainshed.core.queue.fleet import Fit, Node
from trainshed.core.queue.persistent_resource import PersistentResource, with_resources
from trainshed.testing.backend import FakeMachine


def an_engine(node: Node | None = None, fit: Fit = Fit.SHRINK) -> Engine:
    """One whose loop over jobs stands still: only cycles are looked at here."""
    engine = Engine(FakeMachine(clock=SteppedClock(), nodes=(node or a_node(),)), fit=fit)
    engine.scheduler.hint_job = lambda _: None
    return engine


async def queued(engine: Engine, id: str, cpus: float = 1, replicas: int = 1) -> Job:
    job = a_job(a_pool(replicas, cpus=cpus), id=id)
    return await engine.store.insert(job, ())


async def now(engine: Engine, id: str) -> Job:
    found = await engine.store.load(id)
    assert found is not None
    return found


@in_stepped_time
async def test_a_job_that_fits_is_admitted_with_planned_replicas_and_told_to_the_loop():
    engine = an_engine()
    told: list[str] = []
    engine.scheduler.hint_job = told.append
    job = await queued(engine, "1", replicas=2)
    await engine.scheduler.cycle()
    status = (await now(engine, "1")).status
    assert status.state is JobState.PENDING
    counted = [replace(replica, counted_until=at(0)) for replica in planned_replicas(job.spec)]
    assert status.replicas == tuple(counted)
    assert status.admitted_at == at(0)
    assert status.waiting is not None
    assert status.waiting.reason is Reason.STARTING
    assert [e.reason for e in await engine.store.events("1")] == [Reason.ADMITTED]
    assert told == ["1"]


@in_stepped_time
async def test_ports_are_given_one_to_each_replica_and_one_to_the_gang_and_never_shared():
    engine = an_engine()
    for id in "12":
        await queued(engine, id, replicas=2)
    await engine.scheduler.cycle()
    await queued(engine, "3", replicas=2)
    await engine.scheduler.cycle()
    ports: list[int] = []
    for id in "123":
        admission = (await now(engine, id)).status.admission
        assert admission is not None
        assert len(admission.ports) == 3
        assert 0 not in admission.ports
        ports += admission.ports
    assert len(ports) == len(set(ports)) == 9


@in_stepped_time
async def test_ports_of_jobs_that_are_not_over_are_avoided_also_within_one_cycle():
    engine = an_engine()
    asked: list[frozenset[int]] = []

    async def lowest_free(count: int, avoid: frozenset[int]) -> tuple[int, ...]:
        asked.append(avoid)
        return tuple([port for port in range(10, 99) if port not in avoid][:count])

    engine.backend.free_ports = lowest_free
    await queued(engine, "1")
    await queued(engine, "2")
    await engine.scheduler.cycle()
    await queued(engine, "3")
    await engine.scheduler.cycle()
    assert asked == [frozenset(), frozenset({10, 11}), frozenset({10, 11, 12, 13})]


@in_stepped_time
async def test_a_shrunk_job_has_a_warning_that_says_what_was_cut():
    engine = an_engine()
    await queued(engine, "1", cpus=16)
    await engine.scheduler.cycle()
    event = (await engine.store.events("1"))[-1]
    assert (event.reason, event.severity) == (Reason.SHRUNK, Severity.WARNING)
    assert "CPUs: asked 16, given 8" in event.message


@in_stepped_time
async def test_a_waiting_job_has_its_reason_kept_and_told_once():
    engine = an_engine(fit=Fit.STRICT)
    await queued(engine, "1", cpus=16)
    for _ in range(3):
        await engine.scheduler.cycle()
    job = await now(engine, "1")
    assert job.status.state is JobState.QUEUED
    assert job.status.waiting is not None
    assert job.status.waiting.reason is Reason.TOO_LARGE
    assert [e.reason for e in await engine.store.events("1")] == [Reason.TOO_LARGE]
    assert engine.scheduler.reason("1") == job.status.waiting


@in_stepped_time
async def test_a_short_wait_is_told_at_once_and_written_down_only_when_it_grows_long():
    engine = Engine(FakeMachine(clock=SteppedClock(), nodes=(a_node(),)), fit=Fit.STRICT, patience=seconds(1))
    await queued(engine, "1", cpus=16)
    assert await engine.scheduler.cycle() == at(1)
    assert await engine.store.events("1") == ()
    told = engine.scheduler.reason("1")
    assert told is not None
    assert told.reason is Reason.TOO_LARGE
    await asyncio.sleep(1)
    assert await engine.scheduler.cycle() is None
    assert [e.reason for e in await engine.store.events("1")] == [Reason.TOO_LARGE]


@in_stepped_time
async def test_the_latest_numbers_are_known_without_a_write():
    engine = an_engine()
    for id in ("1", "2", "3"):
        await queued(engine, id, cpus=8)
    await engine.scheduler.cycle()
    before = await now(engine, "2")
    first = await now(engine, "1")
    await engine.store.write(first, replace(first.status, started_at=at(60)))
    await engine.scheduler.cycle()
    latest = engine.scheduler.reason("2")
    assert latest is not None
    assert before.status.waiting is not None
    assert latest.remedy != before.status.waiting.remedy
    assert await now(engine, "2") == before


@in_stepped_time
async def test_places_are_free_again_only_when_the_job_that_held_them_is_over():
    engine = an_engine()
    await queued(engine, "1", cpus=8)
    await queued(engine, "2", cpus=8)
    await engine.scheduler.cycle()
    first = await now(engine, "1")
    first = await engine.store.write(first, cancelled(first).status)
    await engine.scheduler.cycle()
    assert (await now(engine, "2")).status.admission is None
    await engine.store.write(first, replace(first.status, state=JobState.CANCELLED))
    await engine.scheduler.cycle()
    assert (await now(engine, "2")).status.admission is not None


@in_stepped_time
async def test_a_cancelled_job_is_not_admitted():
    engine = an_engine()
    job = await queued(engine, "1")
    await engine.store.write(job, cancelled(job).status)
    await engine.scheduler.cycle()
    assert (await now(engine, "1")).status.admission is None


@in_stepped_time
async def test_a_job_cancelled_in_the_middle_of_the_cycle_makes_it_look_again():
    engine = an_engine()
    job = await queued(engine, "1")
    hints: list[str] = []
    engine.scheduler.hint = lambda: hints.append("look")
    free_ports = engine.backend.free_ports

    async def meanwhile(count: int, avoid: frozenset[int]) -> tuple[int, ...]:
        await engine.store.write(job, cancelled(job).status)
        return await free_ports(count, avoid)

    engine.backend.free_ports = meanwhile
    await engine.scheduler.cycle()
    assert (await now(engine, "1")).status.admission is None
    assert hints == ["look"]


@in_stepped_time
async def test_with_nobody_waiting_no_reasons_are_kept():
    engine = an_engine(fit=Fit.STRICT)
    job = await queued(engine, "1", cpus=16)
    await engine.scheduler.cycle()
    job = await now(engine, "1")
    await engine.store.write(job, replace(job.status, state=JobState.CANCELLED))
    await engine.scheduler.cycle()
    assert engine.scheduler.reason("1") is None


MADE = "trainshed/made"


async def unready(engine: Engine, id: str) -> Job:
    """A job whose image has to be made ready first."""
    engine.backend.machine.runtimes.unmade.add(MADE)
    return await engine.store.insert(a_job(replace(a_pool(), image=MADE), id=id), ())


@in_stepped_time
async def test_a_job_that_is_not_ready_is_not_admitted_says_why_and_lets_others_pass():
    engine = an_engine(a_node(cpus=1))
    await unready(engine, "1")
    await queued(engine, "2")
    await engine.scheduler.cycle()
    assert (await now(engine, "2")).status.state is JobState.PENDING
    status = (await now(engine, "1")).status
    assert (status.state, status.preparing_since, status.prepared_at) == (JobState.QUEUED, at(0), None)
    assert status.waiting is not None
    assert status.waiting.reason is Reason.PREPARING
    assert [e.reason for e in await engine.store.events("1")] == [Reason.PREPARING]
    assert engine.scheduler.reason("1") == status.waiting


@in_stepped_time
async def test_progress_stays_in_memory_and_is_written_once():
    engine = an_engine()
    await unready(engine, "1")
    await engine.scheduler.cycle()
    version = (await now(engine, "1")).version
    for _ in range(3):
        await engine.scheduler.cycle()
    assert (await now(engine, "1")).version == version


@in_stepped_time
async def test_how_far_a_preparation_is_is_written_at_every_mark_and_not_between(
    monkeypatch: pytest.MonkeyPatch,
):
    engine = an_engine()
    await unready(engine, "1")
    for percent in (0, 10, 30, 40, 80, 80):
        far = Readiness(standing=ReadinessState.PREPARING, message=f"{percent} %", mark=percent // 25)
        monkeypatch.setattr(engine.backend, "prepare", lambda *_, far=far: far)
        await engine.scheduler.cycle()
    events = [event.message for event in await engine.store.events("1")]
    assert events == ["0 %", "30 %", "80 %"]
    waiting = (await now(engine, "1")).status.waiting
    assert waiting is not None and waiting.message == "80 %"


@in_stepped_time
async def test_a_job_made_ready_is_admitted_with_the_time_it_was():
    engine = an_engine()
    await unready(engine, "1")
    await engine.scheduler.cycle()
    engine.backend.machine.runtimes.make(MADE)
    await engine.scheduler.cycle()
    status = (await now(engine, "1")).status
    assert status.state is JobState.PENDING
    assert status.prepared_at is not None
    assert status.preparing_since == at(0)


@in_stepped_time
async def test_a_job_that_never_had_to_be_prepared_has_no_times_of_it():
    engine = an_engine()
    await queued(engine, "1")
    await engine.scheduler.cycle()
    status = (await now(engine, "1")).status
    assert (status.preparing_since, status.prepared_at) == (None, None)


@in_stepped_time
async def test_a_job_whose_preparation_failed_is_handed_to_its_own_loop():
    engine = an_engine()
    told: list[str] = []
    engine.scheduler.hint_job = told.append
    await unready(engine, "1")
    await engine.scheduler.cycle()
    engine.backend.machine.runtimes.make(MADE, well=False)
    await engine.scheduler.cycle()
    assert told == ["1"]
    await engine.loop.turn("1")
    job = await now(engine, "1")
    assert job.status.state is JobState.FAILED
    assert job.status.failure is not None
    assert job.status.failure.reason is Reason.PREPARATION_FAILED
    assert job.status.failure.verdict is not None
    assert job.status.failure.verdict.advice == "Tell it otherwise."
    [_, event] = await engine.store.events("1")
    assert "BUILD_FAILED" in event.message


@in_stepped_time
async def test_what_is_other_than_asked_for_is_a_warning_of_the_admission():
    engine = an_engine()
    await queued(engine, "1")
    engine.backend.prepare = lambda spec, job="": Readiness(notes=("2.0 asked, 2.13 is here.",))
    await engine.scheduler.cycle()
    _, warning = await engine.store.events("1")
    assert (warning.reason, warning.severity) == (Reason.SUBSTITUTED, Severity.WARNING)
    assert warning.message == "2.0 asked, 2.13 is here."


@in_stepped_time
async def test_a_job_that_is_ending_has_nothing_made_for_it():
    engine = an_engine()
    job = await unready(engine, "1")
    await engine.store.write(job, cancelled(job).status)
    await engine.loop.turn("1")
    assert (await now(engine, "1")).status.state is JobState.CANCELLED
    assert engine.backend.machine.runtimes.making == {}


@in_stepped_time
async def test_the_queue_is_in_the_order_of_the_shares_with_those_that_fit_nowhere_at_its_end():
    tree = a_tree(a_share("a", 4), a_share("b", 4))
    engine = Engine(FakeMachine(clock=SteppedClock(), nodes=(a_node(cpus=8),)), fit=Fit.STRICT, tree=tree)
    engine.scheduler.hint_job = lambda _: None
    jobs = {"1": ("a", 8), "2": ("a", 9), "3": ("a", 5), "4": ("b", 6), "5": ("a", 5)}
    for id, (project, cpus) in jobs.items():
        await engine.store.insert(a_job_of(project, id, cpus, created_at=at(int(id))), ())
    await engine.scheduler.cycle()
    await engine.store.insert(a_job_of("b", "6", 1, created_at=at(6)), ())
    assert (await now(engine, "1")).status.admission is not None
    assert [job.id for job in engine.scheduler.in_turn()] == ["4", "3", "5", "6", "2"]


@in_stepped_time
async def test_a_job_in_preparation_counts_for_its_persistent_resource():
    kept = PersistentResource(id="kept", project="a", location="l", pools=(a_pool(cpus=4),), created_at=at(0))
    engine = Engine(
        FakeMachine(clock=SteppedClock(), nodes=(a_node(cpus=8),)),
        tree=with_resources(a_tree(a_share("a", 8)), [kept]),
    )
    job = replace(a_job_of("a", "1"), location="l")
    await engine.store.insert(replace(job, spec=replace(job.spec, persistent_resource="kept")), ())
    waiting = {row.share.name: row.waiting for row in await engine.scheduler.share_rows()}
    assert waiting == {"root": 0, "a": 0, kept.name: 1}


@in_stepped_time
async def test_the_root_has_the_machines_as_they_are_though_no_job_has_waited_yet():
    machine = FakeMachine(clock=SteppedClock(), nodes=(a_node(cpus=8),))
    engine = Engine(machine, tree=a_tree(a_share("a", 4)))
    for cpus in (8, 16):
        machine.nodes = (a_node(cpus=cpus),)
        assert (await engine.scheduler.share_rows())[0].nominal["cpus"] == cpus
