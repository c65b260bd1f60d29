"""SQLite, PostgreSQL and the memory store keep the promises about persistent resources."""

import contextlib
import sqlite3
from pathlib import Path

import pytest

from tests.contracts.persistent_resource_store import (
    PersistentResourceStoreContract,
    a_resource,
    an_operation,
)
from tests.contracts.postgres import postgres
from tests.contracts.sql_store import OnPostgres, OnSqlite, Reopened
from trainshed.store import SqlStore
from trainshed.testing.store import MemoryStore

__all__ = ["postgres"]


class TestMemoryResources(PersistentResourceStoreContract):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()


class TestSqliteResources(OnSqlite, PersistentResourceStoreContract):
    async def test_they_are_there_in_the_next_life(self, store: SqlStore, reopen: Reopened) -> None:
        await store.insert_resource(a_resource(), an_operation(1, a_resource()))
        again = await reopen()
        assert await again.resources() == (a_resource(),)


async def test_a_database_from_before_there_were_resources_is_brought_up(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    store = SqlStore(f"sqlite:///{path}")
    await store.start()
    await store.close()
    with contextlib.closing(sqlite3.connect(path)) as older:
        older.executescript(
            "DROP TABLE persistent_resources;"
            "DELETE FROM schema_migrations WHERE name LIKE '%persistent_resources'"
        )
    await store.start()
    try:
        await store.insert_resource(a_resource(), an_operation(1, a_resource()))
        assert await store.resources() == (a_resource(),)
    finally:
        await store.close()


@pytest.mark.needs_postgres
class TestPostgresResources(OnPostgres, PersistentResourceStoreContract): ...
