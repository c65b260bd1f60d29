"""BucketSnapshot: all buckets as of one commit of their index, for a backup, while a server writes them.

The bytes of an object never change, so a second name for its file keeps them whatever the server does next.
Most files get theirs while the server goes on. Then the write lock of the index is held: nothing is committed
until the files of the last few objects have their second names too and the moment of the copy is fixed. So
every object of the copied index has its bytes, and writers wait for a moment only. It never changes the index
nor a file. A file system without links has copies made instead; writers then wait longer.
"""

import os
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from trainshed.buckets import index
from trainshed.buckets.trouble import translated
from trainshed.disk.sqlite_copy import copy_database
from trainshed.disk.sqlite_files import reading

_FILES = (
    "SELECT bucket, file, place FROM objects WHERE generation>:after "
    "UNION ALL SELECT bucket, file, NULL FROM versions WHERE generation>:after"
)
_UPLOADS = "SELECT bucket, id, NULL FROM uploads WHERE done IS NULL"
_CONTENTS = (
    "SELECT bucket, name, place, file, size, crc32c FROM objects "
    "UNION ALL SELECT bucket, name, NULL, file, size, crc32c FROM versions"
)
Row: TypeAlias = tuple[str, str, str | None]


@dataclass(frozen=True, slots=True)
class SnapshotFile:
    """A file of the buckets' folder as a start of the server would leave it."""

    path: str  # below the buckets' folder
    source: str  # where its bytes are; they begin the file there
    size: int
    crc32c: str = ""  # of an object
    address: str = ""  # of an object, for people


class BucketSnapshot:
    """`folder` is an empty folder on the same disk as `root`, the folder of the buckets."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._root, self._folder = root, folder
        self._index = root / ".trainshed" / "index.db"
        self.copy = folder / "index.db"

    def take(self) -> None:
        with (
            translated(f"The buckets in {self._root} cannot be copied"),
            closing(reading(self._index)) as db,
            closing(reading(self._index)) as later,
        ):
            generation, missed = self._link_most(db, later)
            # Not `reading`: to hold the write lock one must be able to write.
            with closing(index.connect(self._index)) as writing:
                writing.execute("BEGIN IMMEDIATE")
                try:
                    self._link_all(db.execute(_FILES, {"after": generation}))
                    self._link_all(row for file in missed if (row := _row_of(db, file)) is not None)
                    self._link_all(db.execute(_UPLOADS))
                    db.execute("BEGIN")
                    db.execute("SELECT 1 FROM last").fetchone()  # from here on it reads this state
                finally:
                    writing.execute("ROLLBACK")
            copy_database(db, self.copy)

    def buckets(self) -> list[str]:
        with closing(reading(self.copy)) as db:
            return [info.name for info in index.buckets(db)]

    def files(self) -> Iterator[SnapshotFile]:
        """Every file but the index: those of objects, of old versions, and of uploads that go on."""
        with closing(reading(self.copy)) as db:
            for bucket, name, place, file, size, crc32c in db.execute(_CONTENTS):
                path = f"{bucket}/{place}" if place is not None else f".trainshed/held/{file}"
                address = f"gs://{bucket}/{name.decode()}"
                yield SnapshotFile(path, str(self._folder / file), size, crc32c, address)
            for upload, received in db.execute("SELECT id, received FROM uploads WHERE done IS NULL"):
                if (self._folder / upload).exists():  # one that got no byte yet has no file
                    yield SnapshotFile(f".trainshed/held/{upload}", str(self._folder / upload), received)

    def _link_most(self, db: sqlite3.Connection, later: sqlite3.Connection) -> tuple[int, list[str]]:
        """Link while the server goes on; the last generation that was seen, and the files that moved."""
        missed: list[str] = []
        db.execute("BEGIN")
        generation = db.execute("SELECT generation FROM last").fetchone()[0]
        for row in db.execute(_FILES, {"after": -1}):
            if not (self._link(row) and _is_there(later, row)):
                (self._folder / row[1]).unlink(missing_ok=True)
                missed.append(row[1])
        db.execute("COMMIT")
        return generation, missed

    def _link_all(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self._link(row)  # a file that is gone is damage, which who copies it will see

    def _link(self, row: Row) -> bool:
        """Give the file a second name, in our folder; whether it was there."""
        bucket, file, place = row
        # Held first: what is there is surely this object's, while a place may have the one before it.
        sources = [self._root / ".trainshed" / "held" / file]
        if place is not None:
            sources.append(self._root / bucket / place)
        for source in sources:
            with suppress(FileNotFoundError, NotADirectoryError):
                share(source, self._folder / file)
                return True
        return False


def _is_there(later: sqlite3.Connection, row: Row) -> bool:
    """Whether the place, whose file we linked, still had this object: another may have taken it."""
    if row[2] is None:
        return True
    query = "SELECT 1 FROM objects WHERE bucket=? AND file=? AND place=?"
    return later.execute(query, row).fetchone() is not None


def _row_of(db: sqlite3.Connection, file: str) -> Row | None:
    kept = index.by_file(db, file)
    return None if kept is None else (kept.info.bucket, kept.file, kept.place)


def share(source: Path, target: Path) -> None:
    """Give a file a second name; a copy where that cannot be. A name that is there already stays."""
    try:
        os.link(source, target, follow_symlinks=False)
    except FileExistsError:
        return
    except FileNotFoundError:
        raise
    except OSError:  # another disk, one without links, or too many of them
        shutil.copy2(source, target, follow_symlinks=False)
