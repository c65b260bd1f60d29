"""IndexGuard: refuses a home whose buckets would vanish because their index is not there or is not theirs.

`Disk` asks it before it opens the index, `trainshed backup` before it copies it, and `trainshed restore
--rebuild-index` to know whether there is anything to make anew. SQLite makes an empty file where there is
none, and the server removes files that the index does not know; so both wait for this check. A marker beside
the folder of the buckets says that there was an index, and which: it is noticed too if the whole folder is
gone, such as a disk that is not mounted. It never repairs and never removes anything.
"""

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from trainshed.buckets import index_schema
from trainshed.core.errors import Unavailable
from trainshed.disk.folder_sync import write_durably
from trainshed.disk.sqlite_files import page_fault, reading

THOROUGH_UP_TO = 64 << 20  # bytes; checking every page of a larger file would slow the start


class IndexGuard:
    """`root` is the folder of the buckets, in a home."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._own = root / ".trainshed"
        self._index = self._own / "index.db"
        self._marker = root.with_name(f"{root.name}.created")

    def check(self) -> bool:
        """Whether there is an index; Unavailable if it is not the one of these buckets, or is missing."""
        fault = self.fault()
        if fault:
            raise Unavailable(
                f"The buckets' index {self._index} {fault}. Nothing was changed. Restore the home from a "
                f"backup (trainshed restore BACKUP --home {self._root.parent}); or make the index anew from "
                "the objects' files, which loses what only the index has, such as metadata and generations "
                f"(trainshed restore --rebuild-index --home {self._root.parent})."
            )
        return _size(self._index) > 0

    def fault(self) -> str:
        """What is wrong with the index; nothing if it is sound, or if this is the first start."""
        if self._index.exists() and not self._index.is_file():
            return "is not a file"
        if _size(self._index) == 0:
            what = "is empty" if self._index.exists() else "is gone"
            return f"{what}, and {reason}" if (reason := self._was_there()) else ""
        try:
            with closing(reading(self._index)) as db:
                return self._content_fault(db)
        except sqlite3.Error as error:
            return f"cannot be read: {error}"

    def settle(self, db: sqlite3.Connection) -> None:
        """Write the marker, for good, once the index has its tables."""
        identity = index_schema.identity(db)
        if self._marked() == identity:
            return
        write_durably(self._marker, identity)

    def _content_fault(self, db: sqlite3.Connection) -> str:
        tables, version = index_schema.tables(db), index_schema.version(db)
        if not tables:
            return f"is empty, and {reason}" if (reason := self._was_there()) else ""
        if not tables >= index_schema.TABLES:
            return "is a database of something else"
        if version > (known := len(index_schema.MIGRATIONS)):
            return (
                f"has version {version}, and this Trainshed knows those up to {known}: start the newer "
                "Trainshed that wrote it"
            )
        if _size(self._index) <= THOROUGH_UP_TO and (fault := page_fault(db)):
            return f"is damaged: {fault}"
        identity = index_schema.identity(db)
        return "is that of another home" if identity and self._marked() not in ("", identity) else ""

    def _was_there(self) -> str:
        """How one sees that there was an index; empty where nothing says so."""
        with suppress(FileNotFoundError):
            for name in sorted(os.listdir(self._root)):
                if name != ".trainshed" and (self._root / name).is_dir():
                    return f"there is the bucket {self._root / name}"
        with suppress(FileNotFoundError):
            if os.listdir(self._own / "held"):
                return f"there are files of objects in {self._own / 'held'}"
        if _size(Path(f"{self._index}-wal")):
            return f"{self._index.name}-wal, which belongs to it, is there"
        return "it was there before" if self._marker.exists() else ""

    def _marked(self) -> str:
        try:
            return self._marker.read_text("ascii", "replace").strip()
        except FileNotFoundError:
            return ""


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
