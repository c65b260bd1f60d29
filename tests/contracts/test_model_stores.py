"""SQLite, PostgreSQL and the memory store keep the promises about models."""

import contextlib
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.contracts.model_store import ModelStoreContract, a_pipeline, trained
from tests.contracts.postgres import Server, postgres
from tests.contracts.store_values import a_job
from trainshed.core.query import JobQuery
from trainshed.store import SqlStore
from trainshed.testing.store import MemoryStore

__all__ = ["postgres"]


class TestMemoryModels(ModelStoreContract):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()


class TestSqliteModels(ModelStoreContract):
    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[SqlStore]:
        store = SqlStore(f"sqlite:///{tmp_path}/jobs.db")
        await store.start()
        yield store
        await store.close()

    async def test_models_are_there_in_the_next_life(self, store: SqlStore, tmp_path: Path) -> None:
        job = await trained(store, a_pipeline())
        await store.insert(a_pipeline(2, "coming"), ())
        await store.close()
        again = SqlStore(f"sqlite:///{tmp_path}/jobs.db")
        await again.start()
        try:
            assert (await again.model("p", "us-central1", job.id)).job == job.id
            (active,) = await again.active()
            assert active.kind == "pipeline"
        finally:
            await again.close()


async def test_a_database_from_before_there_were_models_is_brought_up(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    store = SqlStore(f"sqlite:///{path}")
    await store.start()
    job = await store.insert(a_job(), ())
    await store.close()
    with contextlib.closing(sqlite3.connect(path)) as older:
        older.executescript(
            "DROP TABLE models; DROP INDEX jobs_by_kind; ALTER TABLE jobs DROP COLUMN kind; "
            "DELETE FROM schema_migrations WHERE name LIKE '0003%'"
        )
    await store.start()
    try:
        assert await store.load(job.id) == job
        assert (await store.find(JobQuery(project="p", kind="pipeline"))).jobs == ()
        await trained(store, a_pipeline(2, "mine"))
        assert (await store.model("p", "us-central1", "mine")).job == a_pipeline(2).id
    finally:
        await store.close()


@pytest.mark.needs_postgres
class TestPostgresModels(ModelStoreContract):
    @pytest.fixture
    async def store(self, postgres: Server) -> AsyncIterator[SqlStore]:
        store = SqlStore(postgres.new_database())
        await store.start()
        yield store
        await store.close()
