"""What follows from a hang: the words, the events and, by the job's policy, the end of the attempt. Pure.

`control/hangs.py` calls it. It only changes the status; `decide.py` stops what the status says. HANG_OVER
follows once the job was seen to move. Jobs that are about to end anyway (the primary has succeeded, or a
cancel was asked for) are not watched.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import assert_never

from trainshed.core.event import Event, Reason, Severity
from trainshed.core.explain.explanation import clock, lasting
from trainshed.core.jobs.hang import HangPolicy, Pulse, ReplicaLife, Stall, StallKind, Suspicion
from trainshed.core.jobs.job import Closing, Failure, Job, JobState, Outcome, Status
from trainshed.core.jobs.replica import Phase
from trainshed.core.jobs.stacks import MOST_GROUPS, StackGroup, drawn, told
from trainshed.core.jobs.success import deciding
from trainshed.core.names import RunKey

SERVERS, EVALUATOR = 2, 3  # pools whose end says nothing about the other pools
SEEMS = "It seems to hang"
FIRST_GROUPS = 2  # in the first line of a failure
LONGEST_STACKS = 6000  # characters of one event


def is_watched(job: Job) -> bool:
    """Whether the job is watched for hangs, now or later."""
    rule, count = job.spec.scheduling.hang, sum(pool.replicas for pool in job.spec.pools)
    return not job.is_final and (rule.watches(count) or rule.watches_exits(count))


def may_hang(job: Job) -> bool:
    status = job.status
    done = deciding(job, status.replicas) is not None
    ending = status.closing is not None or status.cancel_asked_at is not None
    return status.state is JobState.RUNNING and not ending and not done


def lives(job: Job, pulses: Mapping[RunKey, Pulse]) -> tuple[ReplicaLife, ...] | None:
    """The replicas as `judge` takes them; None while one is between two runs, which is movement."""
    replicas: list[ReplicaLife] = []
    for replica in job.status.replicas:
        pulse = pulses.get(job.key(replica))
        if replica.phase is Phase.RUNNING and pulse is not None:
            replicas.append(ReplicaLife(task=replica.task, pulse=pulse, waited_for=replica.pool != SERVERS))
        elif replica.phase is Phase.ENDED and replica.exit is not None and replica.exit.ok:
            done_at = replica.noticed_at if replica.pool not in (SERVERS, EVALUATOR) else None
            replicas.append(ReplicaLife(task=replica.task, done_at=done_at))
        else:
            return None
    return tuple(replicas)


def suspected(
    job: Job, stall: Stall, groups: Sequence[StackGroup], now: datetime, *, of: int
) -> tuple[Status, tuple[Event, ...]]:
    """The status and events of a suspected hang. `of` is the number of living replicas."""
    where = told(groups)
    seen = sum(len(group.tasks) for group in groups)
    sample = f" (a sample of {seen} of {of} replicas)" if 0 < seen < of else ""
    message = f"{_what(stall, now)}{f' {where}{sample}.' if where else ''}"
    suspicion = Suspicion(kind=stall.kind, since=stall.since, message=message, noticed_at=now)
    events = [_event(job, Reason.HANG_SUSPECTED, f"{message} {_then(job)}", now)]
    events += [
        _event(job, Reason.STACKS, _cut(drawn(group)), now, _only(group)) for group in groups[:MOST_GROUPS]
    ]
    status = replace(job.status, hang=suspicion, updated_at=now)
    closing = _closing(job, _hung(stall, groups, now), now)
    return (replace(status, closing=closing) if closing else status), tuple(events)


def over(job: Job, now: datetime) -> tuple[Status, tuple[Event, ...]]:
    suspicion = job.status.hang
    stood = f" It stood still for {lasting(now - suspicion.since)}." if suspicion else ""
    event = replace(
        _event(job, Reason.HANG_OVER, f"It moves again: no hang any more.{stood}", now),
        severity=Severity.INFO,
    )
    return replace(job.status, hang=None, updated_at=now), (event,)


def _what(stall: Stall, now: datetime) -> str:
    since = f"for {lasting(now - stall.since)}, since {clock(stall.since)}"
    match stall.kind:
        case StallKind.STILL:
            return f"{SEEMS}: no output, no step and no CPU or GPU movement {since}."
        case StallKind.BUSY:
            return f"{SEEMS}: it computes, but no stack moved, and no output and no step came {since}."
        case StallKind.EXIT:
            done = ", ".join(stall.done[:3]) + (
                f" and {len(stall.done) - 3} more" if len(stall.done) > 3 else ""
            )
            return (
                f"{SEEMS} at its end: {done} ended well, the others are alive without output or step {since}."
            )
        case _:
            assert_never(stall.kind)


def _then(job: Job) -> str:
    match job.spec.scheduling.hang.policy:
        case HangPolicy.WARN:
            return "It is left as it is (policy WARN)."
        case HangPolicy.RESTART if _has_retries(job):
            return "It is started over (policy RESTART)."
        case HangPolicy.RESTART:
            return "It fails: its policy is RESTART and there is no retry left."
        case HangPolicy.FAIL:
            return "It fails (policy FAIL)."
        case _:
            assert_never(job.spec.scheduling.hang.policy)


def _hung(stall: Stall, groups: Sequence[StackGroup], now: datetime) -> str:
    """The hang in one short sentence: the first line of a failed job's error."""
    end = f" after {stall.done[0]} had ended well" if stall.done else ""
    where = told(groups, FIRST_GROUPS) or "nothing moved"
    return f"It hung for {lasting(now - stall.since)}{end}: {where}."


def _closing(job: Job, hung: str, now: datetime) -> Closing | None:
    policy = job.spec.scheduling.hang.policy
    if policy is HangPolicy.WARN:
        return None
    if policy is HangPolicy.RESTART and _has_retries(job):
        failure = Failure(reason=Reason.HUNG, message=hung)
        return Closing(outcome=Outcome.RETRY, since=now, failure=failure)
    spent = " No retry is left." if policy is HangPolicy.RESTART else ""
    failure = Failure(reason=Reason.HUNG, message=f"{hung}{spent}")
    return Closing(outcome=Outcome.FAILED, since=now, failure=failure)


def _has_retries(job: Job) -> bool:
    rule = job.spec.scheduling.restart
    return not rule.disabled and job.status.attempt < rule.job_retries


def _only(group: StackGroup) -> str:
    return group.tasks[0] if len(group.tasks) == 1 else ""


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_STACKS else f"{text[:LONGEST_STACKS]}\n  …"


def _event(job: Job, reason: Reason, message: str, now: datetime, task: str = "") -> Event:
    return Event(
        at=now,
        reason=reason,
        message=message,
        severity=Severity.WARNING,
        attempt=job.status.attempt,
        task=task,
    )
