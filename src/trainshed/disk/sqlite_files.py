"""SQLite files, for `store/`, `buckets/` and backups: how they are opened, checked, and noticed to be gone.

SQLite goes on writing to a file that has lost its name, and all of that is gone when the process ends. The
writers call `SqliteFiles.check` before each commit. It costs two calls of stat.
"""

import sqlite3
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote

from trainshed.core.errors import Unavailable

_HEAD = "*** in database main ***"  # of what SQLite says about pages

Identity: TypeAlias = tuple[int, int]  # device and inode


def sqlite_uri(path: Path, mode: str) -> str:
    """What SQLite opens: "ro" only to read, "rw" only where the file is there, "rwc" makes it."""
    return f"file:{quote(str(path.absolute()))}?mode={mode}"


def reading(path: Path) -> sqlite3.Connection:
    """A connection that only reads: closing it writes no log into the file. It begins no transaction."""
    return sqlite3.connect(sqlite_uri(path, "ro"), uri=True, isolation_level=None, timeout=30)


def page_fault(connection: sqlite3.Connection) -> str:
    """What is wrong with the pages of the database; empty if nothing is. It reads all of them."""
    verdict = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    return "" if verdict == "ok" else " ".join(verdict.replace(_HEAD, "").split()).rstrip(".")


class SqliteFiles:
    """`what` names the database in sentences, and begins one."""

    def __init__(self, path: Path, what: str) -> None:
        self._path, self._log, self._what = path, Path(f"{path}-wal"), what
        self._known: dict[Path, Identity] = {}

    @property
    def uri(self) -> str:
        """What to open. Only the first opening makes the file: later it is there, or was removed."""
        return sqlite_uri(self._path, "rw" if self._path in self._known else "rwc")

    def opened(self) -> None:
        """Remember which file was opened, unless that is known."""
        self._remember(self._path)

    def begun(self) -> None:
        """Remember which log is written: it exists while a transaction is open."""
        self._remember(self._log)

    def reconnecting(self) -> None:
        """Forget the log: SQLite removes it with the last connection, and makes another."""
        self._known.pop(self._log, None)

    def check(self) -> None:
        """Raise Unavailable where a file that was opened no longer has its name."""
        for path, known in self._known.items():
            now = _identity(path)
            if now != known:
                name = self._what if path == self._path else f"{self._what}: its log {path}"
                how = "removed" if now is None else "replaced by another file"
                raise Unavailable(
                    f"{name} was {how} while the server ran. Nothing was changed. If it was moved, move it "
                    "back. Otherwise stop the server, restore the file from a backup, and start it again."
                )

    def _remember(self, path: Path) -> None:
        if path not in self._known and (identity := _identity(path)) is not None:
            self._known[path] = identity


def _identity(path: Path) -> Identity | None:
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Unavailable(f"{path} cannot be looked at: {error.strerror}.") from error
    return status.st_dev, status.st_ino
