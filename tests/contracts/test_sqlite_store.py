"""SQLite keeps the store's promises; so does the memory store that stands in for it in tests."""

import pytest

from tests.contracts.sql_store import OnSqlite
from tests.contracts.store import DurableStoreContract, StoreContract
from trainshed.testing.store import MemoryStore


class TestSqliteStore(OnSqlite, DurableStoreContract): ...


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()
