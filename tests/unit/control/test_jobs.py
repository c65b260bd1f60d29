"""The loop over one job, with the real decide, over the fakes."""

import asyncio
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from tests.builders import a_job, a_node, a_pool, admitted, at, cancelled, key, seconds
from tests.unit.control.engine import Engine
from tests.unit.control.stepped import SteppedClock, in_stepped_time
from trainshed.control.jobs import LATE, RETRY_LAUNCH
from trainshed.core.errors import Hindered
from trainshed.core.event import Reason
from trainshed.core.jobs.job import Job, JobState, Pool
from trainshed.core.jobs.replica import Exit
from trainshed.core.obstacle import Obstacle
from trainshed.testing.backend import FakeMachine


def a_program(*words: str, replicas: int = 1) -> Pool:
    return replace(a_pool(replicas), command=words)


def an_engine() -> Engine:
    return Engine(FakeMachine(clock=SteppedClock(), nodes=(a_node(),)))


async def kept(engine: Engine, job: Job) -> Job:
    return await engine.store.insert(job, ())


async def now(engine: Engine, job: Job) -> Job:
    found = await engine.store.load(job.id)
    assert found is not None
    return found


async def reasons(engine: Engine, job: Job) -> list[Reason]:
    return [event.reason for event in await engine.store.events(job.id)]


@in_stepped_time
async def test_one_turn_brings_an_admitted_job_to_running():
    engine = an_engine()
    job = await kept(engine, admitted(a_job(a_program("sleep"), a_program("sleep", replicas=2))))
    again_at = await engine.loop.turn(job.id)
    job = await now(engine, job)
    assert job.status.state is JobState.RUNNING
    assert len(engine.backend.machine.alive()) == 3
    assert again_at == at(7 * 24 * 3600)


@in_stepped_time
async def test_one_turn_brings_a_short_job_to_its_end_and_cleans_up():
    engine = an_engine()
    job = await kept(engine, admitted(a_job(a_program("exit", "0"))))
    assert await engine.loop.turn(job.id) is None
    assert (await now(engine, job)).status.state is JobState.SUCCEEDED
    assert await reasons(engine, job) == [Reason.RUNNING, Reason.SUCCEEDED]
    assert engine.logs.finished == [job.id]
    assert engine.backend.machine.runs == {}


@in_stepped_time
async def test_a_job_that_ends_at_once_is_written_down_once_with_all_that_happened():
    engine = Engine(FakeMachine(clock=SteppedClock(), nodes=(a_node(),)), patience=seconds(0.04))
    job = await kept(engine, admitted(a_job(a_program("exit", "0"))))
    await engine.loop.turn(job.id)
    await engine.loop.turn(job.id)
    after = await now(engine, job)
    assert after.status.state is JobState.SUCCEEDED
    assert after.version == job.version + 1
    assert [e.reason for e in await engine.store.events(job.id)] == [Reason.RUNNING, Reason.SUCCEEDED]


@in_stepped_time
async def test_that_a_job_runs_is_written_down_a_moment_after_its_admission():
    engine = Engine(FakeMachine(clock=SteppedClock(), nodes=(a_node(),)), patience=seconds(0.04))
    job = await kept(engine, admitted(a_job(a_program("sleep"))))
    assert await engine.loop.turn(job.id) == at(0.04)
    assert (await now(engine, job)).status.state is JobState.PENDING
    await asyncio.sleep(0.04)
    await engine.loop.turn(job.id)
    assert (await now(engine, job)).status.state is JobState.RUNNING


@in_stepped_time
async def test_what_a_job_held_is_given_to_the_next_while_its_end_is_written_down():
    engine = an_engine()
    engine.schedule_queue.serve(engine.scheduler.cycle)
    job = await kept(engine, admitted(a_job(a_program("exit", "0"))))
    seen: list[frozenset[str]] = []
    write = engine.store.write

    async def noting(*given: Any, **more: Any) -> Job:
        seen.append(frozenset(engine.scheduler.freed))
        return await write(*given, **more)

    with patch.object(engine.store, "write", noting):
        await engine.loop.turn(job.id)
    assert seen[-1] == {job.id}
    assert engine.scheduler.freed == set()


@in_stepped_time
async def test_a_turn_on_an_ended_job_changes_nothing():
    engine = an_engine()
    job = await kept(engine, admitted(a_job(a_program("exit", "0"))))
    await engine.loop.turn(job.id)
    before = await now(engine, job)
    assert await engine.loop.turn(job.id) is None
    assert await now(engine, job) == before


@in_stepped_time
async def test_what_is_left_of_a_job_nobody_knows_is_removed():
    engine = an_engine()
    job = await kept(engine, admitted(a_job(a_program("sleep"))))
    await engine.loop.turn(job.id)
    stranger = Engine(engine.backend.machine)
    assert await stranger.loop.turn(job.id) is None
    assert engine.backend.machine.runs == {}
    assert stranger.logs.removed == [job.id]


@in_stepped_time
async def test_a_restarted_server_finds_its_running_replicas_and_starts_nothing_twice():
    engine = an_engine()
    job = await kept(engine, admitted(a_job(a_program("sleep"))))
    await engine.loop.turn(job.id)
    second = Engine(engine.backend.machine, engine.store)
    await second.loop.turn(job.id)
    assert engine.backend.machine.starts == {key(job): 1}


