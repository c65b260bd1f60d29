"""What follows from a hang: words, events, and by its policy the end of the attempt."""

from dataclasses import replace

import pytest

from tests.builders import KILLED, a_job, a_pool, a_rule, all_alive, at, cancelled, closing, running, seconds
from trainshed.core.event import Reason, Severity
from trainshed.core.explain.standing import standing
from trainshed.core.jobs.decide import decide
from trainshed.core.jobs.hang import HangPolicy, HangRule, Pulse, RunActivity, Stall, StallKind
from trainshed.core.jobs.job import Job, JobState, Outcome, RestartRule, Scheduling
from trainshed.core.jobs.replica import Exit, Phase
from trainshed.core.jobs.stacks import StackDump, StackGroup
from trainshed.core.jobs.suspicion import is_watched, lives, may_hang, over, suspected
from trainshed.core.names import RunKey

WELL = Exit(code=0)
STALL = Stall(kind=StallKind.STILL, since=at(10))
GROUPS = (
    StackGroup(tasks=("workerpool0-0", "workerpool1-0"), place="f (a.py:1)", waits=True, dump=StackDump()),
)


def a_gang(policy: HangPolicy = HangPolicy.WARN, rule: RestartRule | None = None, attempt: int = 0) -> Job:
    scheduling = Scheduling(hang=HangRule(policy=policy), restart=rule or RestartRule())
    return running(a_job(a_pool(), a_pool(2), scheduling=scheduling), attempt=attempt)


def pulses(job: Job) -> dict[RunKey, Pulse]:
    pulse = Pulse(sign=RunActivity(), begun_at=at(0), seen_at=at(0), spoke_at=at(0), worked_at=at(0))
    return {job.key(replica): pulse for replica in job.status.replicas}


def ended(job: Job, at_place: tuple[int, int], end: Exit = WELL) -> Job:
    replicas = tuple(
        replace(r, phase=Phase.ENDED, exit=end, noticed_at=at(5)) if (r.pool, r.index) == at_place else r
        for r in job.status.replicas
    )
    return replace(job, status=replace(job.status, replicas=replicas))


def test_a_warning_changes_nothing_but_what_is_told() -> None:
    job = a_gang()
    status, events = suspected(job, STALL, GROUPS, at(70), of=3)
    assert replace(status, hang=None, updated_at=job.status.updated_at) == job.status
    assert status.hang is not None and status.hang.since == at(10)
    assert [event.reason for event in events] == [Reason.HANG_SUSPECTED, Reason.STACKS]
    assert events[0].message == (
        "It seems to hang: no output, no step and no CPU or GPU movement for 1 min, "
        "since 2026-05-01 12:00:10 UTC. 2 replicas wait in f (a.py:1) (a sample of 2 of 3 replicas). "
        "It is left as it is (policy WARN)."
    )
    assert {event.severity for event in events} == {Severity.WARNING}


def test_without_stacks_the_hang_is_told_all_the_same() -> None:
    _, [event] = suspected(a_gang(), STALL, (), at(70), of=3)
    assert "since 2026-05-01 12:00:10 UTC. It is left" in event.message


def test_restarting_is_a_new_attempt_counted_against_the_budget() -> None:
    job = a_gang(HangPolicy.RESTART)
    status, _ = suspected(job, STALL, GROUPS, at(70), of=3)
    assert status.closing is not None and status.closing.outcome is Outcome.RETRY
    job = replace(job, status=status)
    plan = decide(job, all_alive(job), at(71))
    assert len(plan.actions) == 3
    gone = all_alive(job, {(0, 0): KILLED, (1, 0): KILLED, (1, 1): KILLED})
    plan = decide(job, gone, at(72))
    assert plan.status.attempt == 1
    assert plan.status.hang is None
    assert plan.status.state is JobState.PENDING
    assert plan.events[0].message == (
        "It hung for 1 min: 2 replicas wait in f (a.py:1). Retry 1 of 3 in 0.5 s."
    )


