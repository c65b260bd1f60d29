"""Checks a SQLite file before it is written to: a damaged or foreign one is refused, never repaired.

SQLite starts a new database if the file is empty, and may delete the write-ahead log if it is truncated. That
would lose jobs silently. This module only reads. It must run before any connection is open: closing a file
drops the process's POSIX locks on it.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

from trainshed.core.errors import Unavailable
from trainshed.disk.sqlite_files import page_fault, reading
from trainshed.store.ownership import check_owner

MAGIC = b"SQLite format 3\0"
HEADER = 100
WAL_HEADER = 32
FRAME_HEADER = 24
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
THOROUGH_UP_TO = 64 * 1024 * 1024  # bytes; checking every page of a larger file would slow the start


def damaged(path: Path, how: str) -> Unavailable:
    return Unavailable(
        f"The database {path} is damaged: {how}. Nothing was changed. Restore it from a backup, "
        f"or move {path.name}, {path.name}-wal and {path.name}.created away to start with an empty one."
    )


def check_file(path: Path, marker: Path) -> None:
    """Raise Unavailable unless the file can be opened safely, or this is the first start."""
    wal = Path(f"{path}-wal")
    wal_size = wal.stat().st_size if wal.exists() else 0
    if not path.exists():
        if wal_size > 0:
            raise damaged(path, f"the file is missing, but its write-ahead log {wal.name} is there")
        return
    if not path.is_file():
        raise damaged(path, "it is not a file")
    size = path.stat().st_size
    if size == 0:
        # A crash during the very first start leaves an empty file; later it is never empty.
        if wal_size > 0 or marker.exists():
            raise damaged(path, "the file is empty, although jobs were kept in it before")
        return
    with path.open("rb") as file:
        header = file.read(HEADER)
    if len(header) < HEADER:
        raise damaged(path, f"it has been cut off after {size} bytes")
    if not header.startswith(MAGIC):
        raise damaged(path, "it is not a SQLite database, or its first bytes have been overwritten")
    page = page_size(header)
    if page < 512 or page & (page - 1):
        raise damaged(path, "its header has been overwritten")
    if size % page and wal_size == 0:
        raise damaged(path, "it has been cut off in the middle of a page")


def check_content(path: Path) -> None:
    """Ask SQLite who made the file, and about its pages: all of them if it is small, else their number."""
    with closing(reading(path)) as connection:
        try:
            _check_pages(path, connection)
            check_owner(path, connection)
        except sqlite3.DatabaseError as error:
            # The low byte is the kind of error.
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE:
                raise damaged(path, str(error)) from error
            raise Unavailable(f"The database {path} cannot be read: {error}.") from error


def _check_pages(path: Path, connection: sqlite3.Connection) -> None:
    pages = int(connection.execute("PRAGMA page_count").fetchone()[0])
    page = int(connection.execute("PRAGMA page_size").fetchone()[0])
    size = path.stat().st_size
    wal = Path(f"{path}-wal")
    # A crash in the middle of a checkpoint leaves pages only in the log: those are not missing.
    frames = max(0, wal.stat().st_size - WAL_HEADER) // (page + FRAME_HEADER) if wal.exists() else 0
    if size // page + frames < pages:
        raise damaged(path, f"of {pages} pages of {page} bytes, only {size} bytes are left")
    if size <= THOROUGH_UP_TO and (fault := page_fault(connection)):
        raise damaged(path, fault)


def page_size(header: bytes) -> int:
    size = int.from_bytes(header[16:18], "big")
    return 65536 if size == 1 else size
