"""The cluster backend keeps the promises of stats, on a real Kubernetes."""

import asyncio

import pytest

from tests.contracts.backend_bench import Bench
from tests.contracts.stats import StatsContract
from tests.contracts.test_cluster_backend import ClusterWorld, OnCluster
from tests.contracts.test_container_stats import BURN, HOLD, WRITE, python
from tests.kubernetes.cluster import Cluster
from trainshed.backends.cluster.node_stats import ClusterNodeStats
from trainshed.core.metrics import Usage
from trainshed.core.names import RunKey
from trainshed.core.stats_port import Stats

pytestmark = pytest.mark.cluster
METRICS = "metrics.k8s.io"


async def sampled(stats: Stats, key: RunKey, enough: float = 0, least: int = 0) -> Usage:
    """The run's usage once it has used so much CPU and memory."""
    while True:
        usage = (await stats.sample()).get(key)
        if usage and (usage.cpu_seconds or 0) >= enough and (usage.memory or 0) >= least:
            return usage
        await asyncio.sleep(0.02)


class TestClusterStats(OnCluster, StatsContract):
    async def test_cpu_is_counted(self, bench: Bench, stats: Stats):
        key = await bench.begin(python(BURN))
        usage = await sampled(stats, key, enough=0.3)
        assert usage.processes == 1

    async def test_memory_is_that_of_the_program(self, bench: Bench, stats: Stats):
        key = await bench.begin(python(HOLD))
        usage = await sampled(stats, key, least=60_000_000)
        assert (usage.memory or 0) < 200_000_000

    async def test_what_an_ended_child_wrote_to_disk_is_counted(self, bench: Bench, stats: Stats):
        key = await bench.begin(python(WRITE))
        usage = await sampled(stats, key)
        assert (usage.written_bytes or 0) >= 3_000_000

    async def test_nodes_are_told_where_the_cluster_measures_them(
        self, bench: Bench, world: ClusterWorld, cluster: Cluster
    ):
        backend = world.backend_now
        assert await backend.node_stats.use() == {}
        kinds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        cluster.ask("POST", kinds, node_metrics())
        try:
            answer = {"kind": "NodeMetrics", "apiVersion": f"{METRICS}/v1beta1"}
            answer |= {"metadata": {"name": bench.node}, "usage": {"cpu": "250000000n", "memory": "2048Ki"}}
            path = f"/apis/{METRICS}/v1beta1/nodes"
            while not cluster.api.ask("POST", path, answer).ok:
                await asyncio.sleep(0.1)
            use = (await ClusterNodeStats(backend._api, backend._nodes.cache).use())[bench.node]
            assert use.cpus is not None and use.memory is not None
            assert (use.cpus.used, use.memory.used) == (0.25, 2 << 20)
            assert use.cpus.size >= 1 and use.memory.size > 1 << 30
        finally:
            cluster.ask("DELETE", f"{kinds}/nodes.{METRICS}")


def node_metrics() -> dict[str, object]:
    """What metrics-server would serve, with answers that somebody wrote."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1beta1", "served": True, "storage": True, "schema": schema}
    return {
        "metadata": {
            "name": f"nodes.{METRICS}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
        },
        "spec": {
            "group": METRICS,
            "scope": "Cluster",
            "names": {"plural": "nodes", "singular": "node", "kind": "NodeMetrics"},
            "versions": [version],
        },
    }
