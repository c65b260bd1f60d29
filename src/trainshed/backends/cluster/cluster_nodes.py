"""ClusterNodes: the nodes as they are now: what they offer, whether they live, whether they take pods.

The backend asks it. Nodes and the pods of others are watched; what nodes offer is computed when somebody asks
and something has changed since.
"""

import logging
from collections.abc import Callable

from trainshed.backends.cluster.api import FORBIDDEN, ApiFault, ClusterApi
from trainshed.backends.cluster.node_watch import NodeWatch
from trainshed.backends.cluster.nodes import elsewhere, nodes_of, slim_pod
from trainshed.backends.cluster.object_cache import ObjectCache
from trainshed.backends.cluster.objects import Object, part
from trainshed.backends.cluster.pod import HOME
from trainshed.backends.cluster.pod_template import PodTemplate
from trainshed.core.queue.fleet import Node

log = logging.getLogger(__name__)


class ClusterNodes:
    def __init__(
        self,
        api: ClusterApi,
        home: str,
        template: PodTemplate,
        changed: Callable[[Object, bool], None],
        accelerator_of: Callable[[str], str],
    ) -> None:
        """`home` is the server's id: its own pods take no room from its jobs. `changed` is told of nodes.

        `accelerator_of` gives the type of GPU that the label of a node means.
        """
        self._home, self._template, self._changed = home, template, changed
        self._accelerator_of = accelerator_of
        self.cache = ObjectCache(api, "nodes", changed=self._node_changed)
        self._others = ObjectCache(
            api, "pods", f"{HOME}!={home}", everywhere=True, changed=self._pod_changed, slim=slim_pod
        )
        self._watch = NodeWatch(api, self.cache)
        self._offered: tuple[Node, ...] | None = None  # None: something has changed since

    async def start(self) -> None:
        await self.cache.start()
        try:
            await self._others.start()
        except ApiFault as fault:
            if fault.status != FORBIDDEN:
                raise
            # Without that right nodes seem empty but for our own pods, and Kubernetes makes pods wait.
            log.warning(
                "pods of other namespaces cannot be seen, so what is free is guessed: %s", fault.message
            )
        await self._watch.start()

    async def close(self) -> None:
        for watched in (self._watch, self._others, self.cache):
            await watched.close()

    def offered(self) -> tuple[Node, ...]:
        if self._offered is None:
            nodes, pods = self.cache.objects.values(), self._others.objects.values()
            self._offered = nodes_of(nodes, pods, self._home, self._template)
        return self._offered

    def elsewhere(self, accelerator: str, *, avoids_silent: bool) -> Object:
        """The affinity of a pod that asks for this type of GPU, where Kubernetes chooses its node."""
        nodes = self.cache.objects.values() if accelerator else ()
        silent = self._watch.unnoticed() if avoids_silent else ()
        return elsewhere(nodes, lambda device: self._accelerator_of(device) == accelerator, silent)

    def is_silent(self, name: str) -> bool:
        return self._watch.is_silent(name)

    def is_drained(self, name: str) -> bool:
        return bool(part(self.cache.objects.get(name) or {}, "spec").get("unschedulable"))

    def takes_pods(self, name: str) -> bool:
        return self._template.is_taken_by(self.cache.objects.get(name) or {}) and not self.is_silent(name)

    def _node_changed(self, item: Object, is_gone: bool) -> None:
        self._offered = None
        self._changed(item, is_gone)

    def _pod_changed(self, item: Object, is_gone: bool) -> None:
        self._offered = None
