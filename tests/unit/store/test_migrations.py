"""In a database in memory: no file is touched."""

import contextlib
import sqlite3
from collections.abc import Iterator

import pytest

from trainshed.core.errors import Unavailable
from trainshed.store.connection import SqlConnection, SqlError
from trainshed.store.migrations import MIGRATIONS, Migration, migrate
from trainshed.store.tables import TABLES


@pytest.fixture
def connection() -> Iterator[SqlConnection]:
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as raw:
        yield SqlConnection(raw, sqlite3, "sqlite")


def begin(connection: SqlConnection) -> None:
    connection.execute("BEGIN IMMEDIATE")


def table_names(connection: SqlConnection) -> set[str]:
    return {name for (name,) in connection.rows("SELECT name FROM sqlite_master WHERE type = 'table'")}


def test_the_migrations_make_exactly_the_tables_the_statements_use(connection: SqlConnection) -> None:
    migrate(connection, begin, "The database")
    assert table_names(connection) == set(TABLES)
    for table, columns in TABLES.items():
        names = connection.rows("SELECT name FROM pragma_table_info(:of_table)", {"of_table": table})
        assert tuple(name for (name,) in names) == columns


def test_a_second_run_changes_nothing(connection: SqlConnection) -> None:
    migrate(connection, begin, "The database")
    migrate(connection, begin, "The database")
    assert connection.row("SELECT count(*) FROM schema_migrations") == (len(MIGRATIONS),)


def test_only_what_is_missing_is_applied_in_order(connection: SqlConnection) -> None:
    migrate(connection, begin, "The database")
    more = (
        *MIGRATIONS,
        Migration("0002_a", ("CREATE TABLE a (x {text})",)),
        Migration("0003_b", ("INSERT INTO a VALUES ('1')",)),
    )
    migrate(connection, begin, "The database", more)
    migrate(connection, begin, "The database", more)
    assert connection.rows("SELECT x FROM a") == [("1",)]


def test_a_step_that_fails_leaves_nothing_behind(connection: SqlConnection) -> None:
    broken = (*MIGRATIONS, Migration("0002", ("CREATE TABLE half (x {text})", "nonsense")))
    with pytest.raises(SqlError):
        migrate(connection, begin, "The database", broken)
    connection.rollback()
    assert "half" not in table_names(connection)
    migrate(connection, begin, "The database")


def test_a_database_of_a_newer_version_is_refused_by_name(connection: SqlConnection) -> None:
    migrate(connection, begin, "The database", (*MIGRATIONS, Migration("9999_from_the_future", ())))
    with pytest.raises(Unavailable, match=r"The database jobs\.db .*newer version.*9999_from_the_future"):
        migrate(connection, begin, "The database jobs.db")


def test_the_names_of_migrations_are_unique_and_in_order() -> None:
    names = [migration.name for migration in MIGRATIONS]
    assert names == sorted(set(names))
