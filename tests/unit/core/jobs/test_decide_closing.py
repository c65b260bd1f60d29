"""How a job is wound up: cancel in every state, ask, then kill, and only then the end."""

from dataclasses import replace

import pytest

from tests.builders import (
    KILLED,
    a_job,
    a_pool,
    admitted,
    alive,
    all_alive,
    at,
    cancelled,
    closing,
    ended,
    key,
    running,
    seconds,
    with_replica,
    with_status,
)
from trainshed.core.event import Reason
from trainshed.core.jobs.decide import MISSING_FOR, Stop, decide
from trainshed.core.jobs.job import Closing, Failure, JobState, Outcome, Scheduling
from trainshed.core.jobs.replica import Phase, Replica

GANG = (a_pool(), a_pool(2))


def test_a_queued_job_is_cancelled_in_one_turn():
    plan = decide(cancelled(a_job()), [], at(1))
    assert plan.status.state is JobState.CANCELLED
    assert plan.status.ended_at == at(1)
    assert [e.reason for e in plan.events] == [Reason.CANCELLED]


def test_an_admitted_job_that_started_nothing_is_cancelled_after_a_second_look():
    job = cancelled(admitted(a_job()), at(1))
    first = decide(job, [], at(1))
    assert (first.status.state, first.actions) == (JobState.CANCELLING, ())
    assert first.again_at == at(1) + MISSING_FOR
    job = with_status(job, first.status)
    assert decide(job, [], at(1) + MISSING_FOR).status.state is JobState.CANCELLED


def test_a_launch_under_way_when_the_cancel_came_is_found_and_stopped():
    job = cancelled(admitted(a_job()), at(1))
    job = with_status(job, decide(job, [], at(1)).status)
    plan = decide(job, [alive(key(job))], at(2))
    assert plan.status.state is JobState.CANCELLING
    assert plan.actions == (Stop(key(job), False),)


def test_a_running_job_is_first_marked_then_stopped_then_cancelled():
    job = cancelled(running(a_job(*GANG)), at(1))
    marked = decide(job, all_alive(job), at(1))
    assert marked.status.closing == Closing(outcome=Outcome.CANCELLED, since=at(1))
    assert marked.actions == ()
    job = with_status(job, marked.status)
    asked = decide(job, all_alive(job), at(1))
    assert asked.actions == tuple(Stop(key(job, p, i), False) for p, i in [(0, 0), (1, 0), (1, 1)])
    assert asked.status == job.status
    gone = decide(job, all_alive(job, dict.fromkeys([(0, 0), (1, 0), (1, 1)], KILLED)), at(2))
    assert gone.status.state is JobState.CANCELLED
    assert gone.status.closing is None
    assert gone.status.failure is None


def test_a_job_between_attempts_is_cancelled_at_once():
    job = admitted(a_job(*GANG), attempt=1)
    replicas = tuple(replace(r, not_before=at(10)) for r in job.status.replicas)
    job = cancelled(replace(job, status=replace(job.status, replicas=replicas)), at(5))
    assert decide(job, [ended(key(job, attempt=0), KILLED)], at(5)).status.state is JobState.CANCELLED


def test_a_cancel_wins_over_a_retry_and_does_not_lengthen_the_grace():
    job = cancelled(closing(running(a_job()), Outcome.RETRY, since=at(1)), at(5))
    status = decide(job, all_alive(job), at(5)).status
    assert status.closing == Closing(outcome=Outcome.CANCELLED, since=at(1))
    assert status.state is JobState.CANCELLING


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.SUCCEEDED])
def test_a_cancel_does_not_change_an_outcome_already_decided(outcome: Outcome):
    failure = Failure(reason=Reason.PROGRAM_FAILED, message="m") if outcome is Outcome.FAILED else None
    job = cancelled(closing(running(a_job()), outcome, failure=failure), at(5))
    status = decide(job, all_alive(job, {(0, 0): KILLED}), at(5)).status
    assert status.state is JobState[outcome.name]


