"""Copies a SQLite database while others write it: for backups, of the jobs' database and the buckets' index.

The copy is the database as of one commit. It is checked before anybody hears of it. Nothing is written to the
original, and nobody who writes it waits.
"""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from trainshed.sqlite_files import sqlite_uri


def reading(path: Path) -> sqlite3.Connection:
    """A connection that only reads; nothing begins or ends a transaction by itself."""
    return sqlite3.connect(sqlite_uri(path, "ro"), uri=True, isolation_level=None, timeout=30)


def copy_database(source: sqlite3.Connection, into: Path) -> None:
    """Write the copy, as of the transaction that is open in the source, or as of now."""
    os.close(os.open(into, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    with closing(sqlite3.connect(into, isolation_level=None)) as target:
        target.execute("PRAGMA synchronous=OFF")  # it is synced with the backup, or never used
        source.backup(target)  # in one step: in several, each commit of others would begin it again
        target.execute("PRAGMA journal_mode=DELETE")  # one file
        verdict = str(target.execute("PRAGMA quick_check(1)").fetchone()[0])
    if verdict != "ok":
        raise sqlite3.DatabaseError(f"it is damaged: {' '.join(verdict.split())}")
