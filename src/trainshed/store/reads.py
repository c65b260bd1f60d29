"""SQL queries.

Each runs on a reader's connection and returns core values; none changes anything. Lists leave out a damaged
row; who asks for it gets Unavailable with its name (`unreadable.py`).
"""

from collections.abc import Callable, Iterable, Mapping

from trainshed.core.event import Event
from trainshed.core.jobs.job import FINAL, Job, JobState
from trainshed.core.ledger import Interval
from trainshed.core.ports import Operation
from trainshed.store.cache import Decoded
from trainshed.store.connection import SqlConnection
from trainshed.store.rows import (
    EVENT_COLUMNS,
    INTERVAL_COLUMNS,
    JOB_COLUMNS,
    OPERATION_COLUMNS,
    to_event,
    to_interval,
    to_job,
    to_operation,
)
from trainshed.store.unreadable import Row, read_row, read_rows

_STATES = frozenset(state.value for state in JobState)
_ACTIVE = ", ".join(f"'{state.value}'" for state in JobState if state not in FINAL)

_JOBS = f"SELECT {JOB_COLUMNS} FROM jobs"
_JOB_BY_ID = f"{_JOBS} WHERE id = :job"
_JOB_BY_KEY = f"{_JOBS} WHERE project = :project AND idempotency_key = :key"
_ACTIVE_JOBS = f"{_JOBS} WHERE state IN ({_ACTIVE}) ORDER BY created_at, id"
_EVENTS = f"""
    SELECT {EVENT_COLUMNS} FROM events
    WHERE job_id = :job AND sequence > :after ORDER BY sequence LIMIT :most
"""
_INTERVALS = f"""
    SELECT {INTERVAL_COLUMNS} FROM intervals
    WHERE job_id = :job AND project = :project AND location = :location
    ORDER BY attempt, pool, replica, run, from_at, to_at
"""
_OPERATIONS = f"SELECT {OPERATION_COLUMNS} FROM operations"
_OPERATION = f"{_OPERATIONS} WHERE name = :name"
_OPERATIONS_BETWEEN = f"""
    {_OPERATIONS} WHERE name > :after AND name >= :first AND name < :end ORDER BY name LIMIT :most
"""
_DELETED = "SELECT target FROM operations WHERE kind = 'delete'"
_CODES = "SELECT DISTINCT code FROM jobs WHERE code IS NOT NULL"
_COUNTS = "SELECT state, COUNT(*) FROM jobs GROUP BY state"


def job_by_id(connection: SqlConnection, job: str, decoded: Decoded) -> Job | None:
    row = connection.row(_JOB_BY_ID, {"job": job})
    return None if row is None else read_row(row, _to_job(decoded), _name_of_job)


def jobs_by_ids(connection: SqlConnection, jobs: Iterable[str], decoded: Decoded) -> tuple[Job, ...]:
    rows = (connection.row(_JOB_BY_ID, {"job": job}) for job in jobs)
    return read_rows((row for row in rows if row is not None), _to_job(decoded), _name_of_job)


def job_by_key(connection: SqlConnection, project: str, key: str, decoded: Decoded) -> Job | None:
    row = connection.row(_JOB_BY_KEY, {"project": project, "key": key})
    return None if row is None else read_row(row, _to_job(decoded), _name_of_job)


def active(connection: SqlConnection, decoded: Decoded) -> tuple[Job, ...]:
    return read_rows(connection.rows(_ACTIVE_JOBS), _to_job(decoded), _name_of_job)


def events_of(connection: SqlConnection, job: str, after: int, limit: int) -> tuple[Event, ...]:
    values = {"job": job, "after": after, "most": limit}
    return read_rows(connection.rows(_EVENTS, values), to_event, lambda row: f"event {row[0]} of job {job}")


def intervals_of(connection: SqlConnection, project: str, location: str, job: str) -> tuple[Interval, ...]:
    values = {"project": project, "location": location, "job": job}
    return read_rows(connection.rows(_INTERVALS, values), to_interval, lambda _: f"an interval of job {job}")


def operation_by_name(connection: SqlConnection, name: str) -> Operation | None:
    row = connection.row(_OPERATION, {"name": name})
    return None if row is None else read_row(row, to_operation, _name_of_operation)


def operations_of(connection: SqlConnection, project: str, limit: int, after: str) -> tuple[Operation, ...]:
    """By a range of names, not a pattern: a project's name may contain wildcard characters."""
    first = f"projects/{project}/"
    values = {"first": first, "end": f"{first[:-1]}0", "after": after, "most": limit}
    return read_rows(connection.rows(_OPERATIONS_BETWEEN, values), to_operation, _name_of_operation)


def deleted(connection: SqlConnection, among: frozenset[str]) -> frozenset[str]:
    targets = connection.rows(_DELETED)
    return among.intersection(str(target).rpartition("/")[2] for (target,) in targets)


def codes(connection: SqlConnection) -> frozenset[str]:
    return frozenset(code for (code,) in connection.rows(_CODES))


def counts(connection: SqlConnection) -> Mapping[JobState, int]:
    """How many jobs of each state; every state is named."""
    result = dict.fromkeys(JobState, 0)
    for state, count in connection.rows(_COUNTS):
        if state in _STATES:  # else the row is damaged
            result[JobState(state)] = count
    return result


def _to_job(decoded: Decoded) -> Callable[[Row], Job]:
    return lambda row: to_job(row, decoded)


def _name_of_job(row: Row) -> str:
    return f"job {row[0]}"


def _name_of_operation(row: Row) -> str:
    return f"operation {row[0]}"