@in_stepped_time
async def test_a_launch_the_backend_refuses_is_told_and_tried_again():
    engine = an_engine()
    job = await kept(engine, admitted(a_job(a_program("sleep"))))
    engine.backend.fail("launch")
    assert await engine.loop.turn(job.id) == at(0) + RETRY_LAUNCH
    waiting = (await now(engine, job)).status.waiting
    assert waiting is not None
    assert waiting.reason is Reason.LAUNCH_FAILED
    assert "told to fail" in waiting.message
    assert waiting.remedy
    await engine.loop.turn(job.id)
    job = await now(engine, job)
    assert (job.status.state, job.status.waiting) == (JobState.RUNNING, None)


@in_stepped_time
async def test_a_launch_that_something_is_in_the_way_of_has_its_reason_and_is_given_up_in_time():
    engine = an_engine()
    job = await kept(engine, admitted(a_job(a_program("sleep"))))
    quota = Obstacle(reason=Reason.QUOTA_EXCEEDED, message="No more pods.", patience=seconds(0))
    waits = replace(quota, patience=seconds(60))
    with patch.object(engine.backend, "launch", side_effect=Hindered(waits)):
        for _ in range(2):
            assert await engine.loop.turn(job.id) == at(0) + RETRY_LAUNCH
    waiting = (await now(engine, job)).status.waiting
    assert waiting is not None and waiting.reason is Reason.QUOTA_EXCEEDED
    assert await reasons(engine, job) == [Reason.QUOTA_EXCEEDED]
    with patch.object(engine.backend, "launch", side_effect=Hindered(quota)):
        await engine.loop.turn(job.id)
    closing = (await now(engine, job)).status.closing
    assert closing is not None and closing.failure is not None
    assert closing.failure.reason is Reason.QUOTA_EXCEEDED


@in_stepped_time
async def test_a_launch_refused_again_and_again_is_told_once():
    engine = an_engine()
    job = await kept(engine, admitted(a_job(a_program("sleep"))))
    for _ in range(3):
        engine.backend.fail("launch")
        await engine.loop.turn(job.id)
    assert await reasons(engine, job) == [Reason.LAUNCH_FAILED]


@in_stepped_time
async def test_a_death_is_noticed_while_another_launch_is_refused():
    engine = an_engine()
    job = await kept(engine, admitted(a_job(a_program("exit", "1", "3"), a_program("sleep"))))
    machine = engine.backend.machine
    await engine.loop.turn(job.id)
    machine.vanish(key(job, 1, 0))
    await asyncio.sleep(3)
    engine.backend.fail("launch")
    for _ in range(3):
        await engine.loop.turn(job.id)
        await asyncio.sleep(3)
    assert (await now(engine, job)).status.state is JobState.FAILED


@in_stepped_time
async def test_a_launch_whose_answer_was_lost_is_not_done_twice():
    engine = an_engine()
    job = await kept(engine, admitted(a_job(a_program("sleep"))))
    engine.backend.fail("launch", after=True)
    await engine.loop.turn(job.id)
    await engine.loop.turn(job.id)
    assert engine.backend.machine.starts == {key(job): 1}
    assert (await now(engine, job)).status.state is JobState.RUNNING


@in_stepped_time
async def test_a_backend_late_to_show_what_it_started_is_left_alone_for_a_moment():
    engine = an_engine()
    job = await kept(engine, admitted(a_job(a_program("sleep"))))
    engine.backend.freeze()
    assert await engine.loop.turn(job.id) == at(0) + LATE
    engine.backend.thaw()
    await engine.loop.turn(job.id)
    assert engine.backend.machine.starts == {key(job): 1}


@in_stepped_time
async def test_a_cancelled_stubborn_job_is_asked_then_killed_after_its_grace():
    engine = an_engine()
    job = await kept(engine, admitted(a_job(a_program("stubborn"))))
    await engine.loop.turn(job.id)
    job = await now(engine, job)
    await engine.store.write(job, cancelled(job).status)
    again_at = await engine.loop.turn(job.id)
    assert again_at == at(30)
    assert engine.backend.machine.runs[key(job)].asked
    assert engine.backend.machine.alive()
    await asyncio.sleep(30)
    await engine.loop.turn(job.id)
    await engine.loop.turn(job.id)
    assert (await now(engine, job)).status.state is JobState.CANCELLED
    assert not engine.backend.machine.alive()


@in_stepped_time
async def test_a_write_that_lost_a_race_is_decided_anew():
    engine = an_engine()
    job = await kept(engine, admitted(a_job(a_program("sleep"))))
    turn = asyncio.create_task(engine.loop.turn(job.id))
    await asyncio.sleep(0)
    await engine.store.write(job, cancelled(job).status)
    await turn
    await asyncio.sleep(3)
    await engine.loop.turn(job.id)
    assert (await now(engine, job)).status.state is JobState.CANCELLED
    assert not engine.backend.machine.alive()


@in_stepped_time
async def test_a_killed_replica_is_restarted_when_its_back_off_is_over():
    engine = an_engine()
    await engine.open()
    job = await kept(engine, admitted(a_job(a_program("sleep"))))
    engine.job_queue.hint(job.id)
    await asyncio.sleep(1)
    engine.backend.machine.end(key(job), Exit(signal=9))
    await asyncio.sleep(0.4)
    assert not engine.backend.machine.alive()
    await asyncio.sleep(0.2)
    assert engine.backend.machine.alive() == {key(job, run=1)}
    await engine.close()


@in_stepped_time
async def test_the_bell_is_rung_at_every_write_and_the_scheduler_told_of_the_end():
    engine = an_engine()
    rung: list[JobState] = []
    told: list[str] = []
    engine.loop.ring = lambda job: rung.append(job.status.state)
    engine.scheduler.hint = lambda: told.append("look")
    job = await kept(engine, admitted(a_job(a_program("exit", "0"))))
    await engine.loop.turn(job.id)
    assert rung[-1] is JobState.SUCCEEDED
    assert told == ["look"]
