"""PodRoom: whether the node that a pod is meant for can still take it.

The queue places replicas on nodes, and a replica whose node is lost goes where Kubernetes puts it. So a node
may have become too small for those that are still meant for it. The backend asks before it creates a pod, and
the supervisor while a pod waits for a node: else it would wait for ever while other nodes are free.
"""

import logging
from collections.abc import Iterator, Mapping

from trainshed.backends.cluster.api import ApiFault, ClusterApi
from trainshed.backends.cluster.cluster_nodes import ClusterNodes
from trainshed.backends.cluster.object_cache import ObjectCache
from trainshed.backends.cluster.objects import Object, part
from trainshed.backends.cluster.pod_template import GPU
from trainshed.core.queue.place import EPSILON

log = logging.getLogger(__name__)

_ENDED = ("Succeeded", "Failed")


class PodRoom:
    def __init__(self, api: ClusterApi, nodes: ClusterNodes, pods: ObjectCache) -> None:
        """`pods` are ours, slim."""
        self._api, self._nodes, self._pods = api, nodes, pods
        # By the name of the pod: node and needs of those that are being created and not seen yet.
        self._promised: dict[str, tuple[str, dict[str, float]]] = {}

    def promise(self, node: str, name: str, takes: dict[str, float]) -> str:
        """As `refusal`. Where the node can take it, its room is the pod's from now on."""
        why = self.refusal(node, name, takes)
        if not why:
            self._promised[name] = node, takes
        return why

    def withdraw(self, name: str) -> None:
        """The pod was not created."""
        self._promised.pop(name, None)

    def closure(self, node: str) -> str:
        """Why that node takes no pods at all; empty where it does."""
        return "" if self._nodes.takes_pods(node) else f"Node {node} takes no pods any more."

    def refusal(self, node: str, name: str, takes: dict[str, float]) -> str:
        """Why that node cannot take the pod of that name, a sentence; empty where it can."""
        offered = next((item for item in self._nodes.offered() if item.name == node), None)
        if offered is None or self.closure(node):
            return f"Node {node} takes no pods any more."
        free = {"cpu": offered.cpus, "memory": float(offered.memory), GPU: float(len(offered.gpus))}
        for amounts in self._taken(node, name):
            for resource, amount in amounts.items():
                free[resource] = free.get(resource, 0.0) - amount
        lacking = [what for what in free if takes.get(what, 0.0) > free[what] + EPSILON]
        return f"Node {node} has no room for it any more." if lacking else ""

    def _taken(self, node: str, name: str) -> Iterator[Mapping[str, float]]:
        """By other pods of ours that are on the node or meant for it."""
        for other, pod in self._pods.objects.items():
            self._promised.pop(other, None)
            if other != name and _node(pod) == node and _holds(pod):
                yield pod["takes"]
        for other, (meant, takes) in self._promised.items():
            if other != name and meant == node:
                yield takes

    async def displace(self, name: str) -> str:
        """Delete a pod that waits for a node which cannot take it: why, or nothing where it stays.

        Only if it still waits: one that has just been given a node is left alone. One that waits elsewhere
        since its node was silent goes back once that answers.
        """
        pod = self._pods.objects.get(name)
        if pod is None or part(pod, "spec").get("nodeName"):
            return ""
        if pod["meant"]:
            why = self.refusal(pod["meant"], name, pod["takes"])
        else:
            back = [str(node) for node in pod["avoided"] if self._nodes.takes_pods(str(node))]
            why = f"Node {back[0]} answers again." if back else ""
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
