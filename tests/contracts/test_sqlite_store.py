"""SQLite keeps the store's promises; so does the memory store that stands in for it in tests."""

from pathlib import Path

import pytest

from tests.contracts.sql_store import SqlStoreContract
from tests.contracts.store import StoreContract
from trainshed.testing.store import MemoryStore


class TestSqliteStore(SqlStoreContract):
    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path}/jobs.db"


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()
