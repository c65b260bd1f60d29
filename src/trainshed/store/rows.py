"""Converts rows to core values and back. It contains no SQL.

Reading raises whatever comes of it where a row is damaged: `unreadable.py` has the calls that name the row.
Decoded jobs are kept in `Decoded` by id and version, so that listing the same page again decodes nothing.
"""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from trainshed.core.event import Event, Reason, Severity
from trainshed.core.jobs.job import Job, JobSpec, Owner, Status
from trainshed.core.jobs.origin import Origin
from trainshed.core.jobs.replica import Exit
from trainshed.core.ledger import Interval, TimeClass
from trainshed.core.names import ReplicaName, RunKey
from trainshed.core.ports import Operation
from trainshed.store.cache import Decoded
from trainshed.store.codec import dump_plain, dumps, loads, read_time, write_time
from trainshed.store.tables import EVENTS, INTERVALS

JOB_COLUMNS = (
    "id, version, project, location, display_name, created_at, labels, spec, status, extras, owner, kind, "
    "submitter"
)
SHARED = 4096  # characters; larger specs are not kept for sharing
EVENT_COLUMNS = ", ".join(name for name in EVENTS if name != "job_id")
INTERVAL_COLUMNS = ", ".join(name for name in INTERVALS if name not in ("project", "location"))
OPERATION_COLUMNS = "name, kind, target, created_at"


def job_values(job: Job, idempotency_key: str) -> dict[str, Any]:
    """All columns of a new job."""
    return {
        "id": job.id,
        "project": job.project,
        "location": job.location,
        "display_name": job.display_name,
        "created_at": write_time(job.created_at),
        "labels": dump_plain(dict(job.labels)),
        "spec": dumps(job.spec),
        "extras": dump_plain(_with_record(job)),
        "version": 1,
        "idempotency_key": idempotency_key or None,
        "code": job.spec.code or None,
        "kind": job.kind or None,
        "owner": None if job.owner is None else str(job.owner),
        "submitter": job.submitter or None,
        **status_values(job, job.status),
    }


def status_values(job: Job, status: Status) -> dict[str, Any]:
    """The columns that change with the status."""
    return {
        "state": status.state.value,
        "updated_at": write_time(status.updated_at or job.created_at),
        "started_at": write_time(status.started_at) if status.started_at else None,
        "ended_at": write_time(status.ended_at) if status.ended_at else None,
        "status": dumps(status),
    }


def event_values(job: str, given: Sequence[Event]) -> list[dict[str, Any]]:
    """The columns of events, without the sequence: the database gives that."""
    return [
        {
            "job_id": job,
            "at": write_time(event.at),
            "reason": event.reason.value,
            "message": _storable(event.message),
            "severity": event.severity.value,
            "attempt": event.attempt,
            "task": event.task,
        }
        for event in given
    ]


def interval_values(job: Job, closed: Sequence[Interval]) -> list[dict[str, Any]]:
    return [
        {
            "job_id": job.id,
            "attempt": interval.key.name.attempt,
            "pool": interval.key.name.pool,
            "replica": interval.key.name.index,
            "run": interval.key.run,
            "spent_on": interval.spent_on.value,
            "from_at": write_time(interval.from_at),
            "to_at": write_time(interval.to_at),
            "project": job.project,
            "location": job.location,
            "node": interval.node,
            "cpus": interval.cpus,
            "memory": interval.memory,
            "gpus": interval.gpus,
            "devices": json.dumps(interval.devices) if interval.devices else "[]",
            "exit": None if interval.exit is None else dumps(interval.exit),
        }
        for interval in closed
    ]


def operation_values(operation: Operation) -> dict[str, Any]:
    return {
        "name": operation.name,
        "kind": operation.kind,
        "target": operation.target,
        "created_at": write_time(operation.created_at),
    }


@lru_cache(maxsize=256)
def _spec(text: str) -> JobSpec:
    """Equal specs share one object in memory. That is safe: values are frozen."""
    return loads(JobSpec, text)


def to_job(row: Sequence[Any], decoded: Decoded) -> Job:
    """A row of JOB_COLUMNS as a job."""
    known = decoded.get(row[0], row[1])
    if known is not None:
        return known
    identity, version, project, location, display_name, created_at, labels, spec, status, *rest = row
    stored_extras, owner, kind, submitter = rest
    extras, origin = _extras_and_origin(stored_extras, kind)
    job = Job(
        id=identity,
        project=project,
        location=location,
        display_name=display_name,
        created_at=read_time(created_at),
        labels=_plain(labels),
        spec=_spec(spec) if len(spec) < SHARED else loads(JobSpec, spec),
        status=loads(Status, status),
        version=version,
        extras=extras,
        owner=None if owner is None else Owner.parse(owner),
        origin=origin,
        submitter=submitter or "",
    )
    if origin is not None and origin.kind in decoded.origins:
        job = decoded.origins[origin.kind](job)
    decoded.put(job)
    return job


def _with_record(job: Job) -> dict[str, object]:
    """The extras, and the record of the origin under its kind."""
    return {**job.extras, **({job.origin.kind: job.origin.record} if job.origin else {})}


def _extras_and_origin(text: str, kind: str | None) -> tuple[Mapping[str, Any], Origin | None]:
    """What `_with_record` wrote."""
    extras = _plain(text)
    if kind is None:
        return extras, None
    rest = {name: value for name, value in extras.items() if name != kind}
    return rest, Origin(kind=kind, record=extras.get(kind) or {})


def to_event(row: Sequence[Any]) -> Event:
    """A row of EVENT_COLUMNS as an event."""
    sequence, at, reason, message, severity, attempt, task = row
    return Event(
        at=read_time(at),
        reason=Reason(reason),
        message=message,
        severity=Severity(severity),
        attempt=attempt,
        task=task,
        sequence=sequence,
    )


def to_interval(row: Sequence[Any]) -> Interval:
    """A row of INTERVAL_COLUMNS as an interval."""
    job, attempt, pool, replica, run, spent_on, from_at, to_at, node, cpus, memory, gpus, devices, exit = row
    return Interval(
        key=RunKey(ReplicaName(job, attempt, pool, replica), run),
        spent_on=TimeClass(spent_on),
        from_at=read_time(from_at),
        to_at=read_time(to_at),
        node=node,
        cpus=cpus,
        memory=memory,
        gpus=gpus,
        devices=tuple(json.loads(devices)),
        exit=None if exit is None else loads(Exit, exit),
    )


def to_operation(row: Sequence[Any]) -> Operation:
    """A row of OPERATION_COLUMNS as an operation."""
    name, kind, target, created_at = row
    return Operation(name=name, kind=kind, target=target, created_at=read_time(created_at))


def _plain(text: str) -> Mapping[str, Any]:
    # Most jobs have neither labels nor extras: skip the parse.
    value: object = {} if text == "{}" else json.loads(text)
    if not isinstance(value, dict):
        raise ValueError(f"{text[:20]} is not a JSON object")
    return cast(dict[str, Any], value)


def _storable(text: str) -> str:
    """What every database takes: no NUL (PostgreSQL refuses it), no lone surrogates (they are not UTF-8)."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode("utf-8")
