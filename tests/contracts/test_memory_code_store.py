"""The fake code store keeps the promises too."""

from pathlib import Path

from tests.contracts.code_store import CodeStoreContract, Steps
from trainshed.core.supplies.code_port import CodeStore
from trainshed.testing.code import MemoryCodeStore


class TestMemoryCodeStore(CodeStoreContract):
    def make(self, home: Path, clock: Steps) -> CodeStore:
        return MemoryCodeStore(clock)
