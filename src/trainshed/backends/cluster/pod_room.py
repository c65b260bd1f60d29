"""PodRoom: whether the node that a pod is meant for can still take it.

The queue places replicas on nodes, and a replica whose node is lost goes where Kubernetes puts it. So a node
may have become too small for those that are still meant for it. The backend asks before it creates a pod, and
the supervisor while a pod waits for a node: else it would wait for ever while other nodes are free.
"""

import logging

from trainshed.backends.cluster.api import ApiFault, ClusterApi
from trainshed.backends.cluster.cluster_nodes import ClusterNodes
from trainshed.backends.cluster.object_cache import ObjectCache
from trainshed.backends.cluster.objects import Object, part
from trainshed.backends.cluster.pod_template import GPU
from trainshed.core.place import EPSILON

log = logging.getLogger(__name__)

_ENDED = ("Succeeded", "Failed")


class PodRoom:
    def __init__(self, api: ClusterApi, nodes: ClusterNodes, pods: ObjectCache) -> None:
        """`pods` are ours, slim."""
        self._api, self._nodes, self._pods = api, nodes, pods

    def refusal(self, node: str, name: str, takes: dict[str, float]) -> str:
        """Why that node cannot take the pod of that name, a sentence; empty where it can."""
        if not self._nodes.takes_pods(node):
            return f"Node {node} takes no pods any more."
        offered = next((item for item in self._nodes.offered() if item.name == node), None)
        if offered is None:
            return f"Node {node} takes no pods any more."
        free = {"cpu": offered.cpus, "memory": float(offered.memory), GPU: float(len(offered.gpus))}
        for pod in self._pods.objects.values():
            if pod["metadata"]["name"] != name and _node(pod) == node and _holds(pod):
                for resource, amount in pod["takes"].items():
                    free[resource] = free.get(resource, 0.0) - amount
        lacking = [what for what in free if takes.get(what, 0.0) > free[what] + EPSILON]
        return f"Node {node} has no room for it any more." if lacking else ""

    async def displace(self, name: str) -> str:
        """Delete a pod that waits for a node which cannot take it: why, or nothing where it stays.

        Only if it still waits: one that has just been given a node is left alone.
        """
        pod = self._pods.objects.get(name)
        if pod is None or not pod["meant"] or part(pod, "spec").get("nodeName"):
            return ""
        why = self.refusal(pod["meant"], name, pod["takes"])
        if not why:
            return ""
        try:
            await self._api.delete("pods", name, grace=0, version=str(pod["metadata"]["resourceVersion"]))
        except ApiFault as fault:
            log.info("pod %s goes on waiting: %s", name, fault.message)
            return ""
        return why


def _node(pod: Object) -> str:
    return str(part(pod, "spec").get("nodeName") or pod["meant"])


def _holds(pod: Object) -> bool:
    return part(pod, "status").get("phase") not in _ENDED
