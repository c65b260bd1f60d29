"""A failed job whose replicas are to be held for a look: when they are, for how long, and how it ends."""

from dataclasses import replace

import pytest

from tests.builders import (
    a_job,
    a_pool,
    a_rule,
    alive,
    at,
    cancelled,
    ended,
    key,
    running,
    seconds,
    with_status,
)
from trainshed.core.event import Reason, Severity
from trainshed.core.explain.standing import standing
from trainshed.core.jobs.decide import Plan, Start, Stop, decide
from trainshed.core.jobs.job import Job, JobState, Outcome, Scheduling
from trainshed.core.jobs.replica import Exit, Observation, Sight

GANG = (a_pool(), a_pool(2))
FAILED = Exit(code=1)
HOLD = Scheduling(hold=seconds(600), grace=seconds(5))


def held(job: Job, pool: int = 0, index: int = 0, end: Exit = FAILED, run: int = 0) -> Observation:
    seen = ended(key(job, pool, index, run=run), end)
    return replace(seen, sight=Sight.HELD)


def on(job: Job, plan: Plan) -> Job:
    return with_status(job, plan.status)


def failed(scheduling: Scheduling = HOLD) -> tuple[Job, Observation]:
    """A job of one replica that has failed and is held."""
    job = running(a_job(scheduling=scheduling))
    seen = held(job)
    return on(job, decide(job, [seen], at(1))), seen


def test_a_failed_replica_is_held_and_the_job_says_so_once():
    job = running(a_job(scheduling=HOLD))
    plan = decide(job, [held(job)], at(1))
    assert plan.actions == ()
    assert plan.status.state is JobState.RUNNING
    assert plan.status.closing is not None and plan.status.closing.outcome is Outcome.FAILED
    [event] = plan.events
    assert (event.reason, event.severity, event.task) == (Reason.HELD, Severity.WARNING, "workerpool0-0")
    assert "exited with code 1" in event.message
    assert f"trainshed shell {job.id} workerpool0-0" in event.message
    again = decide(on(job, plan), [held(job)], at(2))
    assert (again.events, again.actions, again.status) == ((), (), plan.status)
    assert again.again_at == at(601)


def test_it_ends_failed_when_its_time_is_over():
    job, seen = failed()
    over = decide(job, [seen], at(601))
    assert over.actions == (Stop(seen.key, True),)
    gone = decide(on(job, over), [ended(seen.key, 1)], at(602))
    assert gone.status.state is JobState.FAILED
    assert gone.status.failure is not None and gone.status.failure.reason is Reason.PROGRAM_FAILED


def test_a_cancel_lets_it_go_and_it_stays_a_failure():
    job, seen = failed()
    job = cancelled(job, at(30))
    plan = decide(job, [seen], at(30))
    assert [action.key for action in plan.actions if isinstance(action, Stop)] == [seen.key]
    assert decide(on(job, plan), [ended(seen.key, 1)], at(31)).status.state is JobState.FAILED


def test_the_others_are_stopped_before_it_is_told():
    job = running(a_job(*GANG, scheduling=HOLD))
    others = [alive(key(job, 1, 0)), alive(key(job, 1, 1))]
    job = on(job, decide(job, [held(job), *others], at(1)))
    plan = decide(job, [held(job), *others], at(1))
    assert {action.key for action in plan.actions if isinstance(action, Stop)} == {o.key for o in others}
    assert plan.status.waiting is not None and plan.status.waiting.reason is Reason.PROGRAM_FAILED
    after = decide(on(job, plan), [held(job), held(job, 1, 0), ended(key(job, 1, 1), Exit(signal=15))], at(3))
    assert after.status.waiting is not None
    assert "workerpool0-0, workerpool1-0 are kept" in after.status.waiting.message


@pytest.mark.parametrize("end", [Exit(signal=9), Exit(code=137)])
def test_what_is_tried_again_is_not_held(end: Exit):
    job = running(a_job(scheduling=replace(HOLD, restart=a_rule(restarts=1, retries=0, backoff=0))))
    job = on(job, decide(job, [held(job, end=end)], at(1)))
    plan = decide(job, [held(job, end=end)], at(1))
    assert [type(action) for action in plan.actions] == [Start]


def test_a_new_attempt_waits_until_what_was_held_is_gone():
    job = running(a_job(scheduling=replace(HOLD, restart=a_rule(restarts=0, retries=1, backoff=0))))
    seen = held(job, end=Exit(signal=9))
    job = on(job, decide(job, [seen], at(1)))
    assert decide(job, [seen], at(1)).actions == (Stop(seen.key, False),)


def test_a_backend_that_shows_the_held_run_late_does_not_end_the_job():
    job, seen = failed()
    late = decide(job, [], at(2))
    assert not late.status.state.is_final and late.again_at == at(3)
    assert decide(on(job, late), [seen], at(2.5)).status.waiting == job.status.waiting
    assert decide(on(job, late), [], at(3)).status.state is JobState.FAILED


def test_a_backend_that_shows_the_held_run_late_does_not_end_a_cancelled_job():
    job = cancelled(running(a_job(scheduling=HOLD)))
    job = on(job, decide(job, [held(job)], at(1)))
    assert job.status.closing is not None and job.status.closing.outcome is Outcome.CANCELLED
    late = decide(job, [], at(2))
    assert not late.status.state.is_final and late.again_at == at(3)
    assert decide(on(job, late), [], at(3)).status.state is JobState.CANCELLED


def test_what_nobody_holds_any_more_ends_the_job():
    job, seen = failed()
    assert decide(job, [ended(seen.key, 1)], at(5)).status.state is JobState.FAILED


def test_where_nothing_is_to_be_held_a_held_run_is_stopped():
    job, seen = failed(Scheduling())
    assert decide(job, [seen], at(1)).actions == (Stop(seen.key, False),)


def test_why_tells_that_it_is_held_and_what_had_failed():
    job, _ = failed()
    told = standing(job, at(2))
    assert told.reason is Reason.HELD
    assert "trainshed cancel" in told.remedy
    assert [ground.reason for ground in told.grounds] == [Reason.PROGRAM_FAILED]
