"""Copies the jobs' database for a backup, while a server writes it. It changes nothing."""

import sqlite3
from contextlib import closing
from pathlib import Path

from trainshed.core.errors import Unavailable
from trainshed.disk.sqlite_copy import copy_database
from trainshed.disk.sqlite_files import reading


def copy_jobs(path: Path, into: Path) -> int:
    """Write a copy of the SQLite file as of one commit; how many jobs are in it."""
    try:
        with closing(reading(path)) as source:
            copy_database(source, into)
        with closing(reading(into)) as copy:
            return int(copy.execute("SELECT COUNT(*) FROM jobs").fetchone()[0])
    except (sqlite3.Error, OSError) as error:
        raise Unavailable(f"The database {path} cannot be copied: {error}.") from error
