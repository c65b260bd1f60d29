"""How an attempt ends: makes each kind of Closing, and the status and event once all replicas are gone. Pure.

`core/jobs/decide.py`, `core/jobs/withhold.py` and `core/explain/standing.py` call it. It never decides
whether an attempt ends.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import assert_never

from trainshed.core.event import Event, Reason, Severity, Waiting
from trainshed.core.jobs.job import (
    Closing,
    Failure,
    Job,
    JobState,
    Outcome,
    RestartRule,
    Status,
    planned_replicas,
)
from trainshed.core.jobs.pause import requeue_of
from trainshed.core.jobs.readiness import Readiness
from trainshed.core.jobs.replica import Replica
from trainshed.core.jobs.restart import INTERRUPTIONS, PROGRESS, STARTS, backoff, interruptions
from trainshed.core.obstacle import Obstacle


def may_become_cancelled(status: Status) -> bool:
    """A cancel wins over waiting, running and retrying, but not over a decided outcome."""
    return status.closing is None or status.closing.outcome in (Outcome.RETRY, Outcome.PREEMPTED)


def cancelled(status: Status, now: datetime) -> Closing:
    since = status.closing.since if status.closing else now
    return Closing(outcome=Outcome.CANCELLED, since=since)


def program_failed(replica: Replica, now: datetime) -> Closing:
    if replica.unstarted:
        times = f" {replica.restarts + 1} times" if replica.restarts else ""
        message = f"{replica.task} was never started{times}: {replica.unstarted}."
        return _failed(Failure(reason=Reason.PROGRAM_FAILED, message=message, task=replica.task), now)
    why = "it was over a limit of its own" if replica.over_limit else "the program itself failed"
    message = f"{replica.task} {replica.exit}: {why}, so the job was not retried."
    return _failed(Failure(reason=Reason.PROGRAM_FAILED, message=message, task=replica.task), now)


def crashed_again(replica: Replica, now: datetime) -> Closing:
    message = (
        f"{replica.task} {replica.exit}, {replica.crashes} times in a row, soon after its start and with the "
        f"same last words: it would do so again, so the job was not retried."
    )
    return _failed(Failure(reason=Reason.PROGRAM_FAILED, message=message, task=replica.task), now)


def restarted(replica: Replica, rule: RestartRule, delay: timedelta) -> str:
    """What is said of a replica that is started again."""
    seconds = f"{delay.total_seconds():g} s"
    if not replica.interrupted:
        number = f"{replica.restarts + 1} of {rule.replica_restarts}"
        return f"{replica.task} {replica.exit}; restart {number} in {seconds}."
    return (
        f"{replica.task} {replica.exit}. {replica.interrupted} It starts again in {seconds}, "
        f"which counts as none of its {rule.replica_restarts} restarts."
    )


def interrupted_again(replica: Replica, now: datetime) -> Closing:
    message = (
        f"{replica.task} was interrupted {INTERRUPTIONS} times in a row, each time before it had run for "
        f"{PROGRESS.total_seconds() / 60:g} minutes, so the job was given up. {replica.interrupted}"
    )
    return _failed(Failure(reason=Reason.INTERRUPTED, message=message, task=replica.task), now)


def interrupted(replica: Replica, now: datetime) -> Closing:
    message = f"{_ended(replica)} Retries are disabled for this job."
    return _failed(Failure(reason=_why(replica), message=message, task=replica.task), now)


def exhausted(job: Job, replica: Replica, now: datetime) -> Closing:
    rule = job.spec.scheduling.restart
    counted = job.status.attempt - job.status.uncounted + 1
    tries = "attempt" if counted == 1 else "attempts"
    message = (
        f"{replica.task} {replica.exit}, after {replica.restarts} of {rule.replica_restarts} restarts in "
        f"this attempt; all {counted} {tries} are used up."
    )
    return _failed(Failure(reason=Reason.RETRIES_EXHAUSTED, message=message, task=replica.task), now)


def retry(replica: Replica, now: datetime) -> Closing:
    failure = Failure(reason=_why(replica), message=_ended(replica), task=replica.task)
    return Closing(outcome=Outcome.RETRY, since=now, failure=failure)


def preempted(message: str, now: datetime, lost: timedelta | None = None) -> Closing:
    failure = Failure(reason=Reason.PREEMPTED, message=message)
    return Closing(outcome=Outcome.PREEMPTED, since=now, failure=failure, lost=lost)


def unprepared(readiness: Readiness, now: datetime) -> Closing:
    """What the job needs before it can start cannot be prepared."""
    return _failed(
        Failure(reason=Reason.PREPARATION_FAILED, message=readiness.message, verdict=readiness.verdict),
        now,
    )


def stuck(obstacle: Obstacle, now: datetime) -> Closing:
    """Nothing has moved for longer than such an obstacle is borne."""
    minutes = (obstacle.patience or timedelta()).total_seconds() / 60
    message = f"{obstacle.message} Nothing moved for {minutes:g} minutes, so the job was given up."
    return _failed(Failure(reason=obstacle.reason, message=message), now)


def unstarted(replica: Replica) -> Waiting:
    return Waiting(
        reason=Reason.LAUNCH_FAILED,
        message=f"{replica.task} could not be started: {replica.unstarted}.",
        remedy=f"It is tried {STARTS} times, then the job fails: correct what the message names.",
    )


def waiting(closing: Closing, count: int, kill_at: datetime) -> Waiting:
    noun = "replica" if count == 1 else "replicas"
    match closing.outcome:
        case Outcome.CANCELLED:
            reason, why = Reason.CANCEL_ASKED, "Cancelled"
        case Outcome.RETRY:
            reason, why = Reason.JOB_RETRIED, "Starting over"
        case Outcome.PREEMPTED:
            reason, why = Reason.PREEMPTED, "Preempted"
        case Outcome.SUCCEEDED:
            reason, why = Reason.STOPPED_AFTER_PRIMARY, "The primary has succeeded"
        case Outcome.FAILED:
            reason, why = (closing.failure.reason if closing.failure else Reason.PROGRAM_FAILED), "Failed"
        case _:
            assert_never(closing.outcome)
    message = f"{why}: {count} {noun} still to stop, killed at {kill_at:%H:%M:%S} UTC at the latest."
    return Waiting(reason=reason, message=message, remedy="Nothing to do: it ends by itself.")


def next_attempt(job: Job, status: Status, closing: Closing, now: datetime) -> tuple[Status, Event]:
    """The next attempt: the same admission and ports, a new number, no restarts used."""
    rule, number = job.spec.scheduling.restart, status.attempt + 1
    counts = closing.failure is None or closing.failure.reason is not Reason.INTERRUPTED
    uncounted = status.uncounted + (not counts)
    row = {(r.pool, r.index): interruptions(r) for r in status.replicas}
    delay = backoff(rule, status.attempt - status.uncounted if counts else max(row.values(), default=1) - 1)
    why, seconds = closing.failure.message if closing.failure else "", f"{delay.total_seconds():g} s"
    if counts:
        text = f"{why} Retry {number - uncounted} of {rule.job_retries} in {seconds}."
    else:
        text = f"{why} It starts over in {seconds}, which counts as none of its {rule.job_retries} retries."
    ended = {(r.pool, r.index): r.as_ended(status.attempt) for r in status.replicas}
    fresh = replace(
        status,
        state=JobState.PENDING,
        attempt=number,
        uncounted=uncounted,
        closing=None,
        hang=None,
        waiting=Waiting(reason=Reason.JOB_RETRIED, message=text, remedy="It starts again by itself."),
        replicas=tuple(
            replace(
                r,
                not_before=now + delay,
                previous=ended.get((r.pool, r.index)),
                interruptions=row.get((r.pool, r.index), 0),
            )
            for r in planned_replicas(job.spec)
        ),
    )
    event = Event(at=now, reason=Reason.JOB_RETRIED, message=text, severity=Severity.WARNING, attempt=number)
    return fresh, event


def requeued(job: Job, status: Status, closing: Closing, now: datetime) -> tuple[Status, Event]:
    """Back in the queue, at its old place. The next attempt counts as no retry."""
    number, why = status.attempt + 1, closing.failure.message if closing.failure else ""
    ran = closing.since - (status.started_at or closing.since)
    requeue = requeue_of(
        status.requeue, why, ran, closing.lost, closing.since, now, job.spec.scheduling.max_wait
    )
    text = (
        f"{why} It is in the queue again, resumes from its last checkpoint, and this counts as none of its "
        f"{job.spec.scheduling.restart.job_retries} retries."
    )
    if requeue.pauses_until is not None:
        text += (
            f" It had stored no checkpoint, so it pauses until {requeue.pauses_until:%Y-%m-%d %H:%M:%S} UTC."
        )
    ended = {(r.pool, r.index): r.as_ended(status.attempt) for r in status.replicas}
    waits = replace(
        status,
        state=JobState.QUEUED,
        attempt=number,
        uncounted=status.uncounted + 1,
        admission=None,
        closing=None,
        hang=None,
        requeue=requeue,
        waiting=Waiting(reason=Reason.PREEMPTED, message=text, remedy="It starts again by itself."),
        replicas=tuple(replace(r, previous=ended.get((r.pool, r.index))) for r in planned_replicas(job.spec)),
        preparing_since=None,
        prepared_at=None,
        admitted_at=None,
        started_at=None,
    )
    event = Event(at=now, reason=Reason.REQUEUED, message=text, severity=Severity.WARNING, attempt=number)
    return waits, event


def final(status: Status, closing: Closing, now: datetime) -> tuple[Status, Event]:
    severity = Severity.INFO
    match closing.outcome:
        case Outcome.SUCCEEDED:
            state, reason, text = JobState.SUCCEEDED, Reason.SUCCEEDED, "The job succeeded."
        case Outcome.CANCELLED:
            state, reason, text = JobState.CANCELLED, Reason.CANCELLED, "The job was cancelled."
        case Outcome.FAILED | Outcome.RETRY | Outcome.PREEMPTED:
            failure = closing.failure
            state, severity = JobState.FAILED, Severity.ERROR
            reason = failure.reason if failure else Reason.PROGRAM_FAILED
            text = failure.message if failure else "The job failed."
        case _:
            assert_never(closing.outcome)
    done = replace(
        status, state=state, closing=None, waiting=None, hang=None, failure=closing.failure, ended_at=now
    )
    task = closing.failure.task if closing.failure else ""
    event = Event(at=now, reason=reason, message=text, severity=severity, attempt=status.attempt, task=task)
    return done, event


def _failed(failure: Failure, now: datetime) -> Closing:
    return Closing(outcome=Outcome.FAILED, since=now, failure=failure)


def _ended(replica: Replica) -> str:
    return f"{replica.task} {replica.exit}. {replica.interrupted}".strip()


def _why(replica: Replica) -> Reason:
    if replica.interrupted:
        return Reason.INTERRUPTED
    return Reason.REPLICA_LOST if replica.exit is None or replica.exit.lost else Reason.REPLICA_KILLED
