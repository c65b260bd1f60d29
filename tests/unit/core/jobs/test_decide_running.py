"""From admission to RUNNING to SUCCEEDED, and the clocks that may end a job before."""

from dataclasses import replace

import pytest

from tests.builders import (
    EMPTY,
    KILLED,
    a_job,
    a_pool,
    admitted,
    alive,
    all_alive,
    at,
    ended,
    key,
    running,
    seconds,
    with_replica,
    with_status,
)
from trainshed.core.event import Reason, Severity, Waiting
from trainshed.core.jobs.decide import Plan, Start, Stop, decide
from trainshed.core.jobs.job import Closing, Failure, Job, JobState, Outcome, Scheduling, Status
from trainshed.core.jobs.replica import Exit, Observation, Phase, Replica, Sight
from trainshed.core.obstacle import Obstacle

GANG = (a_pool(), a_pool(2))


def test_a_job_that_is_not_admitted_is_left_alone():
    job = a_job()
    assert decide(job, [], at(99)) == Plan(status=job.status)


def test_a_job_with_a_longest_wait_is_looked_at_when_it_is_over():
    job = a_job(scheduling=Scheduling(max_wait=seconds(60)))
    assert decide(job, [], at(59)) == Plan(status=job.status, again_at=at(60))


def test_a_job_not_admitted_within_its_longest_wait_fails_and_says_so():
    job = a_job(scheduling=Scheduling(max_wait=seconds(60)))
    status = decide(job, [], at(60)).status
    assert status.state is JobState.FAILED
    assert status.failure == Failure(
        reason=Reason.WAITED_TOO_LONG,
        message="The job was not admitted within its maxWaitDuration of 60 s.",
    )


def test_an_admitted_job_does_not_wait_too_long_any_more():
    job = running(a_job(scheduling=Scheduling(max_wait=seconds(60))))
    assert decide(job, all_alive(job), at(3600)).status == job.status


def starting(job: Job, pool: int, index: int, words: str = "") -> Observation:
    obstacle = Obstacle(reason=Reason.STARTING, message=words) if words else None
    return Observation(key=key(job, pool, index), sight=Sight.STARTING, obstacle=obstacle)


def test_a_replica_that_is_starting_is_neither_started_again_nor_counted_as_running():
    job = admitted(a_job(*GANG))
    others = [alive(key(job, 1, 0)), alive(key(job, 1, 1))]
    plan = decide(job, [starting(job, 0, 0), *others], at(1))
    assert plan.actions == ()
    assert plan.status.state is JobState.PENDING
    assert plan.status.replicas[0].phase is Phase.PLANNED


def test_a_job_whose_replica_has_to_wait_for_its_place_says_why_and_goes_on_saying_it():
    job = admitted(a_job(*GANG))
    for words in ("Kubernetes cannot place it: no CPU.", "Its image is being pulled."):
        status = decide(job, [starting(job, 0, 0, words)], at(1)).status
        assert (
            status.waiting is not None and status.waiting.message == f"0 of 3 replicas have started. {words}"
        )
        job = replace(job, status=status)


def test_a_cancelled_job_stops_what_is_starting():
    job = admitted(a_job())
    job = replace(job, status=replace(job.status, cancel_asked_at=at(1)))
    closing = replace(job, status=decide(job, [starting(job, 0, 0)], at(1)).status)
    assert decide(closing, [starting(job, 0, 0)], at(2)).actions == (Stop(key(job), False),)


def test_every_replica_of_an_admitted_job_is_started():
    job = admitted(a_job(*GANG))
    assert decide(job, [], at(1)).actions == tuple(Start(r) for r in job.status.replicas)


def test_an_empty_pool_holds_its_place_and_starts_nothing():
    job = admitted(a_job(a_pool(), EMPTY, a_pool()))
    assert [
        (s.replica.pool, s.replica.index) for s in decide(job, [], at(1)).actions if isinstance(s, Start)
    ] == [
        (0, 0),
        (2, 0),
    ]


def test_a_replica_already_there_is_not_started_again():
    job = admitted(a_job(*GANG))
    seen = [alive(key(job, 0, 0)), ended(key(job, 1, 0), 0)]
    assert decide(job, seen, at(1)).actions == (Start(job.status.replicas[2]),)


def test_a_job_is_pending_until_every_replica_was_seen():
    job = admitted(a_job(*GANG))
    status = decide(job, [alive(key(job, 0, 0))], at(1)).status
    assert status.state is JobState.PENDING
    assert status.waiting == Waiting(
        reason=Reason.STARTING,
        message="1 of 3 replicas have started.",
        remedy="The others start by themselves.",
    )


def test_a_job_runs_once_every_replica_was_seen():
    job = admitted(a_job(*GANG))
    plan = decide(job, all_alive(job), at(1))
    assert plan.status.state is JobState.RUNNING
    assert plan.status.waiting is None
    assert [e.reason for e in plan.events] == [Reason.RUNNING]


