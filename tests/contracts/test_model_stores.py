"""SQLite, PostgreSQL and the memory store keep the promises about models."""

import contextlib
import sqlite3
from pathlib import Path

import pytest

from tests.contracts.model_store import ModelStoreContract, a_pipeline, trained
from tests.contracts.postgres import postgres
from tests.contracts.sql_store import OnPostgres, OnSqlite, Reopened
from tests.contracts.store_values import a_job
from trainshed.core.jobs.job import Owner, OwnerKind
from trainshed.core.query import JobQuery
from trainshed.store import SqlStore
from trainshed.testing.store import MemoryStore

__all__ = ["postgres"]


class TestMemoryModels(ModelStoreContract):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()


class TestSqliteModels(OnSqlite, ModelStoreContract):
    async def test_models_are_there_in_the_next_life(self, store: SqlStore, reopen: Reopened) -> None:
        job = await trained(store, a_pipeline())
        await store.insert(a_pipeline(2, "coming"), ())
        again = await reopen()
        assert (await again.model("p", "us-central1", job.id)).job == job.id
        (active,) = await again.active()
        assert active.kind == "pipeline"


async def test_a_database_from_before_there_were_models_is_brought_up(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    store = SqlStore(f"sqlite:///{path}")
    await store.start()
    job = await store.insert(a_job(), ())
    await store.close()
    with contextlib.closing(sqlite3.connect(path)) as older:
        older.executescript(
            "DROP TABLE models; DROP INDEX jobs_by_kind; "
            "DROP INDEX jobs_listed; ALTER TABLE jobs DROP COLUMN kind; "
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


async def test_pipelines_of_a_database_from_before_there_were_owners_own_their_jobs(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    store = SqlStore(f"sqlite:///{path}")
    await store.start()
    await store.insert(a_job(), ())
    await store.insert(a_pipeline(2), ())
    await store.close()
    with contextlib.closing(sqlite3.connect(path)) as older:
        older.executescript(
            "DROP INDEX jobs_by_owner; ALTER TABLE jobs DROP COLUMN owner; "
            "DELETE FROM schema_migrations WHERE name LIKE '0006%'"
        )
    await store.start()
    try:
        owner = Owner(OwnerKind.PIPELINE, a_pipeline(2).id)
        (job,) = (await store.find(JobQuery(project="p", owner=owner))).jobs
        assert (job.id, job.owner) == (owner.id, owner)
        plain = await store.load(a_job().id)
        assert plain is not None and plain.owner is None
    finally:
        await store.close()


@pytest.mark.needs_postgres
class TestPostgresModels(OnPostgres, ModelStoreContract): ...
