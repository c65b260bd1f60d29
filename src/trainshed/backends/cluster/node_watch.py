"""NodeWatch: whether a node of the cluster still lives, by its lease and by what Kubernetes says of it.

The backend asks it about the node of a pod whose init is silent. Every node renews its lease in ten seconds;
when it was last heard counts by our own clock, since those of nodes may be wrong. While the API server
cannot be reached, no node is called silent: then nobody knows.
"""

import asyncio
import logging

from trainshed.backends.cluster.api import ApiFault, ClusterApi
from trainshed.backends.cluster.object_cache import ObjectCache
from trainshed.backends.cluster.objects import Object, part, parts

_SILENT = 12.0  # seconds without a lease: the next one was due two seconds ago
log = logging.getLogger(__name__)


class NodeWatch:
    def __init__(self, api: ClusterApi, nodes: ObjectCache) -> None:
        self._nodes = nodes
        self._heard: dict[str, float] = {}
        self._leases: ObjectCache | None = ObjectCache(api, "leases", changed=self._renewed)

    async def start(self) -> None:
        """Without the right to see leases, Kubernetes' own judgement counts, which takes longer."""
        if self._leases is None:
            return
        try:
            await self._leases.start()
        except ApiFault as fault:
            log.warning(
                "the leases of nodes cannot be read, so lost nodes are noticed later: %s", fault.message
            )
            self._leases = None

    async def close(self) -> None:
        if self._leases is not None:
            await self._leases.close()

    def is_silent(self, name: str) -> bool:
        """Whether the node is gone, or has not been heard of for too long."""
        if self._nodes.fault is not None or (self._leases is not None and self._leases.fault is not None):
            return False
        node = self._nodes.objects.get(name)
        if node is None:
            return True
        if _is_known_lost(node):
            return True
        heard = self._heard.get(name)
        return heard is not None and asyncio.get_running_loop().time() - heard > _SILENT

    def unnoticed(self) -> list[str]:
        """The silent nodes of which Kubernetes does not know it yet: it still puts pods on them."""
        nodes = self._nodes.objects.items()
        return [name for name, node in nodes if self.is_silent(name) and not _is_known_lost(node)]

    def _renewed(self, lease: Object, is_gone: bool) -> None:
        if not is_gone:
            self._heard[str(lease["metadata"]["name"])] = asyncio.get_running_loop().time()


def _is_known_lost(node: Object) -> bool:
    conditions = parts(part(node, "status"), "conditions")
    return any(item.get("type") == "Ready" and item.get("status") == "Unknown" for item in conditions)
