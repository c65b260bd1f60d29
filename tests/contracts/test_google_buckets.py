"""Buckets in a store that speaks Google's API, through obstore: another server of ours, over a socket."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contracts.bucket import BucketContract, Steps
from tests.live import LiveServer
from trainshed.buckets.remote.rows import Remote, StoreKind
from trainshed.buckets.remote.store import RemoteBuckets
from trainshed.core.bucket_port import Buckets

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def far() -> Iterator[LiveServer]:
    with LiveServer() as live:
        yield live


class TestGoogleBuckets(BucketContract):
    survives = True

    @pytest.fixture(autouse=True)
    def store(self, far: LiveServer, request: pytest.FixtureRequest) -> None:
        """Buckets of its own for each test: two of a name nobody had before."""
        self.far, self.own = far, f"t{abs(hash(request.node.nodeid)):x}"
        for name in ("shed", "other"):
            assert far.request("POST", "/storage/v1/b", {"name": f"{self.own}-{name}"}).status == 200

    def make(self, home: Path, clock: Steps) -> Buckets:
        rows = tuple(
            Remote(
                name=name,
                kind=StoreKind.GOOGLE,
                bucket=f"{self.own}-{name}",
                endpoint=f"{self.far.url}/t/{self.far.token}",
            )
            for name in ("shed", "other")
        )
        return RemoteBuckets(rows, home, clock)
