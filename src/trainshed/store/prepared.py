"""Statements that are compiled once and passed directly to the driver.

`writes.py` and `reads.py` use it for the few hot statements; all others go through SQLAlchemy, on the same
connection. SQLAlchemy writes the SQL once for each dialect. What it does around each call (contexts, results,
events) costs several times the statement itself. Errors are raised as SQLAlchemy's, so callers see no
difference.
"""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import ClauseElement, Connection
from sqlalchemy.exc import DBAPIError


class Prepared:
    """One statement. Values are passed by name, whatever style the driver uses."""

    def __init__(self, statement: ClauseElement, names: Sequence[str] | None = None) -> None:
        self._statement = statement
        self._names = None if names is None else list(names)  # of the columns, for an insert
        self._texts: dict[str, tuple[str, Sequence[str] | None]] = {}

    def run(self, connection: Connection, values: Mapping[str, Any]) -> Any:
        """Execute it once; the driver's cursor."""
        text, order = self._text(connection)
        given = values if order is None else [values[name] for name in order]
        return drive(connection, text, given)

    def run_each(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Execute it for many rows in one call of the driver."""
        if rows:
            text, order = self._text(connection)
            given = rows if order is None else [[values[name] for name in order] for values in rows]
            with _translated(connection, text):
                _raw(connection).cursor().executemany(text, given)

    def _text(self, connection: Connection) -> tuple[str, Sequence[str] | None]:
        known = self._texts.get(connection.dialect.name)
        if known is None:
            compiled = self._statement.compile(dialect=connection.dialect, column_keys=self._names)
            order = getattr(compiled, "positiontup", None)
            known = self._texts[connection.dialect.name] = (str(compiled), order)
        return known


def drive(connection: Connection, text: str, values: Any = ()) -> Any:
    """Execute the driver's own SQL; the driver's cursor."""
    with _translated(connection, text):
        cursor = _raw(connection).cursor()
        cursor.execute(text, values)
        return cursor


def commit(connection: Connection) -> None:
    """Commit the transaction of the connection."""
    if connection.in_transaction():
        connection.commit()
        return
    with _translated(connection, "COMMIT"):
        _raw(connection).commit()


def rollback(connection: Connection) -> None:
    if connection.in_transaction():
        connection.rollback()
        return
    with _translated(connection, "ROLLBACK"):
        _raw(connection).rollback()


def _raw(connection: Connection) -> Any:
    return connection.connection.dbapi_connection


@contextmanager
def _translated(connection: Connection, text: str) -> Generator[None]:
    dialect = connection.dialect
    driver: Any = dialect.loaded_dbapi
    try:
        yield
    except driver.Error as error:
        lost = dialect.is_disconnect(error, _raw(connection), None)
        raise DBAPIError.instance(  # pyright: ignore[reportCallIssue]
            text, None, error, driver.Error, connection_invalidated=lost, dialect=dialect
        ) from error
