"""Replicas of a failed job that are held for inspection: which, until when, and the event about it. Pure.

`core/jobs/decide.py` and `service/shells.py` call it. The job has failed; only its end waits. Its programs
are dead, but their files, variables, mounts, network and limits stay, and a shell can be opened there. A
cancel ends it.
"""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from trainshed.core.event import Event, Reason, Severity, Waiting
from trainshed.core.jobs.job import Job, Outcome, Status
from trainshed.core.jobs.replica import Observation, Replica, Sight
from trainshed.core.names import RunKey


def held_until(job: Job, status: Status) -> datetime | None:
    """When the hold ends; None where nothing is held."""
    closing, length = status.closing, job.spec.scheduling.hold
    if not length or closing is None or closing.outcome is not Outcome.FAILED or status.cancel_asked_at:
        return None
    return closing.since + length


def kept_runs(
    job: Job, status: Status, runs: Mapping[RunKey, Observation], now: datetime
) -> frozenset[RunKey]:
    until = held_until(job, status)
    if until is None or now >= until:
        return frozenset()
    return frozenset(
        key for key, seen in runs.items() if seen.sight is Sight.HELD and key.name.attempt == status.attempt
    )


def gone_at(job: Job, replica: Replica, runs: Collection[RunKey], patience: timedelta) -> datetime | None:
    """From when on a run that is not seen counts as gone; None where there is nothing to wait for.

    A backend may be late by `patience`: a replica that may be held was there when it failed, whatever the job
    ends with.
    """
    if replica.missing_since is not None:
        return replica.missing_since + patience
    may_be_held = bool(job.spec.scheduling.hold) and replica.exit is not None and not replica.exit.ok
    if may_be_held and replica.noticed_at is not None and job.key(replica) not in runs:
        return replica.noticed_at + patience
    return None


def waiting(job: Job, keys: Collection[RunKey], until: datetime) -> Waiting:
    names = sorted(key.name.task for key in keys)
    some = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    be = "is" if len(names) == 1 else "are"
    return Waiting(
        reason=Reason.HELD,
        message=f"The job has failed; {some} {be} kept for a look until {until:%H:%M:%S} UTC.",
        remedy=f"Look inside: trainshed shell {job.id} {names[0]}; end it now: trainshed cancel {job.id}",
    )


def event(job: Job, status: Status, waiting: Waiting, now: datetime) -> Event:
    failure = status.closing.failure if status.closing else None
    return Event(
        at=now,
        reason=Reason.HELD,
        message=f"{failure.message if failure else ''} {waiting.message} {waiting.remedy}".strip(),
        severity=Severity.WARNING,
        attempt=status.attempt,
        task=failure.task if failure else "",
    )
