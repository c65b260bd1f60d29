"""SQL of the sums by day: `writes.py` adds to them, `sql.py` reads them. See `core/day_use.py`.

A question reads the rows of the days it asks for, by the primary key, or those of one job, by an index. Where
no job matters it reads the sums of all jobs together, which are few.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date
from typing import Any

from trainshed.core.day_use import DayUse, UseField, UseQuery
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
}
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
    of_jobs = query.job or query.apart & {UseField.JOB, UseField.LABEL}
    table = "day_uses" if of_jobs else "day_totals"
    if UseField.LABEL in query.apart:  # of each job once, not of each of its rows
        jobs = f"SELECT DISTINCT job_id AS id_of_job FROM day_uses WHERE {conditions}"
        label = _label(connection, query, values)
        table += f" JOIN (SELECT id_of_job, {label} AS label FROM ({jobs}) AS jobs_used) AS labelled"
        table += " ON id_of_job = job_id"
    chosen = ", ".join((*columns, *_ALWAYS_APART))
    text = f"SELECT {chosen}, SUM(micros) FROM {table} WHERE {conditions} GROUP BY {chosen}"
    if UseField.JOB in query.apart:  # there is little to add up, and to sort them takes longer than all else
        text = f"SELECT {chosen}, micros FROM {table} WHERE {conditions}"
    return read_rows(connection.rows(text, values), _reader(columns), lambda _: "a day's use")


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
    names = ["job" if column == "job_id" else column for column in columns]

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


def _label(connection: SqlConnection, query: UseQuery, values: dict[str, Any]) -> str:
    """The value of the label, of the job or of what is left of a deleted one."""
    label = label_value(query.label, connection.dialect, values)
    ways = (f"(SELECT {label} FROM {table} WHERE id = id_of_job)" for table in ("jobs", "deleted_jobs"))
    return f"COALESCE({', '.join(ways)}, '')"


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
