"""Database: what the lanes need of a database besides SQL: opening, beginning, the meaning of errors."""

from typing import Protocol

from trainshed.core.errors import Unavailable
from trainshed.store.connection import SqlConnection, SqlError


class Database(Protocol):
    """One database of one dialect. All calls block: make them in a thread of the store."""

    where: str  # names the database in sentences

    def claim(self) -> None:
        """Make sure that this is the only server on it and that it is sound. Raises Unavailable."""
        ...

    def release(self) -> None:
        """Let another server claim it. Call this with all connections closed, also after a failed claim."""
        ...

    def created(self) -> None:
        """The schema exists: from now on an empty database counts as damaged."""
        ...

    def connect(self, *, writing: bool) -> SqlConnection: ...

    def connect_without_waiting(self) -> SqlConnection | None:
        """One that never waits, for small writes that need no flush; None where there is no such thing."""
        ...

    def begin(self, connection: SqlConnection, *, flush: bool = True) -> None:
        """Begin a transaction that writes; without `flush`, a power cut of this machine may take it back."""
        ...

    def explain(self, error: SqlError) -> Unavailable: ...