def test_a_cancel_wins_over_a_death_seen_in_the_same_turn():
    job = cancelled(running(a_job()))
    assert decide(job, all_alive(job, {(0, 0): 1}), at(1)).status.state is JobState.CANCELLED


def test_replicas_are_asked_until_the_grace_is_over_and_then_killed():
    job = closing(running(a_job()), Outcome.CANCELLED, since=at(0))
    early, late = decide(job, all_alive(job), at(29.9)), decide(job, all_alive(job), at(30))
    assert early.actions == (Stop(key(job), False),)
    assert early.again_at == at(30)
    assert late.actions == (Stop(key(job), True),)
    assert late.again_at == at(31)


def test_the_grace_is_the_jobs_own():
    job = closing(running(a_job(scheduling=Scheduling(grace=seconds(3)))), Outcome.CANCELLED)
    assert decide(job, all_alive(job), at(3)).actions == (Stop(key(job), True),)


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (Outcome.CANCELLED, Reason.CANCEL_ASKED),
        (Outcome.RETRY, Reason.JOB_RETRIED),
        (Outcome.SUCCEEDED, Reason.STOPPED_AFTER_PRIMARY),
        (Outcome.FAILED, Reason.TIMED_OUT),
    ],
)
def test_a_job_being_wound_up_says_why_it_is_not_over_yet(outcome: Outcome, reason: Reason):
    failure = Failure(reason=Reason.TIMED_OUT, message="m") if outcome is Outcome.FAILED else None
    job = closing(running(a_job(*GANG)), outcome, failure=failure)
    waiting = decide(job, all_alive(job, {(0, 0): KILLED}), at(1)).status.waiting
    assert waiting is not None
    assert waiting.reason is reason
    assert "2 replicas still to stop, killed at 12:00:30 UTC at the latest" in waiting.message
    assert waiting.remedy


def test_nothing_is_restarted_while_a_job_is_wound_up():
    job = closing(running(a_job(*GANG)), Outcome.CANCELLED)
    status = decide(job, all_alive(job, {(1, 0): KILLED}), at(1)).status
    assert status.replicas[1].phase is Phase.ENDED
    assert status.replicas[1].run == 0


def test_runs_left_from_earlier_attempts_are_stopped_before_the_end():
    job = closing(running(a_job(), attempt=1), Outcome.CANCELLED)
    seen = [ended(key(job), KILLED), alive(key(job, attempt=0))]
    plan = decide(job, seen, at(1))
    assert plan.actions == (Stop(key(job, attempt=0), False),)
    assert not plan.status.state.is_final


def test_a_running_replica_that_is_not_shown_holds_the_end_until_it_counts_as_lost():
    job = closing(running(a_job()), Outcome.CANCELLED)
    first = decide(job, [], at(1))
    assert not first.status.state.is_final
    assert first.again_at == at(1) + MISSING_FOR
    job = with_status(job, first.status)
    assert decide(job, [], at(1) + MISSING_FOR).status.state is JobState.CANCELLED


def test_a_new_attempt_waits_for_a_missing_replica_of_the_old_one():
    job = closing(running(a_job(*GANG)), Outcome.RETRY)
    first = decide(job, all_alive(job, {(0, 0): KILLED, (1, 0): KILLED, (1, 1): None}), at(1))
    assert first.status.attempt == 0
    assert first.again_at == at(1) + MISSING_FOR


def test_a_replica_whose_back_off_was_not_over_does_not_hold_the_end():
    job = with_replica(running(a_job(*GANG)), Replica(pool=1, index=0, run=1, not_before=at(10)))
    job = closing(job, Outcome.CANCELLED, since=at(9))
    seen = [ended(key(job, 0, 0), KILLED), ended(key(job, 1, 0), KILLED), ended(key(job, 1, 1), KILLED)]
    assert decide(job, seen, at(12)).status.state is JobState.CANCELLED
