"""Writes that need no disk, done at once where nobody else is writing.

A commit without flush goes no further than the kernel's memory, and takes a third of the time that handing it
to the writer's thread and back takes; a job that has just been admitted waits for just that. Whenever this
connection would have to wait for anything (another transaction, a checkpoint), or meets any trouble, it
leaves the write to the writer, who waits and explains. It belongs to the event loop's thread.
"""

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from trainshed.core.errors import TrainshedError
from trainshed.store.database import discard
from trainshed.store.prepared import commit, drive, rollback

T = TypeVar("T")


class Shortcut:
    def __init__(self, connection: Connection) -> None:
        self._connection: Connection | None = connection

    def take(self, run: Callable[[Connection], T]) -> T | None:
        """What came of it, committed; None where it has to go the long way. Raises what `run` refuses."""
        if self._connection is None:
            return None
        try:
            drive(self._connection, "BEGIN IMMEDIATE")
        except DBAPIError:
            return None
        try:
            value = run(self._connection)
            commit(self._connection)
        except TrainshedError:
            rollback(self._connection)
            raise
        except DBAPIError:
            self.close()  # whatever it is, the writer will meet it as well
            return None
        return value

    def close(self) -> None:
        if self._connection is not None:
            discard(self._connection)
            self._connection = None
