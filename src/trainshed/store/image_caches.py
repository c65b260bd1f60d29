"""SQL for image caches: one row each, found by name; fields that no query uses are in its JSON."""

from typing import Any

from trainshed.core.errors import AlreadyExists, NotFound
from trainshed.core.supplies.image_cache import ImageCache
from trainshed.store.codec import dumps, loads, write_time
from trainshed.store.connection import SqlConnection, SqlIntegrityError, insert_into
from trainshed.store.tables import IMAGE_CACHES
from trainshed.store.unreadable import Row, read_row, read_rows

_NAMED = "project = :of_project AND location = :of_location AND id = :of_cache"
_INSERT = insert_into("image_caches", IMAGE_CACHES)
_SELECT = f"SELECT id, body FROM image_caches WHERE {_NAMED}"
_ALL = "SELECT id, body FROM image_caches ORDER BY created_at, id"
_UPDATE = f"UPDATE image_caches SET created_at = :at, body = :new_body WHERE {_NAMED}"
_DELETE = f"DELETE FROM image_caches WHERE {_NAMED}"


def keep(connection: SqlConnection, cache: ImageCache) -> None:
    values = {
        "project": cache.project,
        "location": cache.location,
        "id": cache.id,
        "created_at": write_time(cache.created_at),
        "body": dumps(cache),
    }
    try:
        connection.execute(_INSERT, values)
    except SqlIntegrityError as error:
        raise AlreadyExists(f"There is an image cache {cache.name} already.") from error


def by_name(connection: SqlConnection, project: str, location: str, cache: str) -> ImageCache | None:
    place = {"of_project": project, "of_location": location, "of_cache": cache}
    row = connection.row(_SELECT, place)
    return None if row is None else read_row(row, _read, _name_of)


def every(connection: SqlConnection) -> tuple[ImageCache, ...]:
    return read_rows(connection.rows(_ALL), _read, _name_of)


def write(connection: SqlConnection, cache: ImageCache) -> None:
    values = {**_place(cache), "at": write_time(cache.created_at), "new_body": dumps(cache)}
    if connection.execute(_UPDATE, values) != 1:
        raise missing(cache)


def remove(connection: SqlConnection, cache: ImageCache) -> None:
    if connection.execute(_DELETE, _place(cache)) != 1:
        raise missing(cache)


def missing(cache: ImageCache) -> NotFound:
    return NotFound(f"There is no image cache {cache.name}.")


def _place(cache: ImageCache) -> dict[str, Any]:
    return {"of_project": cache.project, "of_location": cache.location, "of_cache": cache.id}


def _read(row: Row) -> ImageCache:
    return loads(ImageCache, row[1])


def _name_of(row: Row) -> str:
    return f"image cache {row[0]}"
