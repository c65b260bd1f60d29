"""What the nodes of a cluster do, where the cluster measures it: by metrics.k8s.io (metrics-server).

`service/nodes.py` asks for it, when somebody looks at the machines. Where that API is not served, or not for
us, nothing is known. It never asks the nodes themselves.
"""

import asyncio
import time
from collections.abc import Mapping

from trainshed.backends.cluster.api import ApiFault, ClusterApi
from trainshed.backends.cluster.nodes import quantity
from trainshed.backends.cluster.object_cache import ObjectCache
from trainshed.backends.cluster.objects import Object, part, parts
from trainshed.core.queue.node_use import NodeUse, PartInUse

_FRESH = 5.0  # seconds for which an answer is good enough: metrics-server looks every 15
_ABSENT = 60.0  # seconds after which an API that was not served is looked for again


class ClusterNodeStats:
    """Implements `core.stats_port.NodeStats`."""

    def __init__(self, api: ClusterApi, nodes: ObjectCache) -> None:
        self._api, self._nodes = api, nodes
        self._looking = asyncio.Lock()
        self._until = float("-inf")  # monotonic: as long as `_last` holds
        self._last: Mapping[str, NodeUse] = {}

    async def use(self) -> Mapping[str, NodeUse]:
        async with self._looking:
            if time.monotonic() >= self._until:
                try:
                    self._last = use_of(parts(await self._api.list("metrics"), "items"), self._nodes.objects)
                    self._until = time.monotonic() + _FRESH
                except ApiFault:
                    self._last, self._until = {}, time.monotonic() + _ABSENT
        return self._last


def use_of(metrics: list[Object], nodes: Mapping[str, Object]) -> dict[str, NodeUse]:
    """NodeMetrics of nodes that are there. Pure."""
    result: dict[str, NodeUse] = {}
    for item in metrics:
        name, usage = str(part(item, "metadata").get("name")), part(item, "usage")
        if (node := nodes.get(name)) is None:
            continue
        size = part(part(node, "status"), "capacity")
        cpus, memory = (
            PartInUse(used=quantity(usage[kind]), size=quantity(size[kind]))
            if kind in usage and kind in size
            else None
            for kind in ("cpu", "memory")
        )
        result[name] = NodeUse(cpus=cpus, memory=memory)
    return result
