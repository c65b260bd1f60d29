"""Makes the index of buckets anew from the files of their objects: for `trainshed restore --rebuild-index`.

A file below a bucket's folder says the object's name and its bytes, and no more. So every object gets a new
generation, and plain metadata; every bucket is a plain one. Files without a place do not say whose they are:
they are put aside, never removed. The new index takes its place in one step; the old one is put aside too. It
may assume that no server works on the home.
"""

import os
import secrets
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from trainshed.buckets import index, index_schema
from trainshed.buckets.index import StoredObject
from trainshed.buckets.index_guard import IndexGuard
from trainshed.buckets.places import name_of
from trainshed.buckets.sums import Sums
from trainshed.buckets.trouble import translated
from trainshed.core.bucket import BucketInfo, ObjectInfo, check_bucket_name, check_object_name
from trainshed.core.errors import Conflict, Invalid

PIECE = 1 << 20
_BATCH = 1000  # objects of one commit

LOST = (
    "The files do not say, and so it is lost: content types and other metadata of objects, their generations "
    "(all are new), when they were made (the time of the file counts), which were composed; old versions; "
    "uploads that were not finished; labels, projects, lifecycle rules and versioning of buckets."
)


@dataclass(slots=True)
class RebuiltIndex:
    """What came out of it."""

    buckets: int = 0
    objects: int = 0
    bytes: int = 0
    passed_over: list[str] = field(default_factory=list[str])  # paths that cannot be objects
    nameless: int = 0  # files without a place
    aside: str = ""  # where these are now, and the old index


class IndexRebuild:
    """`root` is the folder of the buckets; `progress` is told the objects and bytes so far."""

    def __init__(self, root: Path, progress: Callable[[int, int], None]) -> None:
        self._root = root
        self._own = root / ".trainshed"
        self._progress = progress
        self._result = RebuiltIndex()

    def make(self) -> RebuiltIndex:
        """Conflict if the index is sound: to make it anew would only lose."""
        guard = IndexGuard(self._root)
        if not guard.fault():
            raise Conflict(
                f"The buckets' index {self._own / 'index.db'} is sound, or there never was one: there is "
                "nothing to make anew."
            )
        with translated("The buckets' index cannot be made anew"):
            self._own.mkdir(0o700, parents=True, exist_ok=True)
            draft = self._own / "index.new"
            draft.unlink(missing_ok=True)
            os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            with closing(sqlite3.connect(draft, isolation_level=None)) as db:
                db.execute("PRAGMA journal_mode=DELETE")  # one file, whole when it is closed
                index_schema.make(db)
                self._fill(db)
                self._put_aside()
                draft.replace(self._own / "index.db")
                guard.settle(db)
        return self._result

    def _fill(self, db: sqlite3.Connection) -> None:
        now = datetime.now(UTC)
        for entry in sorted(os.listdir(self._root)):
            if entry == ".trainshed":
                continue
            try:
                check_bucket_name(entry)
            except Invalid:
                self._result.passed_over.append(str(self._root / entry))
                continue
            index.keep_bucket(
                db, BucketInfo(name=entry, project="", location="US", created_at=now, updated_at=now)
            )
            self._result.buckets += 1
            self._fill_bucket(db, entry)

    def _fill_bucket(self, db: sqlite3.Connection, bucket: str) -> None:
        db.execute("BEGIN")
        for number, place in enumerate(self._places(bucket), 1):
            self._keep(db, bucket, place)
            if number % _BATCH == 0:
                db.execute("COMMIT")
                db.execute("BEGIN")
        db.execute("COMMIT")

    def _places(self, bucket: str) -> Iterator[str]:
        top = self._root / bucket
        for folder, folders, names in os.walk(top):
            folders.sort()
            for name in sorted(names):
                yield os.path.relpath(os.path.join(folder, name), top)

    def _keep(self, db: sqlite3.Connection, bucket: str, place: str) -> None:
        path = self._root / bucket / place
        name = _object_name(place)
        if name is None or not stat.S_ISREG(path.lstat().st_mode):
            self._result.passed_over.append(str(path))
            return
        sums = Sums()
        with path.open("rb", buffering=0) as file:
            made_at = index.moment(os.fstat(file.fileno()).st_mtime_ns // 1000)
            while piece := file.read(PIECE):
                sums.feed((piece,))
                sums.feed_md5((piece,))
        info = ObjectInfo(
            bucket=bucket,
            name=name,
            generation=index.next_generation(db, datetime.now(UTC)),
            metageneration=1,
            size=sums.size,
            crc32c=sums.crc32c,
            md5=sums.md5,
            created_at=made_at,
            updated_at=made_at,
        )
        index.keep(db, StoredObject(info, secrets.token_hex(12), place), sums.blocks)
        self._result.objects += 1
        self._result.bytes += sums.size
        self._progress(self._result.objects, self._result.bytes)

    def _put_aside(self) -> None:
        """The old index, and files that the new one does not know: a start would remove these."""
        aside = self._own / f"aside-{time.strftime('%Y%m%dT%H%M%S')}-{secrets.token_hex(2)}"
        aside.mkdir(0o700)
        for name in ("index.db", "index.db-wal", "index.db-shm"):
            with suppress(FileNotFoundError):
                (self._own / name).rename(aside / name)
        held = self._own / "held"
        if held.exists():
            self._result.nameless = len(os.listdir(held))
            held.rename(aside / "held")
        self._result.aside = str(aside)


def _object_name(place: str) -> str | None:
    try:
        name = name_of(place)
        return check_object_name(name) if name is not None else None
    except Invalid:
        return None
