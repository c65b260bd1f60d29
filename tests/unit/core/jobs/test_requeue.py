"""A preempted job: it is stopped, goes back to its place in the queue, and counts no retry."""

from dataclasses import replace
from itertools import pairwise

from tests.builders import T0, a_job, alive, all_alive, at, cancelled, key, running, seconds
from trainshed.core.event import Reason
from trainshed.core.jobs.closing import preempted
from trainshed.core.jobs.decide import Stop, decide
from trainshed.core.jobs.job import Job, JobState, Outcome, Scheduling
from trainshed.core.ledger import TimeClass, account


def stopping(job: Job) -> Job:
    return replace(job, status=replace(job.status, closing=preempted("Preempted by job 2.", T0)))


def requeued(job: Job) -> Job:
    plan = decide(stopping(running(job)), [], at(9))
    plan = decide(replace(job, status=plan.status), [], at(20))
    return replace(job, status=plan.status)


def test_its_replicas_are_asked_to_stop_and_killed_after_the_grace():
    job = stopping(running(a_job()))
    plan = decide(job, all_alive(job), at(1))
    assert plan.actions == (Stop(key(job), False),)
    assert decide(job, all_alive(job), at(30)).actions == (Stop(key(job), True),)


def test_once_all_have_stopped_it_is_in_the_queue_again_for_an_attempt_that_counts_as_no_retry():
    status = requeued(a_job()).status
    assert (status.state, status.attempt, status.uncounted) == (JobState.QUEUED, 1, 1)
    assert (status.admission, status.closing, status.started_at) == (None, None, None)
    assert status.requeue is not None
    assert status.requeue.message == "Preempted by job 2."
    assert status.waiting is not None
    assert status.waiting.reason is Reason.PREEMPTED
    assert "counts as none of its 3 retries" in status.waiting.message


def test_what_it_may_wait_counts_from_its_return_to_the_queue():
    job = requeued(a_job(scheduling=Scheduling(max_wait=seconds(15))))
    assert decide(job, [], at(21)).again_at == at(20) + seconds(15)
    assert decide(job, [], at(35)).status.state is JobState.FAILED


def test_a_cancel_wins_over_a_preemption_and_ends_a_job_in_the_queue_at_once():
    job = cancelled(stopping(running(a_job())))
    closing = decide(job, all_alive(job), at(1)).status.closing
    assert closing is not None
    assert closing.outcome is Outcome.CANCELLED
    assert decide(cancelled(requeued(a_job())), [], at(21)).status.state is JobState.CANCELLED


def test_a_run_that_comes_back_while_its_job_waits_is_stopped():
    job = requeued(a_job())
    assert decide(job, [alive(key(job, attempt=0))], at(21)).actions == (Stop(key(job, attempt=0), True),)


def test_the_ledger_has_the_time_of_the_run_and_of_the_second_wait_without_gaps():
    job = stopping(running(a_job()))
    over = decide(job, [], at(9)).status
    over, first = account(job, over, at(9))
    job = replace(job, status=over)
    plan = decide(job, [], at(20))
    status, second = account(job, plan.status, at(20))
    job = replace(job, status=status)
    again = running(job, attempt=1).status
    _, third = account(job, replace(again, requeue=status.requeue, admitted_at=at(50)), at(50))
    intervals = [*first, *second, *third]
    assert intervals[0].from_at == T0
    assert all(a.to_at == b.from_at for a, b in pairwise(intervals))
    assert (third[0].spent_on, third[0].from_at, third[0].to_at) == (TimeClass.QUEUED, at(20), at(50))
    assert third[0].key.name.attempt == 1
