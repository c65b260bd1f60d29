"""SQLite, PostgreSQL and the memory store keep the promises about the sums by day."""

import contextlib
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from tests.contracts.ledger_store import SPEC
from tests.contracts.postgres import postgres
from tests.contracts.sql_store import OnPostgres, OnSqlite
from tests.contracts.use_store import UseStoreContract, lived
from trainshed.core.day_use import UseField, UseQuery
from trainshed.core.jobs.job import Scheduling
from trainshed.store import SqlStore
from trainshed.testing.store import MemoryStore

__all__ = ["postgres"]


class TestMemoryUses(UseStoreContract):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()


class TestSqliteUses(OnSqlite, UseStoreContract): ...


@pytest.mark.needs_postgres
class TestPostgresUses(OnPostgres, UseStoreContract): ...


async def test_the_sums_of_an_older_database_are_made_of_its_intervals(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    store = SqlStore(f"sqlite:///{path}")
    await store.start()
    pool = replace(SPEC.pools[0], machine_type="n1-standard-4", accelerator="NVIDIA_TESLA_T4")
    await lived(store, spec=replace(SPEC, pools=(pool,), scheduling=Scheduling(strategy="SPOT")))
    query = UseQuery(apart=frozenset(UseField))
    before = await store.uses(query)
    await store.close()
    with contextlib.closing(sqlite3.connect(path)) as older:
        older.executescript(
            "DROP TABLE day_uses; DROP TABLE day_totals; DROP TABLE deleted_jobs; "
            "DELETE FROM schema_migrations WHERE name LIKE '0009%' OR name LIKE '0011%'"
        )
    await store.start()
    try:
        assert len(before) == 3
        assert await store.uses(query) == before
        assert {use.micros for use in await store.uses(UseQuery())} == {use.micros for use in before}
    finally:
        await store.close()
