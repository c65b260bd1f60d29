"""The tables of the buckets' index, and the steps that bring an older index to them.

`IndexWriter.mend` calls `make` at each start, after index_guard.py has let the file pass. A step is frozen
once it is released.
"""

import sqlite3

# What each version of the index adds to the one before; the first is also that of files without a number.
MIGRATIONS = (
    """
CREATE TABLE IF NOT EXISTS buckets(name TEXT PRIMARY KEY, told TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS objects(
  bucket TEXT NOT NULL, name BLOB NOT NULL, generation INTEGER NOT NULL, metageneration INTEGER NOT NULL,
  size INTEGER NOT NULL, crc32c TEXT NOT NULL, md5 TEXT NOT NULL,
  created INTEGER NOT NULL, updated INTEGER NOT NULL,
  attributes TEXT NOT NULL, components INTEGER NOT NULL, file TEXT NOT NULL, place TEXT,
  PRIMARY KEY(bucket, name)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS objects_file ON objects(file);
CREATE INDEX IF NOT EXISTS objects_late ON objects(file) WHERE md5='';
CREATE TABLE IF NOT EXISTS sums(file TEXT PRIMARY KEY, crcs BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS uploads(
  id TEXT PRIMARY KEY, bucket TEXT NOT NULL, draft TEXT NOT NULL,
  received INTEGER NOT NULL, begun INTEGER NOT NULL, done TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS drops(
  bucket TEXT NOT NULL, place TEXT NOT NULL, PRIMARY KEY(bucket, place)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS last(generation INTEGER NOT NULL);
INSERT INTO last SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM last);
""",
    """
CREATE TABLE answers(
  bucket TEXT NOT NULL, request TEXT NOT NULL, at INTEGER NOT NULL, made TEXT NOT NULL,
  PRIMARY KEY(bucket, request)) WITHOUT ROWID;
CREATE INDEX answers_at ON answers(at);
""",
    """
CREATE TABLE versions(
  bucket TEXT NOT NULL, name BLOB NOT NULL, generation INTEGER NOT NULL, metageneration INTEGER NOT NULL,
  size INTEGER NOT NULL, crc32c TEXT NOT NULL, md5 TEXT NOT NULL,
  created INTEGER NOT NULL, updated INTEGER NOT NULL,
  attributes TEXT NOT NULL, components INTEGER NOT NULL, file TEXT NOT NULL, noncurrent INTEGER NOT NULL,
  PRIMARY KEY(bucket, name, generation)) WITHOUT ROWID;
CREATE INDEX versions_file ON versions(file);
CREATE INDEX versions_late ON versions(file) WHERE md5='';
""",
    """
CREATE TABLE home(identity TEXT NOT NULL);
INSERT INTO home VALUES(lower(hex(randomblob(16))));
""",
)

# What every index has had from the first version on.
TABLES = frozenset({"buckets", "objects", "sums", "uploads", "drops", "last"})


def make(db: sqlite3.Connection) -> None:
    """Bring the tables to the version of this program, each step in a transaction of its own."""
    for number, step in enumerate(MIGRATIONS[version(db) :], version(db) + 1):
        db.executescript(f"BEGIN IMMEDIATE;{step}PRAGMA user_version={number};COMMIT;")


def version(db: sqlite3.Connection) -> int:
    return db.execute("PRAGMA user_version").fetchone()[0]


def tables(db: sqlite3.Connection) -> frozenset[str]:
    return frozenset(name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='table'"))


def identity(db: sqlite3.Connection) -> str:
    """What tells this index from those of other homes; empty before version 4."""
    return db.execute("SELECT identity FROM home").fetchone()[0] if "home" in tables(db) else ""