@pytest.mark.parametrize("rule", [a_rule(retries=2), a_rule(disabled=True)])
def test_without_a_retry_left_restarting_is_failing(rule: RestartRule) -> None:
    status, events = suspected(a_gang(HangPolicy.RESTART, rule, attempt=2), STALL, GROUPS, at(70), of=3)
    assert status.closing is not None and status.closing.outcome is Outcome.FAILED
    assert status.closing.failure is not None
    assert status.closing.failure.message.endswith("No retry is left.")
    assert events[0].message.endswith("there is no retry left.")


def test_failing_ends_the_job_with_the_reason_and_the_place() -> None:
    job = a_gang(HangPolicy.FAIL)
    status, _ = suspected(job, STALL, GROUPS, at(70), of=3)
    job = replace(job, status=status)
    plan = decide(job, all_alive(job, {(0, 0): KILLED, (1, 0): KILLED, (1, 1): KILLED}), at(72))
    assert plan.status.state is JobState.FAILED
    assert plan.status.hang is None
    assert plan.status.failure is not None
    assert plan.status.failure.reason is Reason.HUNG
    assert plan.status.failure.task == ""
    assert "2 replicas wait in f (a.py:1)" in plan.status.failure.message


def test_decide_leaves_a_suspicion_alone_while_the_job_runs() -> None:
    status, _ = suspected(a_gang(), STALL, GROUPS, at(70), of=3)
    job = replace(a_gang(), status=status)
    assert decide(job, all_alive(job), at(71)).status == status


def test_a_job_that_moves_again_is_said_to() -> None:
    job = a_gang()
    status, _ = suspected(job, STALL, GROUPS, at(70), of=3)
    status, [event] = over(replace(job, status=status), at(100))
    assert status.hang is None
    assert (event.reason, event.severity) == (Reason.HANG_OVER, Severity.INFO)
    assert "It stood still for 1 min 30 s." in event.message


def test_why_tells_of_the_suspicion() -> None:
    job = a_gang()
    status, _ = suspected(job, STALL, GROUPS, at(70), of=3)
    told = standing(replace(job, status=status), at(80))
    assert told.grounds[0].reason is Reason.HANG_SUSPECTED


def test_a_job_that_ends_by_itself_cannot_hang() -> None:
    job = a_gang()
    assert may_hang(job)
    assert not may_hang(ended(job, (0, 0)))  # its primary has succeeded: the others have their drain time
    assert may_hang(ended(job, (1, 0)))
    assert not may_hang(cancelled(job))
    assert not may_hang(closing(job, Outcome.RETRY))
    assert not may_hang(a_job())


def test_only_jobs_with_a_rule_for_them_are_watched() -> None:
    assert is_watched(a_gang())
    assert not is_watched(a_job())
    assert is_watched(a_job(scheduling=Scheduling(hang=HangRule(asked=True))))
    off = HangRule(after=seconds(0), exit_after=seconds(0), asked=True)
    assert not is_watched(a_job(a_pool(3), scheduling=Scheduling(hang=off)))


def test_replicas_between_two_runs_are_movement() -> None:
    job = a_gang()
    assert lives(job, {}) is None
    assert lives(ended(job, (1, 0), KILLED), pulses(job)) is None
    found = lives(job, pulses(job))
    assert found is not None and len(found) == 3


def test_the_end_of_a_server_or_evaluator_says_nothing_about_the_others() -> None:
    job = running(a_job(a_pool(), a_pool(), a_pool(), a_pool()))
    for pool, told in ((1, True), (2, False), (3, False)):
        found = lives(ended(job, (pool, 0)), pulses(job))
        assert found is not None
        assert (found[pool].done_at is not None) is told
        assert found[2].waited_for is False or pool == 2
    late = Stall(kind=StallKind.EXIT, since=at(5), done=("workerpool1-0",))
    status, _ = suspected(job, late, (), at(605), of=3)
    assert status.hang is not None
    assert status.hang.message == (
        "It seems to hang at its end: workerpool1-0 ended well, the others are alive without output or step "
        "for 10 min, since 2026-05-01 12:00:05 UTC."
    )
