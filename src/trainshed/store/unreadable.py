"""Rows that cannot be read: named where one is asked for, left out of lists.

The queries of this folder call it. One damaged row hides no other, and does not keep the server from
starting. The log names each row that is left out, once. It never changes or removes a row.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar

from trainshed.core.errors import Invalid, Unavailable

log = logging.getLogger(__name__)

Row: TypeAlias = Sequence[Any]
T = TypeVar("T")
# What reading raises where a column has something else than was written.
_DAMAGE = (ValueError, LookupError, TypeError, AttributeError, RecursionError, Invalid)


def read_row(row: Row, read: Callable[[Row], T], name: Callable[[Row], str]) -> T:
    """What `read` makes of the row. Raises Unavailable where it is damaged; `name` says which it is."""
    try:
        if bytes in map(type, row):
            raise ValueError("its text is not UTF-8")
        return read(row)
    except _DAMAGE as error:
        raise Unavailable(
            f"The record of {name(row)} is damaged ({error}). Restore the database from a backup."
        ) from error


def read_rows(rows: Iterable[Row], read: Callable[[Row], T], name: Callable[[Row], str]) -> tuple[T, ...]:
    """What `read` makes of the rows, without those that are damaged."""
    values: list[T] = []
    for row in rows:
        try:
            values.append(read_row(row, read, name))
        except Unavailable as error:
            _warn(error.message)
    return tuple(values)


@lru_cache(maxsize=1024)
def _warn(sentence: str) -> None:
    """Once for each sentence: lists are asked for every second."""
    log.warning("%s Until then it is left out of lists.", sentence)
