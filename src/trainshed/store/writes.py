"""SQL for changes.

Each runs inside the writer's transaction. If it raises, all of it is rolled back, and nothing else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, insert, literal_column, select, update
from sqlalchemy.exc import IntegrityError

from trainshed.core.errors import AlreadyExists, Conflict, NotFound
from trainshed.core.event import Event
from trainshed.core.job import Job, JobSpec, Status
from trainshed.core.ledger import account
from trainshed.core.ports import Operation
from trainshed.store import models, reads
from trainshed.store.cache import Decoded
from trainshed.store.codec import dump_plain, dumps, loads
from trainshed.store.prepared import Prepared
from trainshed.store.rows import event_values, interval_values, job_values, operation_values, status_values
from trainshed.store.tables import events, intervals, jobs, operations

_insert_job = Prepared(insert(jobs), jobs.c.keys())
_update_status = Prepared(
    update(jobs)
    .where(jobs.c.id == bindparam("of_job"), jobs.c.version == bindparam("of_version"))
    .values({name: bindparam(name) for name in ("state", "updated_at", "started_at", "ended_at", "status")})
    .values(version=jobs.c.version + literal_column("1"))
)
_update_labels = (
    update(jobs)
    .where(jobs.c.id == bindparam("of_job"), jobs.c.version == bindparam("of_version"))
    .values(labels=bindparam("new_labels"), version=jobs.c.version + literal_column("1"))
)
_delete_job = delete(jobs).where(jobs.c.id == bindparam("of_job"), jobs.c.version == bindparam("of_version"))
_delete_events = delete(events).where(events.c.job_id == bindparam("of_job"))
_insert_operation = insert(operations)
_version = select(jobs.c.version).where(jobs.c.id == bindparam("of_job"))

_earlier = events.alias("earlier")
# The insert finds the next number itself: no second query, and no counter to keep in step.
_next = (
    select(func.coalesce(func.max(_earlier.c.sequence), literal_column("0")) + literal_column("1"))
    .where(_earlier.c.job_id == bindparam("of_job"))
    .scalar_subquery()
)
_insert_event = Prepared(
    insert(events).values(sequence=_next),
    [column.name for column in events.c if column is not events.c.sequence],
)
_insert_interval = Prepared(insert(intervals), intervals.c.keys())


def insert_job(connection: Connection, job: Job, given: Sequence[Event], key: str, decoded: Decoded) -> Job:
    if key:
        earlier = reads.job_by_key(connection, job.project, key, decoded)
        if earlier is not None:
            return _same_request(earlier, job, key)
    try:
        _insert_job.run(connection, job_values(job, key))
    except IntegrityError as error:
        raise AlreadyExists(f"A job with the id {job.id} exists already.") from error
    if job.origin is not None:
        models.take(connection, job)
    _insert_events(connection, job.id, given)
    return job


def update_status(connection: Connection, job: Job, status: Status, given: Sequence[Event]) -> Job:
    status, closed = account(job, status, status.updated_at or job.created_at)
    values = status_values(job, status) | {"of_job": job.id, "of_version": job.version}
    if _update_status.run(connection, values).rowcount != 1:
        raise _changed(connection, job) or Conflict(f"Job {job.id} has been deleted meanwhile.")
    if job.origin is not None:
        models.settle(connection, job, status)
    _insert_interval.run_each(connection, interval_values(job, closed))
    _insert_events(connection, job.id, given)
    return replace(job, status=status, version=job.version + 1)


def update_labels(connection: Connection, job: Job, labels: Mapping[str, str]) -> Job:
    values = {"new_labels": dump_plain(dict(labels)), "of_job": job.id, "of_version": job.version}
    if connection.execute(_update_labels, values).rowcount != 1:
        raise _changed(connection, job) or Conflict(f"Job {job.id} has been deleted meanwhile.")
    return replace(job, labels=dict(labels), version=job.version + 1)


def delete_job(connection: Connection, job: Job, operation: Operation) -> None:
    if not job.is_final:
        raise Conflict(f"Job {job.id} is {job.status.state.value}; only an ended job can be deleted.")
    guard: dict[str, Any] = {"of_job": job.id, "of_version": job.version}
    connection.execute(_delete_events, {"of_job": job.id})
    if connection.execute(_delete_job, guard).rowcount != 1:
        raise _changed(connection, job) or NotFound(f"There is no job {job.name}.")
    try:
        connection.execute(_insert_operation, operation_values(operation))
    except IntegrityError as error:
        raise AlreadyExists(f"An operation {operation.name} exists already.") from error


def _insert_events(connection: Connection, job: str, given: Sequence[Event]) -> None:
    # In order, so each gets the number after the previous one.
    for values in event_values(job, given):
        _insert_event.run(connection, values | {"of_job": job})


def _same_request(earlier: Job, job: Job, key: str) -> Job:
    # Compared as stored: what JSON does not distinguish is no difference.
    stored = loads(JobSpec, dumps(earlier.spec)), loads(JobSpec, dumps(job.spec))
    if earlier.display_name == job.display_name and stored[0] == stored[1]:
        return earlier
    raise AlreadyExists(
        f"The idempotency key {key!r} was used before, for another job "
        f"({earlier.id}, {earlier.display_name!r}). Send the same request with it, or a new key."
    )


def _changed(connection: Connection, job: Job) -> Conflict | None:
    """The conflict with a newer version; None where the job is gone."""
    version = connection.execute(_version, {"of_job": job.id}).scalar()
    if version is None:
        return None
    return Conflict(f"Job {job.id} has changed meanwhile (version {version}, not {job.version}).")
