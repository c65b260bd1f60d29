"""What the death of a replica does to its job: nothing, a restart, a new attempt, or the end."""

from dataclasses import replace

import pytest

from tests.builders import (
    KILLED,
    LOST,
    a_job,
    a_pool,
    a_rule,
    admitted,
    alive,
    all_alive,
    at,
    closing,
    ended,
    key,
    running,
    seconds,
    with_replica,
    with_status,
)
from trainshed.core.event import Reason, Severity
from trainshed.core.jobs.decide import MISSING_FOR, Start, Stop, decide
from trainshed.core.jobs.job import Closing, Failure, JobState, Outcome, RestartRule
from trainshed.core.jobs.replica import Exit, Phase, Replica

GANG = (a_pool(), a_pool(2))


@pytest.mark.parametrize("code", [1, 2, 127, 128])
def test_a_program_that_fails_closes_the_job_as_failed_at_once(code: int):
    job = running(a_job(*GANG))
    plan = decide(job, all_alive(job, {(1, 1): code}), at(5))
    assert plan.status.closing == Closing(
        outcome=Outcome.FAILED,
        since=at(5),
        failure=Failure(
            reason=Reason.PROGRAM_FAILED,
            task="workerpool1-1",
            message=f"workerpool1-1 exited with code {code}: the program itself failed, "
            "so the job was not retried.",
        ),
    )
    assert plan.actions == ()


def test_a_program_that_was_over_a_limit_of_its_own_is_not_started_again():
    job = running(a_job(*GANG))
    seen = [
        replace(one, over_limit=True) if one.exit == KILLED else one
        for one in all_alive(job, {(1, 1): KILLED})
    ]
    closing = decide(job, seen, at(5)).status.closing
    assert closing is not None and closing.failure is not None
    assert closing.outcome is Outcome.FAILED
    assert closing.failure.message == (
        "workerpool1-1 was killed by signal 9 (SIGKILL): it was over a limit of its own, "
        "so the job was not retried."
    )


def test_once_that_failure_is_durable_the_others_are_stopped():
    job = running(a_job(*GANG))
    seen = all_alive(job, {(1, 1): 1})
    job = with_status(job, decide(job, seen, at(5)).status)
    plan = decide(job, seen, at(5))
    assert plan.actions == (Stop(key(job, 0, 0), False), Stop(key(job, 1, 0), False))


def test_when_all_others_are_gone_the_job_is_failed_with_its_verdict():
    failure = Failure(
        reason=Reason.PROGRAM_FAILED, message="workerpool0-0 exited with code 2.", task="workerpool0-0"
    )
    job = closing(running(a_job(*GANG)), Outcome.FAILED, failure=failure)
    plan = decide(job, all_alive(job, {(0, 0): 2, (1, 0): KILLED, (1, 1): KILLED}), at(9))
    assert plan.status.state is JobState.FAILED
    assert plan.status.failure == failure
    assert plan.status.ended_at == at(9)
    assert [(e.reason, e.severity, e.task) for e in plan.events] == [
        (Reason.PROGRAM_FAILED, Severity.ERROR, "workerpool0-0")
    ]


def test_a_failed_job_of_one_replica_is_final_in_the_same_turn():
    job = running(a_job())
    plan = decide(job, all_alive(job, {(0, 0): 1}), at(1))
    assert plan.status.state is JobState.FAILED


def test_the_first_program_to_fail_gives_the_verdict():
    job = running(a_job(*GANG))
    seen = [
        ended(key(job, 0, 0), 4, at(3)),
        ended(key(job, 1, 0), KILLED, at(1)),
        ended(key(job, 1, 1), 5, at(2)),
    ]
    failure = decide(job, seen, at(4)).status.failure
    assert failure is not None
    assert failure.task == "workerpool1-1"


@pytest.mark.parametrize("end", [KILLED, Exit(signal=15), Exit(code=129), Exit(code=255), LOST])
def test_a_replica_that_was_interrupted_is_planned_again_with_the_next_run_number(end: Exit):
    job = running(a_job(*GANG))
    plan = decide(job, all_alive(job, {(1, 0): end}), at(5))
    previous = plan.status.replicas[1].previous
    assert previous is not None and (previous.attempt, previous.run, previous.exit) == (0, 0, end)
    assert plan.status.replicas[1] == Replica(
        pool=1, index=0, phase=Phase.PLANNED, run=1, not_before=at(5.5), previous=previous
    )
    assert plan.status.state is JobState.RUNNING
    assert plan.status.closing is None
    assert plan.actions == ()
    assert plan.again_at == at(5.5)
    assert [(e.reason, e.severity, e.task) for e in plan.events] == [
        (Reason.REPLICA_RESTARTED, Severity.WARNING, "workerpool1-0")
    ]


def test_a_restart_is_told_with_its_number_its_budget_and_its_delay():
    job = running(a_job(*GANG), run=2)
    [event] = decide(job, all_alive(job, {(1, 0): KILLED}), at(5)).events
    assert event.message == "workerpool1-0 was killed by signal 9 (SIGKILL); restart 3 of 5 in 2 s."


