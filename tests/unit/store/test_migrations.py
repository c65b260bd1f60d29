"""In a database in memory: no file is touched."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, create_engine, inspect
from sqlalchemy.exc import OperationalError

from trainshed.core.errors import Unavailable
from trainshed.store.migrations import MIGRATIONS, Migration, migrate
from trainshed.store.tables import metadata


@pytest.fixture
def connection() -> Iterator[Connection]:
    engine = create_engine("sqlite://", connect_args={"isolation_level": None})
    with engine.connect() as found:
        yield found
    engine.dispose()


def begin(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def test_the_migrations_make_exactly_the_tables_the_statements_use(connection: Connection) -> None:
    migrate(connection, begin, "The database")
    found = inspect(connection)
    assert set(found.get_table_names()) == set(metadata.tables)
    for name, table in metadata.tables.items():
        columns = {column["name"]: column for column in found.get_columns(name)}
        assert list(columns) == [column.name for column in table.columns]
        for column in table.columns:
            assert str(columns[column.name]["type"]) == str(column.type.compile(connection.dialect))
            assert columns[column.name]["nullable"] == column.nullable
        keys = found.get_pk_constraint(name)["constrained_columns"]
        assert keys == [column.name for column in table.primary_key.columns]
        indices = {
            index["name"]: (index["column_names"], bool(index["unique"])) for index in found.get_indexes(name)
        }
        assert indices == {
            index.name: ([column.name for column in index.columns], bool(index.unique))
            for index in table.indexes
        }


def test_a_second_run_changes_nothing(connection: Connection) -> None:
    migrate(connection, begin, "The database")
    migrate(connection, begin, "The database")
    count = connection.exec_driver_sql("SELECT count(*) FROM schema_migrations").scalar_one()
    assert count == len(MIGRATIONS)


def test_only_what_is_missing_is_applied_in_order(connection: Connection) -> None:
    migrate(connection, begin, "The database")
    more = (
        *MIGRATIONS,
        Migration("0002_a", ("CREATE TABLE a (x {text})",)),
        Migration("0003_b", ("INSERT INTO a VALUES ('1')",)),
    )
    migrate(connection, begin, "The database", more)
    migrate(connection, begin, "The database", more)
    assert connection.exec_driver_sql("SELECT x FROM a").scalars().all() == ["1"]


def test_a_step_that_fails_leaves_nothing_behind(connection: Connection) -> None:
    broken = (*MIGRATIONS, Migration("0002", ("CREATE TABLE half (x {text})", "nonsense")))
    with pytest.raises(OperationalError):
        migrate(connection, begin, "The database", broken)
    connection.rollback()
    assert not inspect(connection).has_table("half")
    migrate(connection, begin, "The database")


def test_a_database_of_a_newer_version_is_refused_by_name(connection: Connection) -> None:
    migrate(connection, begin, "The database", (*MIGRATIONS, Migration("9999_from_the_future", ())))
    with pytest.raises(Unavailable, match=r"The database jobs\.db .*newer version.*9999_from_the_future"):
        migrate(connection, begin, "The database jobs.db")


def test_the_names_of_migrations_are_unique_and_in_order() -> None:
    names = [migration.name for migration in MIGRATIONS]
    assert names == sorted(set(names))
