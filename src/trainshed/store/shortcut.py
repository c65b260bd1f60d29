"""Shortcut: makes writes without flush directly on the event loop's thread, if nobody else is writing.

SqlStore uses it. A commit without flush stays in the kernel's memory and takes a third of the time of a
round trip to the writer's thread; the start of a job waits for it. If this connection would have to wait (for
another transaction or a checkpoint) or meets an error, the write goes to the writer, which waits and reports.
"""

from collections.abc import Callable
from typing import TypeVar

from trainshed.core.errors import TrainshedError
from trainshed.store.connection import SqlConnection, SqlError

T = TypeVar("T")


class Shortcut:
    def __init__(self, connection: SqlConnection) -> None:
        self._connection: SqlConnection | None = connection

    def take(self, run: Callable[[SqlConnection], T]) -> T | None:
        """The committed result; None if the writer has to make the write. Raises what `run` raises."""
        if self._connection is None:
            return None
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except SqlError:
            return None
        try:
            value = run(self._connection)
            self._connection.commit()
        except TrainshedError:
            self._connection.rollback()
            raise
        except SqlError:
            self.close()  # the writer will meet and report the same error
            return None
        return value

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