@pytest.mark.parametrize(
    ("told", "began"), [(None, 1), (0.5, 0.5), (-100, 0), (100, 1)], ids=["untold", "told", "early", "late"]
)
def test_a_job_began_to_run_when_its_last_replica_did_within_our_own_clock(told: float | None, began: float):
    job = admitted(a_job(*GANG))
    seen = [replace(sight, started_at=None if told is None else at(told)) for sight in all_alive(job)]
    assert decide(job, seen, at(1)).status.started_at == at(began)


def test_a_second_attempt_keeps_the_time_the_job_first_ran():
    job = admitted(a_job(), attempt=1)
    job = replace(job, status=replace(job.status, started_at=at(-100)))
    assert decide(job, all_alive(job), at(1)).status.started_at == at(-100)


def test_a_running_job_with_nothing_new_has_an_unchanged_status():
    job = running(a_job(*GANG))
    assert decide(job, all_alive(job), at(60)) == Plan(status=job.status, again_at=at(7 * 24 * 3600))


def test_words_about_a_refused_launch_go_away_once_everything_runs():
    job = running(a_job())
    refused = Waiting(reason=Reason.LAUNCH_FAILED, message="A replica could not be started: disk full")
    job = replace(job, status=replace(job.status, waiting=refused))
    assert decide(job, all_alive(job), at(1)).status.waiting is None


def test_a_job_whose_primary_succeeds_alone_has_succeeded():
    job = running(a_job())
    plan = decide(job, all_alive(job, {(0, 0): 0}), at(5))
    assert plan.status.state is JobState.SUCCEEDED
    assert plan.status.ended_at == at(5)
    assert plan.status.failure is None
    assert [e.reason for e in plan.events] == [Reason.SUCCEEDED]


def test_a_replica_that_was_never_seen_alive_may_end_the_job_in_one_turn():
    job = admitted(a_job())
    assert decide(job, [ended(key(job), 0)], at(5)).status.state is JobState.SUCCEEDED


def test_workers_that_end_well_before_the_primary_change_nothing():
    job = running(a_job(*GANG))
    status = decide(job, all_alive(job, {(1, 0): 0, (1, 1): 0}), at(5)).status
    assert (status.state, status.closing) == (JobState.RUNNING, None)


def primary_done(job: Job) -> Job:
    """The primary has ended well at T0, and the status says so."""
    chief = replace(
        job.status.replicas[0], phase=Phase.ENDED, exit=Exit(code=0), ended_at=at(0), noticed_at=at(0)
    )
    return with_replica(job, chief)


def test_workers_may_go_on_for_the_drain_time_once_the_primary_has_succeeded():
    job = primary_done(running(a_job(*GANG)))
    plan = decide(job, all_alive(job, {(0, 0): 0, (1, 0): 0}), at(59))
    assert (plan.status.state, plan.status.closing, plan.actions) == (JobState.RUNNING, None, ())
    assert plan.again_at == at(60)


def test_workers_that_outlast_the_drain_time_are_stopped_and_the_job_succeeds():
    job = primary_done(running(a_job(*GANG)))
    seen = all_alive(job, {(0, 0): 0, (1, 0): 0})
    status = decide(job, seen, at(60)).status
    assert status.closing == Closing(outcome=Outcome.SUCCEEDED, since=at(60))
    job = with_status(job, status)
    assert decide(job, seen, at(60)).actions == (Stop(key(job, 1, 1), False),)
    done = decide(job, all_alive(job, {(0, 0): 0, (1, 0): 0, (1, 1): KILLED}), at(61))
    assert done.status.state is JobState.SUCCEEDED


def test_the_job_ends_with_its_last_worker():
    job = primary_done(running(a_job(*GANG)))
    plan = decide(job, all_alive(job, {(0, 0): 0, (1, 0): 0, (1, 1): 0}), at(10))
    assert plan.status.state is JobState.SUCCEEDED


def test_parameter_servers_are_stopped_at_once_when_the_primary_has_succeeded():
    job = running(a_job(a_pool(), EMPTY, a_pool(2)))
    seen = all_alive(job, {(0, 0): 0})
    plan = decide(job, seen, at(5))
    assert plan.status.closing == Closing(outcome=Outcome.SUCCEEDED, since=at(5))
    job = with_status(job, plan.status)
    assert decide(job, seen, at(5)).actions == (Stop(key(job, 2, 0), False), Stop(key(job, 2, 1), False))


def test_a_worker_that_fails_after_the_primary_succeeded_fails_the_job():
    job = primary_done(running(a_job(*GANG)))
    plan = decide(job, all_alive(job, {(0, 0): 0, (1, 0): 1}), at(5))
    assert plan.status.closing is not None
    assert plan.status.closing.failure is not None
    assert plan.status.closing.failure.reason is Reason.PROGRAM_FAILED
    assert plan.status.closing.failure.task == "workerpool1-0"


def test_a_worker_that_fails_together_with_the_primary_s_success_fails_the_job():
    job = running(a_job(*GANG))
    plan = decide(job, all_alive(job, {(0, 0): 0, (1, 0): 1}), at(5))
    assert plan.status.closing is not None
    assert plan.status.closing.failure is not None


