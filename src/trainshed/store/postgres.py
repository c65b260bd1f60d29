"""PostgreSQL as the database, by URL.

A session-level advisory lock on the writing connection keeps a second server out; it ends with the
connection, so a killed server does not block the next one. It needs sessions of its own: a pooler in
transaction mode would break the lock. No error of PostgreSQL leaves this file untranslated, and no
password ends up in a sentence.
"""

import os
import platform
import time

from sqlalchemy import Connection, NullPool, create_engine
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError

from trainshed.core.errors import Unavailable
from trainshed.store.database import discard
from trainshed.store.prepared import drive

LOCK = 0x747261696E  # any number nobody else uses for an advisory lock in the same database
PATIENCE = 5.0  # seconds PostgreSQL may need to notice that an earlier server's connection is gone
_OWNER = """
    SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
    WHERE l.locktype = 'advisory' AND l.granted
      AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND (l.classid::bigint << 32 | l.objid::bigint) = %s
"""


class PostgresDatabase:
    def __init__(self, url: URL, patience: float = PATIENCE) -> None:
        url = url.set(drivername="postgresql+psycopg")
        self.where = f"The database {url.set(drivername='postgresql').render_as_string(hide_password=True)}"
        self._patience = patience
        # PostgreSQL cuts names at 63 bytes.
        name = f"trainshed pid {os.getpid()} on {platform.node()}"[:63]
        arguments = {"application_name": name, "connect_timeout": 10}
        self._engine = create_engine(url, poolclass=NullPool, connect_args=arguments)

    def claim(self) -> None:
        try:
            connection = self.connect(writing=True)
        except DBAPIError as error:
            raise self.explain(error) from error
        connection.close()

    def release(self) -> None:
        self._engine.dispose()

    def created(self) -> None:
        """Nothing to do: the server knows whether its database is empty."""

    def connect(self, *, writing: bool) -> Connection:
        connection = self._engine.connect()
        if not writing:
            return connection.execution_options(isolation_level="AUTOCOMMIT")
        try:
            self._lock(connection)
        except (DBAPIError, Unavailable):
            discard(connection)
            raise
        return connection

    def connect_without_waiting(self) -> Connection | None:
        return None  # every answer comes over a network

    def begin(self, connection: Connection, *, flush: bool = True) -> None:
        """psycopg begins by itself with the first statement."""
        if not flush:
            drive(connection, "SET LOCAL synchronous_commit TO OFF")

    def explain(self, error: DBAPIError) -> Unavailable:
        reason = str(error.orig).strip().partition("\n")[0].rstrip(".")
        return Unavailable(f"{self.where} cannot be used: {reason}.")

    def _lock(self, connection: Connection) -> None:
        until = time.monotonic() + self._patience
        while not connection.exec_driver_sql("SELECT pg_try_advisory_lock(%s)", (LOCK,)).scalar_one():
            if time.monotonic() > until:
                owner = connection.exec_driver_sql(_OWNER, (LOCK,)).scalar()
                raise Unavailable(
                    f"Another server ({owner or 'unknown'}) already uses {self.where[4:]}. Stop it first."
                )
            connection.rollback()
            time.sleep(0.05)
        connection.commit()
