"""SQL for persistent resources: one row each, found by name; fields that no query uses are in its JSON."""

from typing import Any

from trainshed.core.errors import AlreadyExists, NotFound
from trainshed.core.ports import Operation
from trainshed.core.queue.persistent_resource import PersistentResource
from trainshed.store.codec import dumps, loads, write_time
from trainshed.store.connection import SqlConnection, SqlIntegrityError, insert_into
from trainshed.store.rows import operation_values
from trainshed.store.tables import OPERATIONS, PERSISTENT_RESOURCES
from trainshed.store.unreadable import Row, read_rows

_NAMED = "project = :of_project AND location = :of_location AND id = :of_resource"
_INSERT = insert_into("persistent_resources", PERSISTENT_RESOURCES)
_INSERT_OPERATION = insert_into("operations", OPERATIONS)
_ALL = "SELECT id, body FROM persistent_resources ORDER BY created_at, id"
_UPDATE = f"UPDATE persistent_resources SET body = :new_body WHERE {_NAMED}"
_DELETE = f"DELETE FROM persistent_resources WHERE {_NAMED}"


def keep(connection: SqlConnection, resource: PersistentResource, operation: Operation) -> None:
    values = {
        "project": resource.project,
        "location": resource.location,
        "id": resource.id,
        "created_at": write_time(resource.created_at),
        "body": dumps(resource),
    }
    try:
        connection.execute(_INSERT, values)
    except SqlIntegrityError as error:
        raise AlreadyExists(f"There is a persistent resource {resource.name} already.") from error
    connection.execute(_INSERT_OPERATION, operation_values(operation))


def every(connection: SqlConnection) -> tuple[PersistentResource, ...]:
    return read_rows(connection.rows(_ALL), _read, _name_of)


def write(connection: SqlConnection, resource: PersistentResource) -> None:
    if connection.execute(_UPDATE, {**_place(resource), "new_body": dumps(resource)}) != 1:
        raise _missing(resource)


def remove(connection: SqlConnection, resource: PersistentResource, operation: Operation) -> None:
    if connection.execute(_DELETE, _place(resource)) != 1:
        raise _missing(resource)
    connection.execute(_INSERT_OPERATION, operation_values(operation))


def _missing(resource: PersistentResource) -> NotFound:
    return NotFound(f"There is no persistent resource {resource.name}.")


def _place(resource: PersistentResource) -> dict[str, Any]:
    return {
        "of_project": resource.project,
        "of_location": resource.location,
        "of_resource": resource.id,
    }


def _read(row: Row) -> PersistentResource:
    return loads(PersistentResource, row[1])


def _name_of(row: Row) -> str:
    return f"persistent resource {row[0]}"
