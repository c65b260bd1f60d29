"""SQL of the sums by day: `writes.py` adds to them, `sql.py` reads them. See `core/day_use.py`.

A question reads the rows of the days it asks for, by the primary key, or those of one job, by an index. Where
no job matters it reads the sums of all jobs together, which are few.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date
from typing import Any

from trainshed.core.day_use import DayUse, JobUses, UseField, UseQuery
from trainshed.core.ledger import TimeClass
from trainshed.store.conditions import label_value
from trainshed.store.connection import SqlConnection, insert_into
from trainshed.store.tables import DAY_TOTALS, DAY_USES
from trainshed.store.unreadable import Row, read_rows


def _add_to(table: str, columns: Sequence[str]) -> str:
    return f"""
        {insert_into(table, columns)}
        ON CONFLICT ({", ".join(columns[:-1])}) DO UPDATE SET micros = {table}.micros + excluded.micros
    """


ADD_USE = _add_to("day_uses", DAY_USES)
_ADD_TOTAL = _add_to("day_totals", DAY_TOTALS)
_ALWAYS_APART = ("spent_on", "machine_type", "cpus", "memory", "gpus", "accelerator", "is_spot")
_COLUMNS = {
    UseField.DAY: "day",
    UseField.PROJECT: "project",
    UseField.JOB: "job_id",
    UseField.NODE: "node",
    UseField.LABEL: "label",
    UseField.USER: "submitted_by",
}
_NAMES = {"job_id": "job", "submitted_by": "user"}  # fields that are named otherwise
_MOST_NAMES = 500  # in one question


def add_uses(connection: SqlConnection, added: Iterable[DayUse]) -> None:
    rows = _values(added)
    connection.execute_each(ADD_USE, rows)
    connection.execute_each(_ADD_TOTAL, rows)


def _values(uses: Iterable[DayUse]) -> list[dict[str, Any]]:
    return [
        {
            "day": str(use.day),
            "project": use.project,
            "location": use.location,
            "job_id": use.job,
            "spent_on": use.spent_on.value,
            "node": use.node,
            "machine_type": use.machine_type,
            "cpus": use.cpus,
            "memory": use.memory,
            "gpus": use.gpus,
            "accelerator": use.accelerator,
            "is_spot": int(use.is_spot),
            "micros": use.micros,
        }
        for use in uses
    ]


def uses(connection: SqlConnection, query: UseQuery) -> tuple[DayUse, ...]:
    conditions, values = _conditions(query)
    columns = [column for kept, column in _COLUMNS.items() if kept in query.apart]
    about_jobs = _about_jobs(connection, query, values)
    of_jobs = query.job or about_jobs or UseField.JOB in query.apart
    table = "day_uses" if of_jobs else "day_totals"
    if about_jobs:  # of each job once, not of each of its rows
        jobs = f"SELECT DISTINCT job_id AS id_of_job FROM day_uses WHERE {conditions}"
        described = ", ".join(("id_of_job", *about_jobs))
        table += f" JOIN (SELECT {described} FROM ({jobs}) AS jobs_used) AS described ON id_of_job = job_id"
    chosen = ", ".join((*columns, *_ALWAYS_APART))
    text = f"SELECT {chosen}, SUM(micros) FROM {table} WHERE {conditions} GROUP BY {chosen}"
    return read_rows(connection.rows(text, values), _reader(columns), _name)


def job_uses(connection: SqlConnection, query: UseQuery) -> JobUses:
    """To number what jobs had costs a database much less than to hand it over with each row."""
    conditions, values = _conditions(query)
    columns = [
        column for kept, column in _COLUMNS.items() if kept in query.apart and kept is not UseField.JOB
    ]
    kind = ", ".join((*columns, *_ALWAYS_APART))
    table = "day_uses" if query.job else "day_totals"
    numbered = f"""
        SELECT {kind}, row_number() OVER (ORDER BY {kind}) AS kind
        FROM (SELECT DISTINCT {kind} FROM {table} WHERE {conditions}) AS kinds
    """
    of_jobs = f"""
        SELECT kind, job_id, micros FROM day_uses JOIN ({numbered}) AS numbered USING ({kind})
        WHERE {conditions}
    """
    kinds, before = connection.rows(numbered, values), None
    rows: list[Any] = []
    while kinds != before:  # none ever goes: where none came meanwhile, the numbers were the same
        rows = connection.rows(of_jobs, values)
        before, kinds = kinds, connection.rows(numbered, values)
    read = _reader(columns)
    by_number = read_rows(kinds, lambda row: (int(row[-1]), read(row)._replace(micros=0)), _name)
    return JobUses(kinds=dict(by_number), rows=[row for row in rows if type(row[1]) is str])


def display_names(connection: SqlConnection, jobs: Collection[str]) -> Mapping[str, str]:
    names: dict[str, str] = {}
    ids = list(jobs)
    for at in range(0, len(ids), _MOST_NAMES):
        values = {f"job_{number}": job for number, job in enumerate(ids[at : at + _MOST_NAMES])}
        among = ", ".join(f":{name}" for name in values)
        for table in ("deleted_jobs", "jobs"):
            names |= {
                str(id): str(name)
                for id, name in connection.rows(
                    f"SELECT id, display_name FROM {table} WHERE id IN ({among})", values
                )
            }
    return names


def _reader(columns: Sequence[str]) -> Callable[[Row], DayUse]:
    """Makes a use of a row: these columns, then those that are always kept apart, and the time."""
    number = len(columns)
    names = [_NAMES.get(column, column) for column in columns]

    def read(row: Row) -> DayUse:
        fields: dict[str, Any] = dict(zip(names, row, strict=False))
        if "day" in fields:
            fields["day"] = date.fromisoformat(fields["day"])
        spent_on, machine_type, cpus, memory, gpus, accelerator, is_spot, micros = row[number:]
        return DayUse(
            spent_on=TimeClass(spent_on),
            machine_type=machine_type,
            cpus=cpus,
            memory=memory,
            gpus=gpus,
            accelerator=accelerator,
            is_spot=bool(is_spot),
            micros=int(micros),
            **fields,
        )

    return read


def _name(_: Row) -> str:
    return "a day's use"


def _about_jobs(connection: SqlConnection, query: UseQuery, values: dict[str, Any]) -> list[str]:
    """What is asked of a job, or of what is left of a deleted one: the value of a label, who submitted it."""
    asked: dict[str, str] = {}
    if UseField.LABEL in query.apart:
        asked["label"] = label_value(query.label, connection.dialect, values)
    if UseField.USER in query.apart:
        asked["submitted_by"] = "submitter"
    of_job = "(SELECT {} FROM {} WHERE id = id_of_job)"
    return [
        f"COALESCE({of_job.format(value, 'jobs')}, {of_job.format(value, 'deleted_jobs')}, '') AS {name}"
        for name, value in asked.items()
    ]


def _conditions(query: UseQuery) -> tuple[str, dict[str, Any]]:
    values: dict[str, Any] = {}
    conditions = ["TRUE"]
    for column, wanted, word in (
        ("day >= ", query.since, "since"),
        ("day < ", query.until, "until"),
        ("project = ", "" if query.project == "-" else query.project, "project"),
        ("location = ", "" if query.location == "-" else query.location, "location"),
        ("job_id = ", query.job, "job"),
    ):
        if wanted:
            conditions.append(f"{column}:{word}")
            values[word] = str(wanted)
    return " AND ".join(conditions), values
