"""SQL for models: a job reserves the name, its success makes the model, and a person may delete it.

`take` and `settle` run inside the transaction that changes the job, so that kill -9 leaves both or neither.
"""

import json
from collections.abc import Sequence
from typing import Any

from trainshed.core.errors import AlreadyExists, NotFound
from trainshed.core.jobs.job import PIPELINE, Job, JobState, Status
from trainshed.core.model import Model, ModelPage, ModelQuery, model_of
from trainshed.core.ports import Operation
from trainshed.store.codec import dump_plain, read_time, write_time
from trainshed.store.conditions import to_sql
from trainshed.store.connection import SqlConnection, SqlIntegrityError, insert_into
from trainshed.store.rows import operation_values
from trainshed.store.tables import MODELS, OPERATIONS
from trainshed.store.unreadable import Row, read_row, read_rows

_INSERT = insert_into("models", MODELS)
_MAKE = "UPDATE models SET created_at = :at WHERE job = :of_job AND created_at IS NULL"
_FREE = "DELETE FROM models WHERE job = :of_job AND created_at IS NULL"
_NAMED = "project = :of_project AND location = :of_location AND id = :of_model AND created_at IS NOT NULL"
_MODELS = f"SELECT {', '.join(MODELS)} FROM models"
_MODEL = f"{_MODELS} WHERE {_NAMED}"
_DELETE = f"DELETE FROM models WHERE {_NAMED}"
_INSERT_OPERATION = insert_into("operations", OPERATIONS)


def take(connection: SqlConnection, job: Job) -> None:
    """Reserve the name of the model that the job makes, if it makes one."""
    model = model_of(job)
    if model is None:
        return
    try:
        connection.execute(_INSERT, _values(model))
    except SqlIntegrityError as error:
        raise AlreadyExists(
            f"There is a model {model.name} already, or one of that name is being trained."
        ) from error


def settle(connection: SqlConnection, job: Job, status: Status) -> None:
    """Make the model of a job that succeeded, or free the name if the job failed."""
    if job.kind != PIPELINE or not status.state.is_final:
        return
    if status.state is JobState.SUCCEEDED:
        at = write_time(status.ended_at or job.created_at)
        connection.execute(_MAKE, {"of_job": job.id, "at": at})
    else:
        connection.execute(_FREE, {"of_job": job.id})


def by_name(connection: SqlConnection, project: str, location: str, model: str) -> Model | None:
    row = connection.row(_MODEL, _place(project, location, model))
    return None if row is None else read_row(row, _to_model, _name_of)


def page(connection: SqlConnection, query: ModelQuery) -> ModelPage:
    values: dict[str, Any] = {"project": query.project, "most": query.limit + 1}
    conditions = ["project = :project", "created_at IS NOT NULL"]
    if query.location != "-":
        conditions.append("location = :location")
        values["location"] = query.location
    if query.where is not None:
        conditions.append(to_sql(query.where, connection.dialect, values))
    if query.cursor is not None:
        conditions.append("(created_at, id) < (:cursor_at, :cursor_id)")
        values["cursor_at"], values["cursor_id"] = query.cursor
    text = f"{_MODELS} WHERE {' AND '.join(conditions)} ORDER BY created_at DESC, id DESC LIMIT :most"
    rows = connection.rows(text, values)
    models = read_rows(rows[: query.limit], _to_model, _name_of)
    if len(rows) <= query.limit or not query.limit:
        return ModelPage(models=models)
    last = dict(zip(MODELS, rows[query.limit - 1], strict=True))
    return ModelPage(models=models, next_cursor=(str(last["created_at"]), str(last["id"])))


def remove(connection: SqlConnection, model: Model, operation: Operation) -> None:
    if connection.execute(_DELETE, _place(model.project, model.location, model.id)) != 1:
        raise NotFound(f"There is no model {model.name}.")
    connection.execute(_INSERT_OPERATION, operation_values(operation))


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


def _name_of(row: Row) -> str:
    return f"model {row[2]}"


def _to_model(row: Sequence[Any]) -> Model:
    """A row of MODELS as a model."""
    project, location, identity, display_name, created_at, labels, artifact, job, said = row
    return Model(
        id=identity,
        project=project,
        location=location,
        display_name=display_name,
        job=job,
        artifact=artifact,
        labels=json.loads(labels),
        said=json.loads(said),
        created_at=read_time(created_at),
    )
