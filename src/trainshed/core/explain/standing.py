"""Why a job that is not in the queue is in its state: starting, running, ending, ended. Pure.

`core/explain/why.py` calls it.
"""

from datetime import datetime
from typing import assert_never

from trainshed.core.event import Reason
from trainshed.core.explain.explanation import Fact, Ground, clock, lasting, more
from trainshed.core.jobs import closing as closings
from trainshed.core.jobs.job import Closing, Job, JobState, Outcome
from trainshed.core.jobs.replica import Phase, Replica

_COMPLETE_REASONS = (Reason.STORING_OUTPUTS, Reason.HELD)  # their message needs no list of replicas
MOST_REPLICAS = 20  # listed; the rest is counted


def standing(job: Job, now: datetime) -> Ground:
    status = job.status
    if not job.is_final and (status.closing is not None or status.cancel_asked_at is not None):
        return _ending(job, now)
    match status.state:
        case JobState.QUEUED | JobState.PENDING:
            return _starting(job, now)
        case JobState.RUNNING | JobState.CANCELLING:
            return _running(job, now)
        case JobState.SUCCEEDED:
            return Ground(reason=Reason.SUCCEEDED, message=f"It succeeded{_after(job)}.", at=status.ended_at)
        case JobState.CANCELLED:
            return Ground(
                reason=Reason.CANCELLED, message=f"It was cancelled{_after(job)}.", at=status.ended_at
            )
        case JobState.FAILED:
            return _failed(job)
    assert_never(status.state)


def _starting(job: Job, now: datetime) -> Ground:
    """PENDING: which replicas have not started, and why."""
    replicas, waiting = job.status.replicas, job.status.waiting
    unseen = [r for r in replicas if r.phase is Phase.PLANNED]
    started = f"{len(replicas) - len(unseen)} of {len(replicas)} replicas have started"
    obstacle = waiting if waiting is not None and waiting.reason is not Reason.STARTING else None
    grounds = [_replica(job, r, now) for r in unseen[:MOST_REPLICAS]]
    return Ground(
        reason=obstacle.reason if obstacle else Reason.STARTING,
        message=f"{obstacle.message} {started}." if obstacle else f"It has its place; {started}.",
        remedy=obstacle.remedy if obstacle else "The others start by themselves." if unseen else "",
        grounds=(*grounds, *more(len(unseen), MOST_REPLICAS), *_site(job)),
    )


def _running(job: Job, now: datetime) -> Ground:
    status = job.status
    odd = [r for r in status.replicas if r.phase is not Phase.RUNNING]
    count = len(status.replicas)
    since = status.started_at or status.admitted_at or now
    until = since + job.spec.scheduling.timeout
    alive = f"{count - len(odd)} of {count} replicas run" if odd or count != 1 else "Its replica runs"
    grounds = [_replica(job, r, now) for r in odd[:MOST_REPLICAS]]
    hang = (Ground(reason=Reason.HANG_SUSPECTED, message=status.hang.message),) if status.hang else ()
    limit = Ground(
        reason=Fact.DEADLINE, message=f"It is stopped at {clock(until)}, by its timeout.", at=until
    )
    waiting = status.waiting
    return Ground(
        reason=waiting.reason if waiting else Reason.RUNNING,
        message=f"{waiting.message + ' ' if waiting else ''}{alive}, for {lasting(now - since)} now"
        f"{_attempt(job)}.",
        remedy=waiting.remedy if waiting else "",
        grounds=(*hang, *grounds, *more(len(odd), MOST_REPLICAS), *_site(job), limit),
    )


def _site(job: Job) -> tuple[Ground, ...]:
    admission = job.status.admission
    return (Ground(reason=Fact.SITE, message=admission.why),) if admission and admission.why else ()


def _ending(job: Job, now: datetime) -> Ground:
    status = job.status
    asked = Closing(outcome=Outcome.CANCELLED, since=status.cancel_asked_at or now)
    closing = status.closing or asked
    if (waiting := status.waiting) is not None and waiting.reason in _COMPLETE_REASONS:
        failure = closing.failure
        why = (Ground(reason=failure.reason, message=failure.message),) if failure else ()
        return Ground(reason=waiting.reason, message=waiting.message, remedy=waiting.remedy, grounds=why)
    left = [r for r in status.replicas if r.phase in (Phase.RUNNING, Phase.MISSING)]
    kill_at = closing.since + job.spec.scheduling.grace
    waiting = closings.waiting(closing, len(left), kill_at)
    failure = closing.failure
    reasons = [Ground(reason=failure.reason, message=failure.message)] if failure else []
    replicas = [_replica(job, r, now) for r in left[:MOST_REPLICAS]]
    return Ground(
        reason=waiting.reason,
        message=waiting.message,
        remedy=waiting.remedy,
        at=kill_at,
        grounds=(*reasons, *replicas, *more(len(left), MOST_REPLICAS)),
    )


def _failed(job: Job) -> Ground:
    status, failure = job.status, job.status.failure
    bad = [r for r in status.replicas if r.exit is not None and not r.exit.ok]
    first = sorted(bad, key=lambda r: (r.ended_at or status.ended_at or job.created_at, r.pool, r.index))
    replicas = [
        Ground(reason=Fact.REPLICA, message=f"{r.task} {r.exit}.", at=r.ended_at)
        for r in first[:MOST_REPLICAS]
    ]
    verdict = failure.verdict if failure else None
    judged = (Ground(reason=Fact.VERDICT, message=verdict.sentence),) if verdict else ()
    return Ground(
        reason=failure.reason if failure else Reason.PROGRAM_FAILED,
        message=failure.message if failure else "The job failed.",
        remedy=f"Its output: trainshed logs {job.id}"
        + (f" --replica {failure.task}" if failure and failure.task else ""),
        at=status.ended_at,
        grounds=(*judged, *replicas, *more(len(first), MOST_REPLICAS)),
    )


def _replica(job: Job, replica: Replica, now: datetime) -> Ground:
    name, rule = replica.task, job.spec.scheduling.restart
    at: datetime | None = None
    match replica.phase:
        case Phase.PLANNED if replica.not_before is not None and replica.not_before > now:
            at = replica.not_before
            again = (
                f"restart {replica.restarts} of {rule.replica_restarts}"
                if replica.restarts
                else "its next start"
            )
            text = f"waits out its back-off: {again} comes in {lasting(at - now)}, at {clock(at)}"
        case Phase.PLANNED:
            text = f"is being started{f', restart {replica.run}' if replica.run else ''}"
        case Phase.RUNNING:
            text = f"runs{_restarts(replica)}"
        case Phase.MISSING:
            at = replica.missing_since
            text = "is not seen any more; it is looked for, then counted as lost"
        case Phase.ENDED:
            at = replica.ended_at
            text = str(replica.exit) if replica.exit else "has ended"
        case _:
            assert_never(replica.phase)
    return Ground(reason=Fact.REPLICA, message=f"{name} {text}.", at=at)


def _restarts(replica: Replica) -> str:
    return f", after {replica.run} restart{'s' if replica.run > 1 else ''}" if replica.run else ""


def _after(job: Job) -> str:
    status = job.status
    if status.started_at is None or status.ended_at is None:
        return ""
    return f" after {lasting(status.ended_at - status.started_at)}{_attempt(job)}"


def _attempt(job: Job) -> str:
    """By the number that `show` and `logs --attempt` have for it: the first is 0."""
    return f", in attempt {job.status.attempt}" if job.status.attempt else ""
