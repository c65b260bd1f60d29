"""SQL for models: a job reserves the name, its success makes the model, and a person may delete it.

`take` and `settle` run inside the transaction that changes the job, so that kill -9 leaves both or neither.
"""

import json
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, delete, insert, select, tuple_, update
from sqlalchemy.exc import IntegrityError

from trainshed.core.errors import AlreadyExists, NotFound
from trainshed.core.job import PIPELINE, Job, JobState, Status
from trainshed.core.model import Model, ModelPage, ModelQuery, model_of
from trainshed.core.ports import Operation
from trainshed.store.codec import dump_plain, read_time, write_time
from trainshed.store.conditions import to_sql
from trainshed.store.rows import operation_values
from trainshed.store.tables import models, operations

_insert = insert(models)
_there = (
    update(models)
    .where(models.c.job == bindparam("of_job"), models.c.created_at.is_(None))
    .values(created_at=bindparam("at"))
)
_free = delete(models).where(models.c.job == bindparam("of_job"), models.c.created_at.is_(None))
_the_one = (
    models.c.project == bindparam("of_project"),
    models.c.location == bindparam("of_location"),
    models.c.id == bindparam("of_model"),
    models.c.created_at.is_not(None),
)
_select = select(models).where(*_the_one)
_delete = delete(models).where(*_the_one)
_insert_operation = insert(operations)


def take(connection: Connection, job: Job) -> None:
    """Reserve the name of the model that the job makes, if it makes one."""
    model = model_of(job)
    if model is None:
        return
    try:
        connection.execute(_insert, _values(model))
    except IntegrityError as error:
        raise AlreadyExists(
            f"There is a model {model.name} already, or one of that name is being trained."
        ) from error


def settle(connection: Connection, job: Job, status: Status) -> None:
    """Make the model of a job that succeeded, or free the name if the job failed."""
    if job.kind != PIPELINE or not status.state.is_final:
        return
    if status.state is JobState.SUCCEEDED:
        at = write_time(status.ended_at or job.created_at)
        connection.execute(_there, {"of_job": job.id, "at": at})
    else:
        connection.execute(_free, {"of_job": job.id})


def by_name(connection: Connection, project: str, location: str, model: str) -> Model | None:
    row = connection.execute(_select, _place(project, location, model)).one_or_none()
    return None if row is None else _to_model(row)


def page(connection: Connection, query: ModelQuery) -> ModelPage:
    rows = connection.execute(_page_statement(query, connection.dialect.name)).all()
    models = tuple(map(_to_model, rows[: query.limit]))
    if len(rows) <= query.limit or not models:
        return ModelPage(models=models)
    last = rows[query.limit - 1]
    return ModelPage(models=models, next_cursor=(last.created_at, last.id))


def remove(connection: Connection, model: Model, operation: Operation) -> None:
    if connection.execute(_delete, _place(model.project, model.location, model.id)).rowcount != 1:
        raise NotFound(f"There is no model {model.name}.")
    connection.execute(_insert_operation, operation_values(operation))


def _page_statement(query: ModelQuery, dialect: str) -> Select[*tuple[Any, ...]]:
    statement = select(models).where(models.c.project == query.project, models.c.created_at.is_not(None))
    if query.location != "-":
        statement = statement.where(models.c.location == query.location)
    if query.where is not None:
        statement = statement.where(to_sql(query.where, dialect, models))
    if query.cursor is not None:
        statement = statement.where(tuple_(models.c.created_at, models.c.id) < tuple_(*query.cursor))
    return statement.order_by(models.c.created_at.desc(), models.c.id.desc()).limit(query.limit + 1)


def _place(project: str, location: str, model: str) -> dict[str, str]:
    return {"of_project": project, "of_location": location, "of_model": model}


def _values(model: Model) -> dict[str, Any]:
    return {
        "project": model.project,
        "location": model.location,
        "id": model.id,
        "display_name": model.display_name,
        "created_at": None,
        "labels": dump_plain(model.labels),
        "artifact": model.artifact,
        "job": model.job,
        "said": dump_plain(model.said),
    }


def _to_model(row: Row[*tuple[Any, ...]]) -> Model:
    return Model(
        id=row.id,
        project=row.project,
        location=row.location,
        display_name=row.display_name,
        job=row.job,
        artifact=row.artifact,
        labels=json.loads(row.labels),
        said=json.loads(row.said),
        created_at=read_time(row.created_at),
    )
