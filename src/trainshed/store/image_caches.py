"""SQL for image caches: one row each, found by name; fields that no query uses are in its JSON."""

from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from trainshed.core.errors import AlreadyExists, NotFound
from trainshed.core.image_cache import ImageCache
from trainshed.store.codec import dumps, loads, write_time
from trainshed.store.tables import image_caches

_the_one = (
    image_caches.c.project == bindparam("of_project"),
    image_caches.c.location == bindparam("of_location"),
    image_caches.c.id == bindparam("of_cache"),
)
_insert = insert(image_caches)
_select = select(image_caches.c.body).where(*_the_one)
_all = select(image_caches.c.body).order_by(image_caches.c.created_at, image_caches.c.id)
_update = update(image_caches).where(*_the_one).values(created_at=bindparam("at"), body=bindparam("new_body"))
_delete = delete(image_caches).where(*_the_one)


def keep(connection: Connection, cache: ImageCache) -> None:
    values = {
        "project": cache.project,
        "location": cache.location,
        "id": cache.id,
        "created_at": write_time(cache.created_at),
        "body": dumps(cache),
    }
    try:
        connection.execute(_insert, values)
    except IntegrityError as error:
        raise AlreadyExists(f"There is an image cache {cache.name} already.") from error


def by_name(connection: Connection, project: str, location: str, cache: str) -> ImageCache | None:
    place = {"of_project": project, "of_location": location, "of_cache": cache}
    row = connection.execute(_select, place).one_or_none()
    return None if row is None else _read(row)


def every(connection: Connection) -> tuple[ImageCache, ...]:
    return tuple(map(_read, connection.execute(_all).all()))


def write(connection: Connection, cache: ImageCache) -> None:
    values = {**_place(cache), "at": write_time(cache.created_at), "new_body": dumps(cache)}
    if connection.execute(_update, values).rowcount != 1:
        raise missing(cache)


def remove(connection: Connection, cache: ImageCache) -> None:
    if connection.execute(_delete, _place(cache)).rowcount != 1:
        raise missing(cache)


def missing(cache: ImageCache) -> NotFound:
    return NotFound(f"There is no image cache {cache.name}.")


def _place(cache: ImageCache) -> dict[str, Any]:
    return {"of_project": cache.project, "of_location": cache.location, "of_cache": cache.id}


def _read(row: Row[*tuple[Any, ...]]) -> ImageCache:
    return loads(ImageCache, row.body)
