"""The store on SQL under its contracts: a subclass says which database, by the fixture `url`."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from tests.contracts.postgres import Server
from tests.contracts.store_values import a_job, an_event
from trainshed.store import SqlStore

Reopened = Callable[[], Awaitable[SqlStore]]


class OnSql:
    """Beside a contract: gives it its store, and a life after the first."""

    @pytest.fixture
    async def opened(self) -> AsyncIterator[list[SqlStore]]:
        stores: list[SqlStore] = []
        yield stores
        for store in stores:
            await store.close()

    @pytest.fixture
    async def reopen(self, url: str, opened: list[SqlStore]) -> Reopened:
        async def again() -> SqlStore:
            for store in opened:
                await store.close()
            opened.append(SqlStore(url))
            await opened[-1].start()
            return opened[-1]

        return again

    @pytest.fixture
    async def store(self, reopen: Reopened) -> SqlStore:
        return await reopen()


class OnSqlite(OnSql):
    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path}/jobs.db"


class OnPostgres(OnSql):
    @pytest.fixture
    def url(self, postgres: Server) -> str:
        return postgres.new_database()


@asynccontextmanager
async def opened(path: Path, busy: timedelta = timedelta(seconds=30)) -> AsyncIterator[SqlStore]:
    store = SqlStore(f"sqlite:///{path}", busy=busy)
    await store.start()
    try:
        yield store
    finally:
        await store.close()


async def filled(path: Path, count: int = 60) -> None:
    async with opened(path) as store:
        for number in range(count):
            await store.insert(a_job(number), [an_event("x" * 500)])
