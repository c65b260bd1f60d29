"""SQLite as the database: one file beside its lock and its marker.

WAL, so that readers never wait for the writer; synchronous=FULL, so that what was acknowledged survives a
power cut, except for transactions begun without `flush`, which survive only a kill. The lock keeps a
second server out; other programs may read, and may even hold the write lock for a while: writes then
wait. A file that was removed or replaced takes no more commits. No error of SQLite leaves this file
untranslated.
"""

import logging
import sqlite3
from datetime import timedelta
from pathlib import Path
from stat import S_IMODE

from trainshed.core.errors import Unavailable
from trainshed.disk.sqlite_files import SqliteFiles
from trainshed.store.connection import SqlConnection, SqlError, translated
from trainshed.store.damage import check_content, check_file, damaged
from trainshed.store.lock import FileLock

log = logging.getLogger(__name__)

OTHERS = 0o077  # the permissions of other users
BUSY = timedelta(seconds=30)  # how long another program may hold the write lock before writes give up
_PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "temp_store=MEMORY")


class SqliteDatabase:
    def __init__(self, path: Path, busy: timedelta = BUSY) -> None:
        self.where = f"The database {path}"
        self._path = path
        self._files = SqliteFiles(path, self.where)
        self._busy = busy
        self._marker = Path(f"{path}.created")
        self._flushes = True  # of the one writing connection
        self._lock = FileLock(Path(f"{path}.lock"))

    def claim(self) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._lock.take()
            check_file(self._path, self._marker)
            fresh = not self._path.exists()
            if fresh and self._marker.exists():
                raise Unavailable(
                    f"{self.where} is gone, and it was there before. Put it back, from a backup if need be; "
                    f"or remove {self._marker} to start with an empty one."
                )
            if fresh:
                self._path.touch(mode=0o600)
        except OSError as error:
            raise Unavailable(f"{self.where} cannot be used: {error.strerror or error}.") from error
        if not fresh:
            check_content(self._path)
            for end in ("", "-wal", "-shm"):
                _close_to_others(Path(f"{self._path}{end}"))

    def release(self) -> None:
        self._lock.release()

    def created(self) -> None:
        try:
            self._marker.touch(mode=0o600)
        except OSError as error:
            raise Unavailable(f"{self._marker} cannot be written: {error.strerror or error}.") from error

    def connect(self, *, writing: bool) -> SqlConnection:
        if writing:
            self._files.reconnecting()
            self._flushes = True
        connection = self._open(writing=writing)
        if not writing:
            connection.execute("PRAGMA query_only=ON")
        return connection

    def connect_without_waiting(self) -> SqlConnection | None:
        connection = self._open(writing=True)
        # It waits for no lock; checkpoints wait for the disk, so the writer makes them.
        for pragma in ("busy_timeout=0", "synchronous=NORMAL", "wal_autocheckpoint=0"):
            connection.execute(f"PRAGMA {pragma}")
        return connection

    def begin(self, connection: SqlConnection, *, flush: bool = True) -> None:
        if flush is not self._flushes:
            connection.execute(f"PRAGMA synchronous={'FULL' if flush else 'NORMAL'}")
            self._flushes = flush
        # Immediate: take the write lock now and wait for it here, not in the middle of the work.
        connection.execute("BEGIN IMMEDIATE")
        self._files.begun()

    def explain(self, error: SqlError) -> Unavailable:
        name = getattr(error.reason, "sqlite_errorname", None) or ""
        match name.split("_")[1] if name.startswith("SQLITE_") else "":
            case "BUSY" | "LOCKED":
                seconds = self._busy.total_seconds()
                how = f"has been locked by another program for {seconds:g} s. Nothing was changed; try again."
            case "FULL":
                how = "cannot grow: the disk is full. Nothing was changed; free some space and try again."
            case "IOERR":
                how = f"cannot be read or written ({error.reason}). Is the disk full or broken?"
            case "CORRUPT" | "NOTADB":
                return damaged(self._path, str(error.reason))
            case _:
                how = f"cannot be used: {error.reason}."
        return Unavailable(f"{self.where} {how}")

    def _open(self, *, writing: bool) -> SqlConnection:
        self._files.check()
        with translated(sqlite3):
            raw = sqlite3.connect(
                self._files.uri,
                timeout=self._busy.total_seconds(),
                isolation_level=None,
                check_same_thread=False,
                uri=True,
            )
        raw.text_factory = _text
        check = self._files.check if writing else lambda: None
        connection = SqlConnection(raw, sqlite3, "sqlite", check=check)
        try:
            for pragma in _PRAGMAS:
                connection.execute(f"PRAGMA {pragma}")
            self._files.opened()
            self._files.check()  # again: it may have been replaced before it was opened
        except (SqlError, Unavailable):
            connection.close()
            raise
        return connection


def _close_to_others(path: Path) -> None:
    """Nobody else may read the jobs. A log that SQLite makes later gets the mode of the database."""
    mode = S_IMODE(path.stat().st_mode) if path.exists() else 0
    if not mode & OTHERS:
        return
    try:
        path.chmod(mode & ~OTHERS)
    except OSError as error:
        raise Unavailable(
            f"Other users can read {path} (mode {mode:03o}), and that cannot be changed: {error.strerror}. "
            f"Run `chmod 600 {path}` as its owner, or start the server as that user."
        ) from error
    log.warning("%s could be used by others (mode %03o); it is now closed to them", path, mode)


def _text(data: bytes) -> str | bytes:
    """The bytes themselves where they are not UTF-8: else one damaged row would fail the whole query."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data
