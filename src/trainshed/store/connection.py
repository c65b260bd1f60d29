"""SqlConnection: a connection to a database, the same for SQLite and PostgreSQL.

`sqlite.py` and `postgres.py` make it, everything else in this folder uses it. Statements are text, in the SQL
that both databases share. A value is `:name` in the text and is passed beside it, never written into it.
Errors of the drivers are raised as SqlError.
"""

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any

from trainshed.core.errors import Unavailable

_NO_VALUES: Mapping[str, Any] = {}


class SqlError(Exception):
    """A database failed, or refused a statement; `reason` is the driver's error."""

    def __init__(self, reason: BaseException, *, is_lost: bool = False) -> None:
        super().__init__(str(reason))
        self.reason = reason
        self.is_lost = is_lost  # the connection is gone: a new one may succeed


class SqlIntegrityError(SqlError):
    """A key exists already, or a reference leads nowhere."""


class SqlDataError(SqlError):
    """The database does not take this value."""


class SqlConnection:
    """`driver` is the module of PEP 249 that made `raw`; `dialect` is "sqlite" or "postgresql".

    `check` is called before each commit, and raises Unavailable to refuse it.
    """

    def __init__(
        self,
        raw: Any,
        driver: Any,
        dialect: str,
        is_lost: Callable[[], bool] = lambda: False,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self.dialect = dialect
        self._raw, self._driver, self._is_lost, self._check = raw, driver, is_lost, check
        self._text = _plain_text if dialect == "sqlite" else _psycopg_text

    def execute(self, text: str, values: Mapping[str, Any] = _NO_VALUES) -> int:
        """Execute a statement; how many rows it changed."""
        with translated(self._driver, self._is_lost):
            return self._raw.execute(self._text(text), values).rowcount

    def rows(self, text: str, values: Mapping[str, Any] = _NO_VALUES) -> list[tuple[Any, ...]]:
        """All rows that a query finds."""
        with translated(self._driver, self._is_lost):
            return self._raw.execute(self._text(text), values).fetchall()

    def row(self, text: str, values: Mapping[str, Any] = _NO_VALUES) -> tuple[Any, ...] | None:
        """The first row that a query finds."""
        with translated(self._driver, self._is_lost):
            return self._raw.execute(self._text(text), values).fetchone()

    def execute_each(self, text: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Execute one statement for many rows in one call of the driver."""
        if rows:
            with translated(self._driver, self._is_lost):
                self._raw.cursor().executemany(self._text(text), rows)

    def commit(self) -> None:
        """Commit the transaction, if one is open. Where that is refused, it is rolled back."""
        try:
            self._check()
        except Unavailable:
            self.rollback()
            raise
        with translated(self._driver, self._is_lost):
            self._raw.commit()

    def rollback(self) -> None:
        with translated(self._driver, self._is_lost):
            self._raw.rollback()

    def close(self) -> None:
        """Close it, whatever state it is in: an open transaction is rolled back."""
        with suppress(SqlError), translated(self._driver):
            self._raw.close()


@contextmanager
def translated(driver: Any, is_lost: Callable[[], bool] = lambda: False) -> Generator[None]:
    """Raise the driver's errors as SqlError."""
    try:
        yield
    except driver.IntegrityError as error:
        raise SqlIntegrityError(error) from error
    except driver.DataError as error:
        raise SqlDataError(error) from error
    except driver.Error as error:
        raise SqlError(error, is_lost=is_lost()) from error


def insert_into(table: str, columns: Sequence[str]) -> str:
    """The statement that inserts a row whose values are named like the columns."""
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(f':{name}' for name in columns)})"


def _plain_text(text: str) -> str:
    return text


@lru_cache(maxsize=512)
def _psycopg_text(text: str) -> str:
    """The text with values marked as psycopg expects them. `::` is a cast, not a value."""
    return re.sub(r"(?<!:):([a-z]\w*)", r"%(\1)s", text.replace("%", "%%"))