def test_other_replicas_are_untouched_by_a_restart():
    job = running(a_job(*GANG))
    plan = decide(job, all_alive(job, {(1, 0): KILLED}), at(5))
    assert (plan.status.replicas[0], plan.status.replicas[2]) == (
        job.status.replicas[0],
        job.status.replicas[2],
    )


def test_a_planned_restart_waits_for_its_back_off():
    job = with_replica(running(a_job(*GANG)), Replica(pool=1, index=0, run=1, not_before=at(10)))
    seen = [alive(key(job, 0, 0)), ended(key(job, 1, 0), KILLED), alive(key(job, 1, 1))]
    early, due = decide(job, seen, at(9.9)), decide(job, seen, at(10))
    assert (early.actions, early.again_at) == ((), at(10))
    assert due.actions == (Start(job.status.replicas[1]),)


def test_a_fifth_restart_is_given_and_a_sixth_is_not():
    fifth, sixth = running(a_job(), run=4), running(a_job(), run=5)
    assert decide(fifth, all_alive(fifth, {(0, 0): KILLED}), at(1)).status.replicas[0].run == 5
    plan = decide(sixth, all_alive(sixth, {(0, 0): KILLED}), at(1))
    assert (plan.status.attempt, plan.status.replicas[0].run) == (1, 0)


def test_after_its_restarts_are_used_up_the_whole_gang_is_closed_for_a_retry():
    job = running(a_job(*GANG), run=5)
    plan = decide(job, all_alive(job, {(1, 0): KILLED}), at(5))
    assert plan.status.closing == Closing(
        outcome=Outcome.RETRY,
        since=at(5),
        failure=Failure(
            reason=Reason.REPLICA_KILLED,
            message="workerpool1-0 was killed by signal 9 (SIGKILL).",
            task="workerpool1-0",
        ),
    )
    assert plan.actions == ()


def test_a_new_attempt_begins_only_when_the_last_of_the_old_one_is_gone():
    job = closing(running(a_job(*GANG), run=5), Outcome.RETRY)
    still = decide(job, all_alive(job, {(1, 0): KILLED, (0, 0): KILLED}), at(5))
    assert still.status.attempt == 0
    gone = decide(job, all_alive(job, {(1, 0): KILLED, (0, 0): KILLED, (1, 1): KILLED}), at(5))
    assert gone.status.attempt == 1


def test_a_new_attempt_has_fresh_replicas_the_same_admission_and_a_back_off():
    job = closing(running(a_job(*GANG), attempt=1, run=5), Outcome.RETRY)
    plan = decide(job, all_alive(job, dict.fromkeys([(0, 0), (1, 0), (1, 1)], KILLED)), at(5))
    assert plan.status.state is JobState.PENDING
    assert plan.status.attempt == 2
    assert plan.status.closing is None
    assert plan.status.admission == job.status.admission
    assert [replace(replica, previous=None) for replica in plan.status.replicas] == [
        Replica(pool=p, index=i, not_before=at(6)) for p, i in [(0, 0), (1, 0), (1, 1)]
    ]
    assert {
        (r.previous.attempt, r.previous.run, r.previous.exit) for r in plan.status.replicas if r.previous
    } == {(1, 5, KILLED)}
    assert plan.actions == ()
    assert plan.again_at == at(6)
    assert [e.reason for e in plan.events] == [Reason.JOB_RETRIED]
    assert plan.status.waiting is not None
    assert "Retry 2 of 3 in 1 s" in plan.status.waiting.message


def test_a_job_that_has_used_up_its_three_retries_fails():
    job = running(a_job(), attempt=3, run=5)
    plan = decide(job, all_alive(job, {(0, 0): KILLED}), at(5))
    assert plan.status.state is JobState.FAILED
    assert plan.status.failure == Failure(
        reason=Reason.RETRIES_EXHAUSTED,
        task="workerpool0-0",
        message="workerpool0-0 was killed by signal 9 (SIGKILL), after 5 of 5 restarts in this attempt; "
        "all 4 attempts are used up.",
    )


def test_a_third_retry_is_given():
    job = running(a_job(), attempt=2, run=5)
    assert decide(job, all_alive(job, {(0, 0): KILLED}), at(5)).status.attempt == 3


def test_restart_job_on_worker_restart_closes_the_gang_for_a_retry_at_the_first_death():
    job = running(a_job(*GANG, rule=a_rule(whole_gang=True)))
    closed = decide(job, all_alive(job, {(1, 0): KILLED}), at(5)).status.closing
    assert closed is not None
    assert closed.outcome is Outcome.RETRY


def test_restart_job_on_worker_restart_fails_when_the_retries_are_used_up():
    job = running(a_job(rule=a_rule(whole_gang=True)), attempt=3)
    failure = decide(job, all_alive(job, {(0, 0): KILLED}), at(5)).status.failure
    assert failure is not None
    assert failure.reason is Reason.RETRIES_EXHAUSTED


