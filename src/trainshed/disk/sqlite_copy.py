"""Copies a SQLite database while others write it: for backups, of the jobs' database and the buckets' index.

The copy is the database as of one commit. It is checked before anybody hears of it. Nothing is written to the
original, and nobody who writes it waits.
"""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from trainshed.disk.sqlite_files import page_fault


def copy_database(source: sqlite3.Connection, into: Path) -> None:
    """Write the copy, as of the transaction that is open in the source, or as of now."""
    os.close(os.open(into, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    with closing(sqlite3.connect(into, isolation_level=None)) as target:
        target.execute("PRAGMA synchronous=OFF")  # it is synced with the backup, or never used
        source.backup(target)  # in one step: in several, each commit of others would begin it again
        target.execute("PRAGMA journal_mode=DELETE")  # one file
        fault = page_fault(target)
    if fault:
        raise sqlite3.DatabaseError(f"it is damaged: {fault}")
