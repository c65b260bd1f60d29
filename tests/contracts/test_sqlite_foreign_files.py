"""A SQLite file that another program made is not taken for ours; files of older releases are."""

import contextlib
import sqlite3
from pathlib import Path

import pytest

from tests.contracts.sql_store import filled, opened
from trainshed.core.errors import Unavailable
from trainshed.store import SqlStore
from trainshed.store.migrations import APPLICATION


@pytest.mark.parametrize(
    "made",
    [
        "CREATE TABLE moz_places (id INTEGER PRIMARY KEY, url TEXT)",
        "CREATE TABLE jobs (id INTEGER PRIMARY KEY)",
        "CREATE TABLE schema_migrations (version TEXT)",
        "CREATE TABLE schema_migrations AS SELECT 'x' AS name, 'y' AS applied_at",
        "PRAGMA application_id=252006674",
    ],
)
@pytest.mark.fault(
    "The database",
    "The database's file is one of another program",
    "The server does not start, and leaves the file as it is.",
)
async def test_the_database_of_another_program_is_refused_and_left_as_it_is(
    tmp_path: Path, made: str
) -> None:
    path = tmp_path / "jobs.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(made)
    before = path.read_bytes()
    with pytest.raises(Unavailable, match=r"is the database of another program.*--database"):
        await SqlStore(f"sqlite:///{path}").start()
    assert path.read_bytes() == before


async def test_files_of_older_releases_and_of_a_first_start_that_crashed_are_ours(tmp_path: Path) -> None:
    await filled(tmp_path / "jobs.db", 1)
    with contextlib.closing(sqlite3.connect(tmp_path / "jobs.db")) as connection:
        connection.execute("PRAGMA application_id=0")
    async with opened(tmp_path / "jobs.db") as store:
        assert len(await store.active()) == 1
    new = tmp_path / "new.db"
    with contextlib.closing(sqlite3.connect(new)) as connection:
        connection.execute(
            "CREATE TABLE schema_migrations (name TEXT NOT NULL PRIMARY KEY, applied_at TEXT NOT NULL)"
        )
    async with opened(new) as store:
        assert await store.active() == ()
    with contextlib.closing(sqlite3.connect(new)) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION,)
