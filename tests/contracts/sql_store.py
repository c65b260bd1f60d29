"""The store on SQL under its contract: a subclass says which database, by the fixture `url`."""

from collections.abc import AsyncIterator

import pytest

from tests.contracts.store import DurableStoreContract, Reopen
from trainshed.core.ports import Store
from trainshed.store import SqlStore


class SqlStoreContract(DurableStoreContract):
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
