"""SQLite, PostgreSQL and the memory store keep the promises about image caches."""

import contextlib
import sqlite3
from pathlib import Path

import pytest

from tests.contracts.image_cache_store import ImageCacheStoreContract, a_cache
from tests.contracts.postgres import postgres
from tests.contracts.sql_store import OnPostgres, OnSqlite, Reopened
from tests.contracts.store_values import a_job
from trainshed.store import SqlStore
from trainshed.testing.store import MemoryStore

__all__ = ["postgres"]


class TestMemoryCaches(ImageCacheStoreContract):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()


class TestSqliteCaches(OnSqlite, ImageCacheStoreContract):
    async def test_they_are_there_in_the_next_life(self, store: SqlStore, reopen: Reopened) -> None:
        await store.insert_cache(a_cache())
        again = await reopen()
        assert await again.caches() == (a_cache(),)


async def test_a_database_from_before_there_were_caches_is_brought_up(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    store = SqlStore(f"sqlite:///{path}")
    await store.start()
    job = await store.insert(a_job(), ())
    await store.close()
    with contextlib.closing(sqlite3.connect(path)) as older:
        older.executescript("DROP TABLE image_caches; DELETE FROM schema_migrations WHERE name LIKE '0004%'")
    await store.start()
    try:
        assert await store.load(job.id) == job
        await store.insert_cache(a_cache())
        assert await store.caches() == (a_cache(),)
    finally:
        await store.close()


@pytest.mark.needs_postgres
class TestPostgresCaches(OnPostgres, ImageCacheStoreContract): ...