@pytest.mark.parametrize(("end", "reason"), [(KILLED, Reason.REPLICA_KILLED), (LOST, Reason.REPLICA_LOST)])
def test_with_retries_disabled_any_death_fails_the_job_at_once(end: Exit, reason: Reason):
    job = running(a_job(rule=a_rule(disabled=True)))
    plan = decide(job, all_alive(job, {(0, 0): end}), at(5))
    assert plan.status.state is JobState.FAILED
    assert plan.status.failure is not None
    assert plan.status.failure.reason is reason


def test_a_jobs_own_codes_decide_what_is_restarted():
    job = running(a_job(*GANG, rule=a_rule(codes=((7, 7),))))
    again = decide(job, all_alive(job, {(1, 0): 7}), at(5)).status
    failed = decide(job, all_alive(job, {(1, 0): 130}), at(5)).status
    assert again.replicas[1].run == 1
    assert failed.closing is not None
    assert failed.closing.outcome is Outcome.FAILED


def test_a_jobs_own_budgets_decide_how_often():
    rule = a_rule(restarts=1, retries=0)
    first, second = running(a_job(rule=rule)), running(a_job(rule=rule), run=1)
    assert decide(first, all_alive(first, {(0, 0): KILLED}), at(5)).status.replicas[0].run == 1
    assert decide(second, all_alive(second, {(0, 0): KILLED}), at(5)).status.state is JobState.FAILED


def test_a_program_failure_beside_an_interruption_fails_the_job():
    job = running(a_job(*GANG))
    closed = decide(job, all_alive(job, {(0, 0): KILLED, (1, 0): 1}), at(5)).status.closing
    assert closed is not None
    assert (closed.outcome, closed.failure and closed.failure.task) == (Outcome.FAILED, "workerpool1-0")


def test_two_replicas_dying_together_are_both_restarted():
    job = running(a_job(*GANG))
    plan = decide(job, all_alive(job, {(1, 0): KILLED, (1, 1): LOST}), at(5))
    assert [r.run for r in plan.status.replicas] == [0, 1, 1]
    assert len(plan.events) == 2


def test_a_restarted_job_stays_running_and_keeps_when_it_began():
    job = running(a_job())
    status = decide(job, all_alive(job, {(0, 0): KILLED}), at(5)).status
    assert (status.state, status.started_at) == (JobState.RUNNING, at(0))


def test_a_replica_no_longer_shown_is_first_missing():
    job = running(a_job(*GANG))
    plan = decide(job, all_alive(job, {(1, 0): None}), at(5))
    assert plan.status.replicas[1] == replace(
        job.status.replicas[1], phase=Phase.MISSING, missing_since=at(5)
    )
    assert plan.again_at == at(5) + MISSING_FOR
    assert plan.actions == ()


def test_a_missing_replica_that_is_shown_again_is_as_before():
    healthy = running(a_job(*GANG))
    job = with_status(healthy, decide(healthy, all_alive(healthy, {(1, 0): None}), at(5)).status)
    assert decide(job, all_alive(job), at(6)).status == healthy.status


def test_a_replica_missing_for_too_long_is_lost_and_restarted():
    job = running(a_job(*GANG))
    job = with_status(job, decide(job, all_alive(job, {(1, 0): None}), at(5)).status)
    seen = all_alive(job, {(1, 0): None})
    before = decide(job, seen, at(5) + MISSING_FOR - seconds(0.001))
    after = decide(job, seen, at(5) + MISSING_FOR)
    assert before.status == job.status
    assert (after.status.replicas[1].run, after.status.replicas[1].phase) == (1, Phase.PLANNED)
    assert "was lost" in after.events[0].message


def test_a_run_of_an_earlier_attempt_that_comes_back_is_killed_before_anything_starts():
    job = admitted(a_job(), attempt=1)
    old = key(job, attempt=0)
    assert decide(job, [alive(old)], at(5)).actions == (Stop(old, True),)
    assert decide(job, [ended(old, KILLED)], at(5)).actions == (Start(job.status.replicas[0]),)


def test_even_without_back_off_a_restart_waits_until_its_number_is_durable():
    job = running(a_job(rule=a_rule(backoff=0)))
    seen = all_alive(job, {(0, 0): KILLED})
    first = decide(job, seen, at(5))
    assert (first.actions, first.status.replicas[0].run) == ((), 1)
    job = with_status(job, first.status)
    assert decide(job, seen, at(5)).actions == (Start(job.status.replicas[0]),)


def test_the_counters_are_in_the_durable_status_and_nowhere_else():
    job = with_replica(running(a_job(), attempt=2), Replica(pool=0, index=0, phase=Phase.RUNNING, run=4))
    status = decide(job, [ended(key(job, run=4), KILLED)], at(5)).status
    assert (status.attempt, status.replicas[0].run) == (2, 5)


def test_the_back_off_of_restarts_grows_with_the_run():
    waits: list[float] = []
    for run in range(5):
        job = running(a_job(), run=run)
        not_before = decide(job, all_alive(job, {(0, 0): KILLED}), at(0)).status.replicas[0].not_before
        assert not_before is not None
        waits.append((not_before - at(0)).total_seconds())
    assert waits == [0.5, 1, 2, 4, 8]
    assert RestartRule().backoff_most == seconds(30)
