"""SQLite, PostgreSQL and the memory store keep the promises about the ledger."""

import contextlib
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from tests.contracts.ledger_store import LedgerStoreContract, admitted, brief, over, told, waiting_job
from tests.contracts.postgres import postgres
from tests.contracts.sql_store import OnPostgres, OnSqlite, Reopened
from trainshed.store import SqlStore
from trainshed.testing.store import MemoryStore

__all__ = ["postgres"]


class TestMemoryLedger(LedgerStoreContract):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()


class TestSqliteLedger(OnSqlite, LedgerStoreContract):
    async def test_it_goes_on_in_the_next_life(self, store: SqlStore, reopen: Reopened) -> None:
        job = await store.insert(waiting_job(), ())
        await store.write(job, admitted(job))
        again = await reopen()
        found = await again.get(job.project, job.location, job.id)
        await again.write(found, over(found, 4))
        assert brief(await told(again, job)) == [
            (0, "QUEUED", 0, 1),
            (0, "SET_UP", 1, 2),
            (0, "COMPUTED", 2, 4),
        ]


async def test_a_job_that_runs_while_its_database_is_brought_up_is_counted_from_its_start(
    tmp_path: Path,
) -> None:
    path = tmp_path / "jobs.db"
    store = SqlStore(f"sqlite:///{path}")
    await store.start()
    job = await store.insert(waiting_job(), ())
    status = admitted(job)
    await store.insert(replace(job, id="2", status=status), ())  # as written by who knew no ledger
    await store.close()
    with contextlib.closing(sqlite3.connect(path)) as older:
        older.executescript("DROP TABLE intervals; DELETE FROM schema_migrations WHERE name LIKE '0005%'")
    await store.start()
    try:
        found = await store.load("2")
        assert found is not None and found.status == status
        await store.write(found, over(found, 4))
        assert brief(await told(store, found)) == [(0, "SET_UP", 1, 2), (0, "COMPUTED", 2, 4)]
    finally:
        await store.close()


@pytest.mark.needs_postgres
class TestPostgresLedger(OnPostgres, LedgerStoreContract): ...
