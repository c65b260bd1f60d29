"""PostgreSQL as the database, by URL.

A session-level advisory lock on the writing connection keeps a second server out; it ends with the
connection, so a killed server does not block the next one. It needs sessions of its own: a pooler in
transaction mode would break the lock. Every commit is flushed: PostgreSQL may crash while the programs of
jobs run on, so nothing would be decided anew. No error of PostgreSQL leaves this file untranslated, and no
password ends up in a sentence.
"""

import os
import platform
import shlex
import sys
import time
from types import ModuleType
from urllib.parse import urlsplit

from trainshed.core.errors import Unavailable
from trainshed.store.connection import SqlConnection, SqlError, translated

LOCK = 0x747261696E  # any number nobody else uses for an advisory lock in the same database
PATIENCE = 5.0  # seconds PostgreSQL may need to notice that an earlier server's connection is gone
# A database may be configured not to flush. What it is configured to do for its replicas stays.
_FLUSH = """
    SELECT set_config('synchronous_commit', 'on', false)
    WHERE current_setting('synchronous_commit') = 'off'
"""
_OWNER = """
    SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
    WHERE l.locktype = 'advisory' AND l.granted
      AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND (l.classid::bigint << 32 | l.objid::bigint) = :lock
"""


class PostgresDatabase:
    def __init__(self, url: str, patience: float = PATIENCE) -> None:
        self.where = f"The database {_without_password(url)}"
        self._url, self._patience = url, patience

    def claim(self) -> None:
        try:
            connection = self.connect(writing=True)
        except SqlError as error:
            raise self.explain(error) from error
        connection.close()

    def release(self) -> None:
        """Nothing to do: the lock ended with its connection."""

    def created(self) -> None:
        """Nothing to do: the server knows whether its database is empty."""

    def connect(self, *, writing: bool) -> SqlConnection:
        psycopg = self._driver()
        # PostgreSQL cuts names at 63 bytes.
        name = f"trainshed pid {os.getpid()} on {platform.node()}"[:63]
        with translated(psycopg):
            raw = psycopg.connect(
                self._url, autocommit=not writing, application_name=name, connect_timeout=10
            )
        connection = SqlConnection(raw, psycopg, "postgresql", lambda: raw.closed or raw.broken)
        if writing:
            try:
                connection.execute(_FLUSH)
                self._lock(connection)
            except (SqlError, Unavailable):
                connection.close()
                raise
        return connection

    def _driver(self) -> ModuleType:
        """Imported here: servers that use SQLite need not have it."""
        try:
            import psycopg
        except ImportError as error:
            raise Unavailable(
                f"{self.where} cannot be used: its driver psycopg cannot be imported ({error}). "
                f"Run `{shlex.quote(sys.executable)} -m pip install 'trainshed[postgres]'`, then start again."
            ) from error
        return psycopg

    def connect_without_waiting(self) -> SqlConnection | None:
        return None  # every answer comes over a network

    def begin(self, connection: SqlConnection, *, flush: bool = True) -> None:
        """psycopg begins by itself with the first statement. What `flush` says is not used: see above."""

    def explain(self, error: SqlError) -> Unavailable:
        reason = str(error.reason).strip().partition("\n")[0].rstrip(".")
        return Unavailable(f"{self.where} cannot be used: {reason}.")

    def _lock(self, connection: SqlConnection) -> None:
        until = time.monotonic() + self._patience
        lock = {"lock": LOCK}
        while connection.row("SELECT pg_try_advisory_lock(:lock)", lock) != (True,):
            if time.monotonic() > until:
                owner = connection.row(_OWNER, lock)
                raise Unavailable(
                    f"Another server ({(owner and owner[0]) or 'unknown'}) already uses {self.where[4:]}. "
                    "Stop it first."
                )
            connection.rollback()
            time.sleep(0.05)
        connection.commit()


def _without_password(url: str) -> str:
    """The URL for sentences. Its options are left out: they may have a password, too."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise Unavailable(
            f"The URL of the PostgreSQL database cannot be read: {error}. "
            "It should look like postgresql://user@host/name."
        ) from error
    user, at, host = parts.netloc.rpartition("@")
    name, colon, _ = user.partition(":")
    return f"postgresql://{name}{':***' if colon else ''}{at}{host}{parts.path}"
