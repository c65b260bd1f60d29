"""Requests that were carried out, by the name their caller gave them: SQL of the index, like index.py.

objects.py writes a row in the same commit as the change itself. So a caller that missed the answer and asks
again gets it, also after a crash, and the change is made once. Rows older than a day are removed with the
next that is written.
"""

import sqlite3
from datetime import datetime, timedelta

from trainshed.buckets.index import StoredObject, as_text, from_text, micros

REMEMBERED = timedelta(days=1)


def remember(
    db: sqlite3.Connection, bucket: str, request: str, made: StoredObject | None, now: datetime
) -> None:
    """`made` is None for a request that deletes. A request without a name is not remembered."""
    if request:
        db.execute("DELETE FROM answers WHERE at<?", (micros(now - REMEMBERED),))
        text = as_text(made) if made is not None else ""
        db.execute("INSERT OR REPLACE INTO answers VALUES(?,?,?,?)", (bucket, request, micros(now), text))


def is_answered(db: sqlite3.Connection, bucket: str, request: str) -> bool:
    return _row(db, bucket, request) is not None


def made_by(db: sqlite3.Connection, bucket: str, request: str) -> StoredObject | None:
    row = _row(db, bucket, request)
    return from_text(row[0]) if row and row[0] else None


def _row(db: sqlite3.Connection, bucket: str, request: str) -> tuple[str] | None:
    if not request:
        return None
    return db.execute("SELECT made FROM answers WHERE bucket=? AND request=?", (bucket, request)).fetchone()
