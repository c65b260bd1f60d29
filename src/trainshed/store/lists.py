"""SQL of lists of jobs: pages, counts, projects, and values to complete.

`sql.py` calls it on a reader's connection. A page is found by narrow indexes first; only its own rows are
read whole. SQLite has no statistics here, so the index that a search walks is named to it.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, cast

from trainshed.core.jobs.job import Job, JobState
from trainshed.core.ledger import ResourceTime
from trainshed.core.ports import JobPage
from trainshed.core.query import CUSTOM_JOB, JobQuery, QueryField, is_searching
from trainshed.store.cache import Decoded
from trainshed.store.conditions import to_sql
from trainshed.store.connection import SqlConnection
from trainshed.store.rows import JOB_COLUMNS, to_job
from trainshed.store.unreadable import Row, read_rows

_ORDERS: Mapping[QueryField, str] = {
    QueryField.CREATED: "created_at",
    QueryField.UPDATED: "updated_at",
    # A missing time must compare with a cursor, and alike in both databases.
    QueryField.STARTED: "COALESCE(started_at, '')",
    QueryField.ENDED: "COALESCE(ended_at, '')",
    QueryField.DISPLAY_NAME: "display_name",
    QueryField.STATE: "state",
}
_COMPLETED: Mapping[QueryField, str] = {
    QueryField.DISPLAY_NAME: "display_name",
    QueryField.STATE: "state",
    QueryField.KIND: f"COALESCE(kind, '{CUSTOM_JOB}')",
    QueryField.SUBMITTER: "COALESCE(submitter, '')",
    QueryField.PROJECT: "project",
    QueryField.LABEL: "labels",
}
_STATES = tuple(JobState)
# For a search, which meets jobs in no order of states: grouping would sort them.
_PER_STATE = ", ".join(f"COUNT(*) FILTER (WHERE state = '{state.value}')" for state in _STATES)
_PROJECTS = "SELECT state, project, COUNT(*) FROM jobs GROUP BY state, project"
_SECONDS = {
    "sqlite": "(julianday(to_at) - julianday(from_at)) * 86400",
    "postgresql": "EXTRACT(EPOCH FROM CAST(to_at AS TIMESTAMPTZ) - CAST(from_at AS TIMESTAMPTZ))",
}


def page(connection: SqlConnection, query: JobQuery, decoded: Decoded) -> JobPage:
    """One page. The cursor is the position of its last row, so new or deleted jobs do not shift it."""
    conditions, values = _conditions(query, connection.dialect)
    ordered_by = _ORDERS[query.order.field]
    sign, beyond = (" DESC", "<") if query.order.is_descending else ("", ">")
    if query.cursor is not None:
        conditions += f" AND ({ordered_by}, id) {beyond} (:cursor_value, :cursor_id)"
        values["cursor_value"], values["cursor_id"] = query.cursor
    order = f"ORDER BY {ordered_by}{sign}, id{sign}"
    chosen = f"SELECT id FROM jobs{_walked(query, connection.dialect)} WHERE {conditions} {order} LIMIT :most"
    text = f"SELECT {JOB_COLUMNS}, {ordered_by} FROM jobs WHERE id IN ({chosen}) {order}"
    rows = connection.rows(text, {**values, "most": query.limit + 1})
    jobs = read_rows(rows[: query.limit], _to_job(decoded), lambda row: f"job {row[0]}")
    if len(rows) <= query.limit or not query.limit:
        return JobPage(jobs=jobs)
    last = rows[query.limit - 1]
    return JobPage(jobs=jobs, next_cursor=(str(last[-1]), str(last[0])))


def count(connection: SqlConnection, query: JobQuery) -> Mapping[JobState, int]:
    conditions, values = _conditions(query, connection.dialect, is_counting=True)
    if query.where is None:
        rows = connection.rows(f"SELECT state, COUNT(*) FROM jobs WHERE {conditions} GROUP BY state", values)
        return _by_state(rows)
    walked = _walked(query, connection.dialect)
    ((*numbers,),) = connection.rows(f"SELECT {_PER_STATE} FROM jobs{walked} WHERE {conditions}", values)
    return dict(zip(_STATES, numbers, strict=True))


def projects(connection: SqlConnection) -> Mapping[str, Mapping[JobState, int]]:
    counted: dict[str, list[tuple[str, int]]] = {}
    for state, project, number in connection.rows(_PROJECTS):
        counted.setdefault(str(project), []).append((state, number))
    return {project: _by_state(counted[project]) for project in sorted(counted)}


def recent_values(
    connection: SqlConnection, query: JobQuery, field: QueryField, most: int
) -> Mapping[str, int]:
    conditions, values = _conditions(query, connection.dialect)
    walked = _walked(query, connection.dialect)
    newest = f"WHERE {conditions} ORDER BY created_at DESC, id DESC LIMIT :most"
    rows = connection.rows(f"SELECT {_COMPLETED[field]} FROM jobs{walked} {newest}", {**values, "most": most})
    if field is not QueryField.LABEL:
        return Counter(str(value) for (value,) in rows if value)
    counted: Counter[str] = Counter()
    for text, number in Counter(str(value) for (value,) in rows).items():
        for key, value in _labels(text).items():
            counted[key] += number
            counted[f"{key}={value}"] += number
    return counted


def resource_times(connection: SqlConnection, jobs: Collection[str]) -> Mapping[str, ResourceTime]:
    values = {f"job_{number}": job for number, job in enumerate(jobs)}
    if not values:
        return {}
    seconds = _SECONDS[connection.dialect]
    among = ", ".join(f":{name}" for name in values)
    text = f"""
        SELECT job_id, SUM({seconds} * cpus), SUM({seconds} * gpus) FROM intervals
        WHERE job_id IN ({among}) AND node <> '' GROUP BY job_id
    """
    return {
        str(job): ResourceTime(float(cpu or 0), float(gpu or 0))
        for job, cpu, gpu in connection.rows(text, values)
    }


def _conditions(query: JobQuery, dialect: str, *, is_counting: bool = False) -> tuple[str, dict[str, Any]]:
    """The conditions of the query, without the page, and their values."""
    values: dict[str, Any] = {}
    conditions = ["TRUE"]
    exact = {
        "project": "" if query.project == "-" else query.project,
        "location": "" if query.location == "-" else query.location,
        "kind": query.kind,
        "owner": "" if query.owner is None else str(query.owner),
    }
    # The plus keeps SQLite from reading whole rows of the project, where another index has all that is asked.
    has_better = is_counting or query.order.field is not QueryField.CREATED
    plus = {"project": "+"} if dialect == "sqlite" and has_better else {}
    for column, value in exact.items():
        if value:
            conditions.append(f"{plus.get(column, '')}{column} = :{column}")
            values[column] = value
    if query.where is not None:
        conditions.append(to_sql(query.where, dialect, values))
    return " AND ".join(conditions), values


def _by_state(rows: Iterable[tuple[Any, ...]]) -> Mapping[JobState, int]:
    """Every state is named; that of a damaged row is left out."""
    numbers = dict(rows)
    return {state: numbers.get(state.value, 0) for state in _STATES}


def _walked(query: JobQuery, dialect: str) -> str:
    """The index for SQLite to walk; empty where it chooses well by itself."""
    searches = query.where is not None and is_searching(query.where)
    return " INDEXED BY jobs_listed" if searches and dialect == "sqlite" else ""


def _to_job(decoded: Decoded) -> Callable[[Row], Job]:
    return lambda row: to_job(row[:-1], decoded)


def _labels(text: str) -> Mapping[str, object]:
    """Empty for a damaged row."""
    try:
        labels: object = json.loads(text)
    except ValueError:
        return {}
    return cast(dict[str, object], labels) if isinstance(labels, dict) else {}
