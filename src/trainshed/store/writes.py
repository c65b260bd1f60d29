"""SQL for changes.

Each runs inside the writer's transaction. If it raises, all of it is rolled back, and nothing else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from trainshed.core.day_use import day_uses
from trainshed.core.errors import AlreadyExists, Conflict, NotFound
from trainshed.core.event import Event
from trainshed.core.jobs.job import Job, JobSpec, Status
from trainshed.core.ledger import account
from trainshed.core.ports import Operation
from trainshed.store import models, notices, reads
from trainshed.store.cache import Decoded
from trainshed.store.codec import dump_plain, dumps, loads
from trainshed.store.connection import SqlConnection, SqlIntegrityError, insert_into
from trainshed.store.day_uses import add_uses
from trainshed.store.rows import event_values, interval_values, job_values, operation_values, status_values
from trainshed.store.tables import DELETED_JOBS, EVENTS, INTERVALS, JOBS, OPERATIONS

_INSERT_JOB = insert_into("jobs", JOBS)
_UPDATE_STATUS = """
    UPDATE jobs SET state = :state, updated_at = :updated_at, started_at = :started_at, ended_at = :ended_at,
        status = :status, version = version + 1
    WHERE id = :of_job AND version = :of_version
"""
_UPDATE_LABELS = """
    UPDATE jobs SET labels = :labels, version = version + 1 WHERE id = :of_job AND version = :of_version
"""
_DELETE_JOB = "DELETE FROM jobs WHERE id = :of_job AND version = :of_version"
_DELETE_EVENTS = "DELETE FROM events WHERE job_id = :of_job"
_INSERT_OPERATION = insert_into("operations", OPERATIONS)
_VERSION = "SELECT version FROM jobs WHERE id = :of_job"
# The insert finds the next number itself: no second query, and no counter to keep in step.
_NEXT = "(SELECT COALESCE(MAX(sequence), 0) + 1 FROM events WHERE job_id = :job_id)"
_INSERT_EVENT = insert_into("events", EVENTS).replace(":sequence", _NEXT)
_INSERT_INTERVAL = insert_into("intervals", INTERVALS)
# Whoever gives ids may give that of a deleted job again: the last one counts.
_INSERT_DELETED = f"""
    {insert_into("deleted_jobs", DELETED_JOBS)}
    ON CONFLICT (id) DO UPDATE SET display_name = excluded.display_name, labels = excluded.labels,
        submitter = excluded.submitter
"""


def insert_job(
    connection: SqlConnection, job: Job, given: Sequence[Event], key: str, decoded: Decoded
) -> Job:
    if key:
        earlier = reads.job_by_key(connection, job.project, key, decoded)
        if earlier is not None:
            return _same_request(earlier, job, key)
    try:
        connection.execute(_INSERT_JOB, job_values(job, key))
    except SqlIntegrityError as error:
        raise AlreadyExists(f"A job with the id {job.id} exists already.") from error
    if job.origin is not None:
        models.take(connection, job)
    _insert_events(connection, job.id, given)
    return job


def update_status(
    connection: SqlConnection,
    job: Job,
    status: Status,
    given: Sequence[Event],
    queued: Sequence[notices.QueuedNotice] = (),
) -> Job:
    status, closed = account(job, status, status.updated_at or job.created_at)
    values = status_values(job, status) | {"of_job": job.id, "of_version": job.version}
    if connection.execute(_UPDATE_STATUS, values) != 1:
        raise _changed(connection, job) or Conflict(f"Job {job.id} has been deleted meanwhile.")
    if job.origin is not None:
        models.settle(connection, job, status)
    connection.execute_each(_INSERT_INTERVAL, interval_values(job, closed))
    add_uses(connection, day_uses(job, status, closed))
    _insert_events(connection, job.id, given)
    if queued:
        notices.insert(connection, queued)
    return replace(job, status=status, version=job.version + 1)


def update_labels(connection: SqlConnection, job: Job, labels: Mapping[str, str]) -> Job:
    values = {"labels": dump_plain(dict(labels)), "of_job": job.id, "of_version": job.version}
    if connection.execute(_UPDATE_LABELS, values) != 1:
        raise _changed(connection, job) or Conflict(f"Job {job.id} has been deleted meanwhile.")
    return replace(job, labels=dict(labels), version=job.version + 1)


def delete_job(connection: SqlConnection, job: Job, operation: Operation) -> None:
    if not job.is_final:
        raise Conflict(f"Job {job.id} is {job.status.state.value}; only an ended job can be deleted.")
    guard: dict[str, Any] = {"of_job": job.id, "of_version": job.version}
    connection.execute(_DELETE_EVENTS, {"of_job": job.id})
    if connection.execute(_DELETE_JOB, guard) != 1:
        raise _changed(connection, job) or NotFound(f"There is no job {job.name}.")
    try:
        connection.execute(_INSERT_OPERATION, operation_values(operation))
    except SqlIntegrityError as error:
        raise AlreadyExists(f"An operation {operation.name} exists already.") from error
    connection.execute(
        _INSERT_DELETED,
        {
            "id": job.id,
            "display_name": job.display_name,
            "labels": dump_plain(dict(job.labels)),
            "submitter": job.submitter or None,
        },
    )


def _insert_events(connection: SqlConnection, job: str, given: Sequence[Event]) -> None:
    # In order, so each gets the number after the previous one.
    for values in event_values(job, given):
        connection.execute(_INSERT_EVENT, values)


def _same_request(earlier: Job, job: Job, key: str) -> Job:
    # Compared as stored: what JSON does not distinguish is no difference.
    stored = loads(JobSpec, dumps(earlier.spec)), loads(JobSpec, dumps(job.spec))
    if earlier.display_name == job.display_name and stored[0] == stored[1]:
        return earlier
    raise AlreadyExists(
        f"The idempotency key {key!r} was used before, for another job "
        f"({earlier.id}, {earlier.display_name!r}). Send the same request with it, or a new key."
    )


def _changed(connection: SqlConnection, job: Job) -> Conflict | None:
    """The conflict with a newer version; None where the job is gone."""
    row = connection.row(_VERSION, {"of_job": job.id})
    if row is None:
        return None
    return Conflict(f"Job {job.id} has changed meanwhile (version {row[0]}, not {job.version}).")
