"""The start of an attempt: which replicas have begun, what holds up the others, and for how long. Pure.

`core/jobs/decide.py` calls it with what it has taken in. A job is PENDING until every replica of the attempt
has been seen once, and RUNNING from then on.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from trainshed.core.event import Event, Reason, Severity, Waiting
from trainshed.core.jobs import closing as closings
from trainshed.core.jobs.job import Closing, JobState, Status
from trainshed.core.jobs.replica import Observation, Phase, Sight
from trainshed.core.obstacle import Obstacle, stage, waiting_for

_REMEDY = "The others start by themselves."


def mark_running(
    before: Status, status: Status, seen: Iterable[Observation], now: datetime
) -> tuple[Status, tuple[Event, ...], Closing | None]:
    """The status with what its start has come to; the end of the job where that makes no progress.

    `before` is the status as stored, `status` has what was seen since.
    """
    seen = [item for item in seen if item.key.name.attempt == status.attempt]
    unseen, total = _unseen(status), len(status.replicas)
    if unseen and (obstacle := _obstacle(status, seen)) is not None:
        return _hindered(before, status, obstacle, now)
    if status.state is not JobState.PENDING:  # a waiting reason from a failed restart no longer holds
        return (status if unseen or status.waiting is None else replace(status, waiting=None)), (), None
    if unseen:
        message = f"{total - unseen} of {total} replicas have started."
        waiting = Waiting(reason=Reason.STARTING, message=message, remedy=_REMEDY)
        refused = next((r for r in status.replicas if r.unstarted), None)
        if refused is not None:
            waiting = closings.unstarted(refused)
        if status.waiting is None or status.waiting.reason is not waiting.reason:
            return replace(status, waiting=waiting), (), None
        return status, (), None
    status = replace(status, state=JobState.RUNNING, waiting=None, started_at=_started_at(status, now))
    many = "The replica runs." if total == 1 else f"All {total} replicas run."
    notes = dict.fromkeys(item.note for item in seen if item.note)
    message = " ".join((many, *notes))
    return status, (Event(at=now, reason=Reason.RUNNING, message=message, attempt=status.attempt),), None


def looks_again_at(status: Status, seen: Iterable[Observation]) -> datetime | None:
    """When a job that is held up is to be looked at again at the latest."""
    obstacle = _obstacle(status, seen)
    if obstacle is None or status.waiting is None:
        return None
    return obstacle.gives_up_at(status.waiting.since)


def _hindered(
    before: Status, status: Status, obstacle: Obstacle, now: datetime
) -> tuple[Status, tuple[Event, ...], Closing | None]:
    unseen, total = _unseen(status), len(status.replicas)
    words = f"{total - unseen} of {total} replicas have started."
    waiting = waiting_for(obstacle, status.waiting, now, words=words, progress=unseen < _unseen(before))
    events: tuple[Event, ...] = ()
    is_new = status.waiting is None or status.waiting.reason is not obstacle.reason
    if is_new and obstacle.reason is not Reason.STARTING:
        attempt, severity = status.attempt, Severity.WARNING
        events = (
            Event(
                at=now, reason=obstacle.reason, message=obstacle.message, severity=severity, attempt=attempt
            ),
        )
    end = obstacle.gives_up_at(waiting.since)
    closing = closings.stuck(obstacle, now) if end is not None and now >= end else None
    return replace(status, waiting=waiting), events, closing


def _obstacle(status: Status, seen: Iterable[Observation]) -> Obstacle | None:
    """Of those that hold up replicas, the one that is furthest from a start."""
    obstacles = [
        (stage(item.obstacle.reason), item.obstacle.reason is Reason.STARTING, str(item.key), item.obstacle)
        for item in seen
        if item.sight is Sight.STARTING and item.obstacle is not None
        if item.key.name.attempt == status.attempt
    ]
    return min(obstacles)[-1] if obstacles else None


def _unseen(status: Status) -> int:
    return sum(r.phase is Phase.PLANNED or bool(r.unstarted) for r in status.replicas)


def _started_at(status: Status, now: datetime) -> datetime:
    """When the last replica started, by the backend's clock, limited to the times of our own clock."""
    starts = [r.started_at for r in status.replicas if r.started_at is not None]
    earliest = status.admitted_at or now
    return status.started_at or min(now, max([earliest, *starts]))
