"""Views of buckets in pods keep the promises of core.view, on a real Kubernetes."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.containers.engine_images import BASE
from tests.contracts.views import ViewsContract, ViewWorld
from tests.kubernetes.cluster import Cluster
from trainshed.backends.cluster.api import ClusterApi, find_config
from trainshed.backends.cluster.backend import ClusterBackend

pytestmark = pytest.mark.cluster


class PodWorld(ViewWorld):
    python, image = "python3", BASE

    def __init__(self, home: Path, cluster: Cluster) -> None:
        super().__init__(home)
        self.cluster = cluster

    def make(self) -> ClusterBackend:
        api = ClusterApi(find_config(str(self.cluster.place.kubeconfig)))
        return ClusterBackend(self.place, api, storage=self.storage)


class TestPods(ViewsContract):
    @pytest.fixture
    async def one(self, tmp_path: Path, cluster: Cluster) -> AsyncIterator[ViewWorld]:
        one = PodWorld(tmp_path, cluster)
        await one.buckets.start()
        await one.start()
        try:
            yield one
        finally:
            await one.close()
