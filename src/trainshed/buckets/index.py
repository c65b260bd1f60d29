"""The index of all buckets on the disk, one SQLite file: objects, where their bytes are, open uploads.

Only this module, answers.py, versions.py and those called index_… contain SQL. The thread of index_writer.py
makes all writes with its own connection; readers have connections of their own and see the last commit. An
object's `file` is the name of its held file. `place` is the path below the bucket's folder to which that is
renamed; NULL if it stays held.
"""

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from trainshed.core.bucket import PLAIN, Attributes, BucketInfo, ObjectDraft, ObjectInfo, Precondition, Upload
from trainshed.core.bucket_rule import LifecycleRule
from trainshed.disk.sqlite_files import sqlite_uri

TOLD = "bucket, name, generation, metageneration, size, crc32c, md5, created, updated, attributes, components"
_COLUMNS = f"{TOLD}, file, place"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object and where its bytes are."""

    info: ObjectInfo
    file: str
    place: str | None


def connect(path: Path, mode: str = "rw") -> sqlite3.Connection:
    """A connection in which nothing begins or ends a transaction by itself. Only "rwc" makes the file."""
    uri = sqlite_uri(path, mode)
    db = sqlite3.connect(uri, isolation_level=None, check_same_thread=False, timeout=30, uri=True)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=FULL")
    db.execute("PRAGMA cache_size=-8192")
    return db


# ---- times and values as columns


def micros(at: datetime) -> int:
    since = at - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def moment(us: int) -> datetime:
    return datetime.fromtimestamp(us / 1e6, UTC)  # a float is exact to a quarter of a microsecond here


@lru_cache(4096)  # thousands of objects say the same: a list is twice as fast
def _attributes(text: str) -> Attributes:
    return Attributes(**json.loads(text)) if text else PLAIN


def _written(attributes: Attributes) -> str:
    """Only what differs from the plain: most objects say nothing but their type."""
    fields = {
        key: dict(value) if key == "metadata" else value
        for key in Attributes.__dataclass_fields__
        if (value := getattr(attributes, key)) != getattr(PLAIN, key)
    }
    # Escaped: JSON may bring letters that no text of SQLite's can hold.
    return json.dumps(fields) if fields else ""


def kept_of(row: tuple[Any, ...]) -> StoredObject:
    return StoredObject(_info(row), row[11], row[12])


def _info(row: tuple[Any, ...]) -> ObjectInfo:
    """As ObjectInfo(...) would make it, in a third of the time: a list makes thousands. Its `__init__` sets
    each field through the check that makes it frozen; the slots themselves have none.
    """
    created_at = moment(row[7])
    made = _new(ObjectInfo)
    _set_bucket(made, row[0])
    _set_name(made, row[1].decode())
    _set_generation(made, row[2])
    _set_metageneration(made, row[3])
    _set_size(made, row[4])
    _set_crc32c(made, row[5])
    _set_md5(made, row[6])
    _set_created_at(made, created_at)
    _set_updated_at(made, created_at if row[8] == row[7] else moment(row[8]))
    _set_attributes(made, _attributes(row[9]))
    _set_components(made, row[10])
    _set_noncurrent_at(made, None)
    return made


_new = object.__new__
(
    _set_bucket,
    _set_name,
    _set_generation,
    _set_metageneration,
    _set_size,
    _set_crc32c,
    _set_md5,
    _set_created_at,
    _set_updated_at,
    _set_attributes,
    _set_components,
    _set_noncurrent_at,
) = (getattr(ObjectInfo, field).__set__ for field in ObjectInfo.__dataclass_fields__)


def row_of(kept: StoredObject) -> tuple[Any, ...]:
    info = kept.info
    return (
        info.bucket,
        info.name.encode(),
        info.generation,
        info.metageneration,
        info.size,
        info.crc32c,
        info.md5,
        micros(info.created_at),
        micros(info.updated_at),
        _written(info.attributes),
        info.components,
        kept.file,
        kept.place,
    )


def as_text(kept: StoredObject) -> str:
    row = row_of(kept)
    return json.dumps([row[0], kept.info.name, *row[2:]])


def from_text(text: str) -> StoredObject:
    columns = json.loads(text)
    return kept_of((columns[0], columns[1].encode(), *columns[2:]))


# ---- buckets


def bucket(db: sqlite3.Connection, name: str) -> BucketInfo | None:
    row = db.execute("SELECT told FROM buckets WHERE name=?", (name,)).fetchone()
    return _bucket(row[0]) if row else None


def has_bucket(db: sqlite3.Connection, name: str) -> bool:
    return db.execute("SELECT 1 FROM buckets WHERE name=?", (name,)).fetchone() is not None


def buckets(db: sqlite3.Connection) -> tuple[BucketInfo, ...]:
    return tuple(_bucket(row[0]) for row in db.execute("SELECT told FROM buckets ORDER BY name"))


def keep_bucket(db: sqlite3.Connection, info: BucketInfo) -> None:
    times = {"created_at": micros(info.created_at), "updated_at": micros(info.updated_at)}
    fields = {key: getattr(info, key) for key in BucketInfo.__dataclass_fields__}
    rules = [asdict(rule) for rule in info.lifecycle]
    text = json.dumps(fields | times | {"labels": dict(info.labels), "lifecycle": rules})
    db.execute("INSERT OR REPLACE INTO buckets VALUES(?,?)", (info.name, text))


def forget_bucket(db: sqlite3.Connection, name: str) -> None:
    db.execute("DELETE FROM buckets WHERE name=?", (name,))
    db.execute("DELETE FROM uploads WHERE bucket=?", (name,))
    db.execute("DELETE FROM answers WHERE bucket=?", (name,))


def _bucket(text: str) -> BucketInfo:
    fields = json.loads(text)
    fields |= {key: moment(fields[key]) for key in ("created_at", "updated_at")}
    rules = (
        LifecycleRule(**rule | {"prefixes": tuple(rule["prefixes"]), "suffixes": tuple(rule["suffixes"])})
        for rule in fields.get("lifecycle", ())
    )
    return BucketInfo(**fields | {"lifecycle": tuple(rules)})


# ---- objects


def get(db: sqlite3.Connection, bucket: str, name: str) -> StoredObject | None:
    row = db.execute(
        f"SELECT {_COLUMNS} FROM objects WHERE bucket=? AND name=?", (bucket, name.encode())
    ).fetchone()
    return kept_of(row) if row else None


def walk(
    db: sqlite3.Connection, bucket: str, first: bytes, end: bytes | None, limit: int
) -> Iterator[ObjectInfo]:
    """Objects from the first name on, up to the end, in order."""
    rows = db.execute(
        f"SELECT {TOLD} FROM objects WHERE bucket=? AND name>=? AND (? IS NULL OR name<?) "
        "ORDER BY name LIMIT ?",
        (bucket, first, end, end, limit),
    )
    return map(_info, rows)


def files(
    db: sqlite3.Connection, bucket: str, first: bytes = b"", end: bytes | None = None
) -> Iterator[tuple[bytes, str, str | None]]:
    """Name, file and place of the objects from the first name on, up to the end, in order."""
    return db.execute(
        "SELECT name, file, place FROM objects WHERE bucket=? AND name>=? AND (? IS NULL OR name<?) "
        "ORDER BY name",
        (bucket, first, end, end),
    )


def count(db: sqlite3.Connection, bucket: str, most: int) -> int:
    """How many objects there are; no further than `most`."""
    query = "SELECT COUNT(*) FROM (SELECT 1 FROM objects WHERE bucket=? LIMIT ?)"
    return db.execute(query, (bucket, most)).fetchone()[0]


def first_name(db: sqlite3.Connection, bucket: str, first: bytes = b"") -> bytes | None:
    row = db.execute(
        "SELECT name FROM objects WHERE bucket=? AND name>=? ORDER BY name LIMIT 1", (bucket, first)
    ).fetchone()
    return row[0] if row else None


def keep(db: sqlite3.Connection, kept: StoredObject, sums: bytes) -> None:
    db.execute(f"INSERT OR REPLACE INTO objects({_COLUMNS}) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)", row_of(kept))
    if sums:
        db.execute("INSERT OR REPLACE INTO sums VALUES(?,?)", (kept.file, sums))


def forget(db: sqlite3.Connection, kept: StoredObject) -> None:
    db.execute("DELETE FROM objects WHERE bucket=? AND name=?", (kept.info.bucket, kept.info.name.encode()))
    db.execute("DELETE FROM sums WHERE file=?", (kept.file,))


def sums(db: sqlite3.Connection, file: str) -> bytes:
    row = db.execute("SELECT crcs FROM sums WHERE file=?", (file,)).fetchone()
    return row[0] if row else b""


def by_file(db: sqlite3.Connection, file: str) -> StoredObject | None:
    """The object or the old version whose bytes are in the file."""
    query = f"SELECT {_COLUMNS} FROM objects WHERE file=? UNION ALL SELECT {TOLD}, file, NULL FROM versions"
    row = db.execute(f"{query} WHERE file=?", (file, file)).fetchone()
    return kept_of(row) if row else None


def set_md5(db: sqlite3.Connection, file: str, md5: str) -> None:
    for table in ("objects", "versions"):
        db.execute(f"UPDATE {table} SET md5=? WHERE file=? AND md5=''", (md5, file))


def without_md5(db: sqlite3.Connection) -> list[StoredObject]:
    query = f"SELECT {_COLUMNS} FROM objects WHERE md5='' UNION ALL SELECT {TOLD}, file, NULL FROM versions"
    return [kept_of(row) for row in db.execute(f"{query} WHERE md5=''")]


def is_placed(db: sqlite3.Connection, bucket: str, name: str) -> bool:
    row = db.execute(
        "SELECT place FROM objects WHERE bucket=? AND name=?", (bucket, name.encode())
    ).fetchone()
    return row is not None and row[0] is not None


def next_generation(db: sqlite3.Connection, now: datetime) -> int:
    """Never twice, and never lower than one before, whatever the clock does."""
    generation = max(micros(now), db.execute("SELECT generation FROM last").fetchone()[0] + 1)
    db.execute("UPDATE last SET generation=?", (generation,))
    return generation


# ---- files that are to go once a deletion is for good


def drop(db: sqlite3.Connection, bucket: str, place: str) -> None:
    db.execute("INSERT OR REPLACE INTO drops VALUES(?,?)", (bucket, place))


def undrop(db: sqlite3.Connection, bucket: str, place: str) -> None:
    db.execute("DELETE FROM drops WHERE bucket=? AND place=?", (bucket, place))


def drops(db: sqlite3.Connection) -> list[tuple[str, str]]:
    return db.execute("SELECT bucket, place FROM drops").fetchall()


# ---- uploads in pieces


def keep_upload(db: sqlite3.Connection, bucket: str, upload: Upload, begun: datetime) -> None:
    draft, condition = upload.draft, upload.draft.precondition
    fields = {
        "name": draft.name,
        "attributes": _written(draft.attributes),
        "precondition": {key: getattr(condition, key) for key in Precondition.__dataclass_fields__},
        "crc32c": draft.crc32c,
        "md5": draft.md5,
        "size": draft.size,
        "md5_at_once": draft.md5_at_once,
    }
    db.execute(
        "INSERT INTO uploads VALUES(?,?,?,?,?,NULL)",
        (upload.id, bucket, json.dumps(fields), upload.received, micros(begun)),
    )


def upload(db: sqlite3.Connection, bucket: str, identity: str) -> Upload | None:
    row = db.execute(
        "SELECT draft, received, done FROM uploads WHERE id=? AND bucket=?", (identity, bucket)
    ).fetchone()
    if row is None:
        return None
    fields = json.loads(row[0])
    fields["attributes"] = _attributes(fields["attributes"])
    fields["precondition"] = Precondition(**fields["precondition"])
    done = from_text(row[2]).info if row[2] else None
    return Upload(id=identity, draft=ObjectDraft(**fields), received=row[1], done=done)


def advance_upload(db: sqlite3.Connection, identity: str, received: int) -> None:
    db.execute("UPDATE uploads SET received=max(received, ?) WHERE id=?", (received, identity))


def end_upload(db: sqlite3.Connection, identity: str, kept: StoredObject) -> None:
    db.execute("UPDATE uploads SET done=? WHERE id=?", (as_text(kept), identity))


def forget_upload(db: sqlite3.Connection, identity: str) -> None:
    db.execute("DELETE FROM uploads WHERE id=?", (identity,))


def forget_uploads(db: sqlite3.Connection, before: datetime) -> None:
    db.execute("DELETE FROM uploads WHERE begun<?", (micros(before),))


def has_upload(db: sqlite3.Connection, identity: str) -> bool:
    return db.execute("SELECT 1 FROM uploads WHERE id=? AND done IS NULL", (identity,)).fetchone() is not None
