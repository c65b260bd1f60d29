"""Old versions of objects in the index: SQL like that of index.py.

A live object is a row of `objects`; one that was replaced or deleted in a bucket that keeps versions is a row
of `versions`. The bytes of a version are always in the folder of held files: index_writer.py links them there
before the row is committed.
"""

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from trainshed.buckets.index import TOLD, StoredObject, kept_of, micros, moment, row_of
from trainshed.core.bucket import ObjectInfo

_COLUMNS = f"{TOLD}, file, NULL, noncurrent"


def retire(db: sqlite3.Connection, live: StoredObject, now: datetime) -> None:
    """Make the live object an old version."""
    info = live.info
    db.execute("DELETE FROM objects WHERE bucket=? AND name=?", (info.bucket, info.name.encode()))
    keep(db, StoredObject(replace(info, noncurrent_at=now), live.file, None))


def keep(db: sqlite3.Connection, version: StoredObject) -> None:
    assert version.info.noncurrent_at is not None
    row = (*row_of(version)[:-1], micros(version.info.noncurrent_at))
    db.execute(f"INSERT OR REPLACE INTO versions VALUES({','.join('?' * len(row))})", row)


def get(db: sqlite3.Connection, bucket: str, name: str, generation: int) -> StoredObject | None:
    row = db.execute(
        f"SELECT {_COLUMNS} FROM versions WHERE bucket=? AND name=? AND generation=?",
        (bucket, name.encode(), generation),
    ).fetchone()
    return _version(row) if row else None


def forget(db: sqlite3.Connection, version: StoredObject) -> None:
    info = version.info
    key = (info.bucket, info.name.encode(), info.generation)
    db.execute("DELETE FROM versions WHERE bucket=? AND name=? AND generation=?", key)
    db.execute("DELETE FROM sums WHERE file=?", (version.file,))


def are_in(db: sqlite3.Connection, bucket: str) -> bool:
    return db.execute("SELECT 1 FROM versions WHERE bucket=? LIMIT 1", (bucket,)).fetchone() is not None


def walk(
    db: sqlite3.Connection, bucket: str, first: tuple[bytes, int], end: bytes | None, limit: int
) -> Iterator[ObjectInfo]:
    """Live objects and old versions from the first name and generation on, in the order of both."""
    low, generation = first
    where = "bucket=? AND name>=? AND (name>? OR generation>=?) AND (? IS NULL OR name<?)"
    rows = db.execute(
        f"SELECT {TOLD}, file, NULL, NULL FROM objects WHERE {where} "
        f"UNION ALL SELECT {_COLUMNS} FROM versions WHERE {where} ORDER BY name, generation LIMIT ?",
        (*(bucket, low, low, generation, end, end) * 2, limit),
    )
    return (_version(row).info for row in rows)


def _version(row: tuple[Any, ...]) -> StoredObject:
    kept = kept_of(row[:-1])
    if row[-1] is None:
        return kept
    return StoredObject(replace(kept.info, noncurrent_at=moment(row[-1])), kept.file, None)
