"""Translates errors of the disk and of SQLite into errors of the core."""

import contextlib
import errno
import sqlite3
from collections.abc import Generator

from trainshed.core.bucket import DiskFull
from trainshed.core.errors import TrainshedError, Unavailable


def as_error(what: str, error: sqlite3.Error | OSError) -> TrainshedError:
    full = (
        error.errno in (errno.ENOSPC, errno.EDQUOT)
        if isinstance(error, OSError)
        else error.sqlite_errorname == "SQLITE_FULL"
        if hasattr(error, "sqlite_errorname")
        else False
    )
    if full:
        return DiskFull(f"{what}: the disk of the server is full. Make room there, then try again.")
    reason = error.strerror if isinstance(error, OSError) else None
    return Unavailable(f"{what}: {reason or error}.")


@contextlib.contextmanager
def translated(what: str) -> Generator[None]:
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        raise as_error(what, error) from error
