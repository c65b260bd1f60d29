"""The double for tests keeps the promises too."""

from pathlib import Path

from tests.contracts.bucket import BucketContract, Steps
from trainshed.core.bucket_port import Buckets
from trainshed.testing.bucket import MemoryBuckets


class TestMemoryBuckets(BucketContract):
    def make(self, home: Path, clock: Steps) -> Buckets:
        return MemoryBuckets(clock)
