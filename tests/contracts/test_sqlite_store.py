"""SQLite keeps the store's promises; so does the memory store that stands in for it in tests."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.contracts.store import DurableStoreContract, Reopen, StoreContract
from trainshed.core.ports import Store
from trainshed.store import SqlStore
from trainshed.testing.store import MemoryStore


class TestSqliteStore(DurableStoreContract):
    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path}/jobs.db"

    @pytest.fixture
    async def opened(self) -> AsyncIterator[list[SqlStore]]:
        stores: list[SqlStore] = []
        yield stores
        for store in stores:
            await store.close()

    @pytest.fixture
    async def reopen(self, url: str, opened: list[SqlStore]) -> Reopen:
        async def again() -> Store:
            for store in opened:
                await store.close()
            opened.append(SqlStore(url))
            await opened[-1].start()
            return opened[-1]

        return again

    @pytest.fixture
    async def store(self, reopen: Reopen) -> Store:
        return await reopen()


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()
