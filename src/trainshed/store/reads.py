"""SQL queries.

Each runs on a reader's connection and returns core values; none changes anything.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, bindparam, func, select, tuple_

from trainshed.core.event import Event
from trainshed.core.job import FINAL, Job, JobState
from trainshed.core.ledger import Interval
from trainshed.core.ports import JobPage, Operation
from trainshed.core.query import JobQuery
from trainshed.store.cache import Decoded
from trainshed.store.codec import write_time
from trainshed.store.conditions import to_sql
from trainshed.store.prepared import Prepared
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
from trainshed.store.tables import events, intervals, jobs, operations

_ACTIVE = [state.value for state in JobState if state not in FINAL]

_job_by_id = Prepared(select(*JOB_COLUMNS).where(jobs.c.id == bindparam("job")))
_job_by_key = Prepared(
    select(*JOB_COLUMNS).where(
        jobs.c.project == bindparam("project"), jobs.c.idempotency_key == bindparam("key")
    )
)
_active = select(*JOB_COLUMNS).where(jobs.c.state.in_(_ACTIVE)).order_by(jobs.c.created_at, jobs.c.id)
_events = (
    select(*EVENT_COLUMNS)
    .where(events.c.job_id == bindparam("job"), events.c.sequence > bindparam("after"))
    .order_by(events.c.sequence)
    .limit(bindparam("most"))
)
_intervals = (
    select(*INTERVAL_COLUMNS)
    .where(
        intervals.c.job_id == bindparam("job"),
        intervals.c.project == bindparam("project"),
        intervals.c.location == bindparam("location"),
    )
    .order_by(*(intervals.c[name] for name in ("attempt", "pool", "replica", "run", "from_at", "to_at")))
)
_operation = select(*OPERATION_COLUMNS).where(operations.c.name == bindparam("name"))
_operations = (
    select(*OPERATION_COLUMNS)
    .where(
        operations.c.name > bindparam("after"),
        operations.c.name >= bindparam("first"),
        operations.c.name < bindparam("end"),
    )
    .order_by(operations.c.name)
    .limit(bindparam("most"))
)
_deleted = select(operations.c.target).where(operations.c.kind == "delete")
_codes = select(jobs.c.code).where(jobs.c.code.is_not(None)).distinct()
_counts = select(jobs.c.state, func.count()).group_by(jobs.c.state)


def job_by_id(connection: Connection, job: str, decoded: Decoded) -> Job | None:
    row = _job_by_id.run(connection, {"job": job}).fetchone()
    return None if row is None else to_job(row, decoded)


def job_by_key(connection: Connection, project: str, key: str, decoded: Decoded) -> Job | None:
    row = _job_by_key.run(connection, {"project": project, "key": key}).fetchone()
    return None if row is None else to_job(row, decoded)


def active(connection: Connection, decoded: Decoded) -> tuple[Job, ...]:
    return tuple(to_job(row, decoded) for row in connection.execute(_active).all())


def page(connection: Connection, query: JobQuery, decoded: Decoded) -> JobPage:
    """One page. The cursor is the position of its last job, so new or deleted jobs do not shift it."""
    rows = connection.execute(_page_statement(query, connection.dialect.name)).all()
    jobs = tuple(to_job(row, decoded) for row in rows[: query.limit])
    if len(rows) <= query.limit or not jobs:
        return JobPage(jobs=jobs)
    last = jobs[-1]
    return JobPage(jobs=jobs, next_cursor=(write_time(last.created_at), last.id))


def count(connection: Connection, query: JobQuery) -> int:
    statement = select(func.count()).where(*_meant(query, connection.dialect.name))
    return connection.execute(statement).scalar_one()


def _meant(query: JobQuery, dialect: str) -> Iterator[ColumnElement[bool]]:
    """The conditions of the query, without the page."""
    yield jobs.c.project == query.project
    if query.location != "-":
        yield jobs.c.location == query.location
    if query.kind:
        yield jobs.c.kind == query.kind
    if query.owner is not None:
        yield jobs.c.owner == str(query.owner)
    if query.where is not None:
        yield to_sql(query.where, dialect)


def _page_statement(query: JobQuery, dialect: str) -> Select[*tuple[Any, ...]]:
    statement = select(*JOB_COLUMNS).where(*_meant(query, dialect))
    place = tuple_(jobs.c.created_at, jobs.c.id)
    if query.oldest_first:
        statement = statement.order_by(jobs.c.created_at, jobs.c.id)
        if query.cursor is not None:
            statement = statement.where(place > tuple_(*query.cursor))
    else:
        statement = statement.order_by(jobs.c.created_at.desc(), jobs.c.id.desc())
        if query.cursor is not None:
            statement = statement.where(place < tuple_(*query.cursor))
    return statement.limit(query.limit + 1)


def events_of(connection: Connection, job: str, after: int, limit: int) -> tuple[Event, ...]:
    rows = connection.execute(_events, {"job": job, "after": after, "most": limit}).all()
    return tuple(map(to_event, rows))


def intervals_of(connection: Connection, project: str, location: str, job: str) -> tuple[Interval, ...]:
    values = {"project": project, "location": location, "job": job}
    return tuple(map(to_interval, connection.execute(_intervals, values).all()))


def operation_by_name(connection: Connection, name: str) -> Operation | None:
    row = connection.execute(_operation, {"name": name}).one_or_none()
    return None if row is None else to_operation(row)


def operations_of(connection: Connection, project: str, limit: int, after: str) -> tuple[Operation, ...]:
    """By a range of names, not a pattern: a project's name may contain wildcard characters."""
    first = f"projects/{project}/"
    values = {"first": first, "end": f"{first[:-1]}0", "after": after, "most": limit}
    return tuple(map(to_operation, connection.execute(_operations, values).all()))


def deleted(connection: Connection, among: frozenset[str]) -> frozenset[str]:
    targets = connection.execute(_deleted).scalars()
    return among.intersection(str(target).rpartition("/")[2] for target in targets)


def codes(connection: Connection) -> frozenset[str]:
    return frozenset(connection.execute(_codes).scalars())


def counts(connection: Connection) -> Mapping[JobState, int]:
    """How many jobs of each state; every state is named."""
    result = dict.fromkeys(JobState, 0)
    for state, count in connection.execute(_counts).all():
        result[JobState(state)] = count
    return result