def test_a_worker_killed_after_the_primary_succeeded_is_a_warning_only():
    job = primary_done(running(a_job(*GANG)))
    plan = decide(job, all_alive(job, {(0, 0): 0, (1, 0): 137}), at(5))
    assert plan.status.closing is None
    assert [(e.reason, e.severity, e.task) for e in plan.events] == [
        (Reason.REPLICA_FAILED_LATE, Severity.WARNING, "workerpool1-0")
    ]


def test_a_late_interruption_is_told_once():
    job = primary_done(running(a_job(*GANG)))
    seen = all_alive(job, {(0, 0): 0, (1, 0): 137})
    job = with_status(job, decide(job, seen, at(5)).status)
    assert decide(job, seen, at(6)).events == ()


def test_a_worker_waiting_for_its_restart_is_not_restarted_once_the_primary_has_succeeded():
    job = primary_done(running(a_job(*GANG)))
    job = with_replica(job, Replica(pool=1, index=0, run=1, not_before=at(1)))
    plan = decide(job, [ended(key(job, 0, 0)), alive(key(job, 1, 1))], at(5))
    assert plan.actions == ()


def test_a_restart_that_will_never_come_does_not_make_the_loop_spin():
    job = primary_done(running(a_job(*GANG)))
    job = with_replica(job, Replica(pool=1, index=0, run=1, not_before=at(1)))
    plan = decide(job, [ended(key(job, 0, 0)), alive(key(job, 1, 1))], at(5))
    assert plan.again_at == at(60)


def test_a_worker_not_started_yet_is_still_started_after_a_very_fast_primary():
    job = admitted(a_job(*GANG))
    plan = decide(job, [ended(key(job, 0, 0), 0)], at(1))
    assert [a.replica.pool for a in plan.actions if isinstance(a, Start)] == [1, 1]


def test_the_first_replica_of_a_large_first_pool_is_the_primary():
    job = running(a_job(a_pool(3)))
    first = decide(job, all_alive(job, {(0, 0): 0, (0, 1): 0, (0, 2): 0}), at(5)).status
    second = decide(job, all_alive(job, {(0, 1): 0, (0, 2): 0}), at(5)).status
    assert (first.state, second.state) == (JobState.SUCCEEDED, JobState.RUNNING)


def test_where_the_first_pool_is_empty_the_first_replica_there_is_speaks_for_the_job():
    job = running(a_job(EMPTY, a_pool(2)))
    assert decide(job, all_alive(job, {(1, 0): 0, (1, 1): 0}), at(5)).status.state is JobState.SUCCEEDED


def test_a_job_that_outlasts_its_timeout_is_closed_as_failed():
    job = running(a_job(*GANG, scheduling=Scheduling(timeout=seconds(100))))
    status = decide(job, all_alive(job), at(100)).status
    assert status.closing == Closing(
        outcome=Outcome.FAILED,
        since=at(100),
        failure=Failure(
            reason=Reason.TIMED_OUT,
            message="The job ran longer than its timeout of 100 s and was stopped.",
        ),
    )


def test_a_job_within_its_timeout_is_looked_at_when_it_is_over():
    job = running(a_job(scheduling=Scheduling(timeout=seconds(100))))
    assert decide(job, all_alive(job), at(99)) == Plan(status=job.status, again_at=at(100))


def test_a_timed_out_job_ends_failed_and_never_in_a_state_of_its_own():
    job = running(a_job(scheduling=Scheduling(timeout=seconds(100))))
    job = with_status(job, decide(job, all_alive(job), at(100)).status)
    status = decide(job, all_alive(job, {(0, 0): KILLED}), at(101)).status
    assert status.state is JobState.FAILED
    assert status.failure is not None
    assert status.failure.reason is Reason.TIMED_OUT


def test_time_in_an_earlier_attempt_counts_towards_the_timeout():
    job = admitted(a_job(scheduling=Scheduling(timeout=seconds(100))), attempt=1)
    job = replace(job, status=replace(job.status, started_at=at(0)))
    status = decide(job, [], at(100)).status
    assert status.closing is not None
    assert status.closing.failure is not None
    assert status.closing.failure.reason is Reason.TIMED_OUT


def test_time_spent_starting_counts_towards_the_timeout():
    job = admitted(a_job(*GANG, scheduling=Scheduling(timeout=seconds(100))))
    status = decide(job, [alive(key(job, 0, 0))], at(100)).status
    assert status.closing is not None


@pytest.mark.parametrize("state", [JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED])
def test_an_ended_job_never_wakes(state: JobState):
    job = replace(running(a_job(*GANG)), status=replace(running(a_job(*GANG)).status, state=state))
    for seen in ([], all_alive(job, {(0, 0): 1}), all_alive(job, {(0, 0): KILLED})):
        plan = decide(job, seen, at(10**6))
        assert plan.status == job.status
        assert plan.events == ()
        assert not any(isinstance(a, Start) for a in plan.actions)


def test_what_turns_up_alive_after_the_end_is_killed():
    job = a_job(status=Status(state=JobState.CANCELLED))
    assert decide(job, [alive(key(job))], at(1)).actions == (Stop(key(job), True),)
