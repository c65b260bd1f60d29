"""The fake metric store keeps the promises too."""

from pathlib import Path

from tests.contracts.metric_store import MetricStoreContract
from trainshed.core.ports import MetricStore
from trainshed.testing.metrics import MemoryMetricStore


class TestMemoryMetricStore(MetricStoreContract):
    def make(self, home: Path) -> MetricStore:
        return MemoryMetricStore()
