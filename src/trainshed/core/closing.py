"""How an attempt ends: makes each kind of Closing, and the status and event once all replicas are gone. Pure.

`core/decide.py`, `core/withhold.py` and `core/standing.py` call it. It never decides whether an attempt ends.
"""

from dataclasses import replace
from datetime import datetime
from typing import assert_never

from trainshed.core.event import Event, Reason, Severity, Waiting
from trainshed.core.job import Closing, Failure, Job, JobState, Outcome, Status, planned_replicas
from trainshed.core.readiness import Readiness
from trainshed.core.replica import Replica
from trainshed.core.restart import STARTS, backoff


def may_become_cancelled(status: Status) -> bool:
    """A cancel wins over waiting, running and retrying, but not over a decided outcome."""
    return status.closing is None or status.closing.outcome is Outcome.RETRY


def cancelled(status: Status, now: datetime) -> Closing:
    since = status.closing.since if status.closing else now
    return Closing(outcome=Outcome.CANCELLED, since=since)


def program_failed(replica: Replica, now: datetime) -> Closing:
    if replica.unstarted:
        times = f" {replica.run + 1} times" if replica.run else ""
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


def interrupted(replica: Replica, now: datetime) -> Closing:
    message = f"{replica.task} {replica.exit}; retries are disabled for this job."
    return _failed(Failure(reason=_why(replica), message=message, task=replica.task), now)


def exhausted(job: Job, replica: Replica, now: datetime) -> Closing:
    rule = job.spec.scheduling.restart
    tries = "attempt" if job.status.attempt == 0 else "attempts"
    message = (
        f"{replica.task} {replica.exit}, after {replica.run} of {rule.replica_restarts} restarts in this "
        f"attempt; all {job.status.attempt + 1} {tries} are used up."
    )
    return _failed(Failure(reason=Reason.RETRIES_EXHAUSTED, message=message, task=replica.task), now)


def retry(replica: Replica, now: datetime) -> Closing:
    failure = Failure(reason=_why(replica), message=f"{replica.task} {replica.exit}.", task=replica.task)
    return Closing(outcome=Outcome.RETRY, since=now, failure=failure)


def unprepared(readiness: Readiness, now: datetime) -> Closing:
    """What the job needs before it can start cannot be prepared."""
    return _failed(
        Failure(reason=Reason.PREPARATION_FAILED, message=readiness.message, verdict=readiness.verdict),
        now,
    )


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
    delay = backoff(job.spec.scheduling.restart, status.attempt)
    why = closing.failure.message if closing.failure else ""
    number = status.attempt + 1
    text = (
        f"{why} Retry {number} of {job.spec.scheduling.restart.job_retries} in {delay.total_seconds():g} s."
    )
    ended = {(r.pool, r.index): r.as_ended(status.attempt) for r in status.replicas}
    fresh = replace(
        status,
        state=JobState.PENDING,
        attempt=number,
        closing=None,
        hang=None,
        waiting=Waiting(reason=Reason.JOB_RETRIED, message=text, remedy="It starts again by itself."),
        replicas=tuple(
            replace(r, not_before=now + delay, previous=ended.get((r.pool, r.index)))
            for r in planned_replicas(job.spec)
        ),
    )
    event = Event(at=now, reason=Reason.JOB_RETRIED, message=text, severity=Severity.WARNING, attempt=number)
    return fresh, event


def final(status: Status, closing: Closing, now: datetime) -> tuple[Status, Event]:
    severity = Severity.INFO
    match closing.outcome:
        case Outcome.SUCCEEDED:
            state, reason, text = JobState.SUCCEEDED, Reason.SUCCEEDED, "The job succeeded."
        case Outcome.CANCELLED:
            state, reason, text = JobState.CANCELLED, Reason.CANCELLED, "The job was cancelled."
        case Outcome.FAILED | Outcome.RETRY:
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


def _why(replica: Replica) -> Reason:
    return Reason.REPLICA_LOST if replica.exit is None or replica.exit.lost else Reason.REPLICA_KILLED
