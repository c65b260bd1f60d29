"""A server whose jobs run on the shared cluster, one for each module."""

from collections.abc import Iterator

import pytest

from tests.kubernetes.cluster import Cluster
from tests.live import LiveServer


@pytest.fixture(scope="module")
def server(cluster: Cluster) -> Iterator[LiveServer]:
    with LiveServer("--kubernetes", "--kubeconfig", str(cluster.place.kubeconfig)) as server:
        yield server
        assert "Traceback" not in server.said(), server.said()
