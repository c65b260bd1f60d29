"""nodes: the machines, what is free of them, who holds the rest, and what they do just now."""

from dataclasses import dataclass

from trainshed.api.call import Call, Json
from trainshed.core.machine import Catalogue
from trainshed.service.nodes import NodeService
from trainshed.wire.node import render_node


@dataclass(slots=True)
class NodeHandlers:
    service: NodeService
    catalogue: Catalogue

    async def find(self, call: Call) -> Json:
        """Of the whole server: machines belong to no project."""
        accelerator = self.catalogue.accelerator_of
        return {
            "nodes": [render_node(s, accelerator(s.node.gpu_kind)) for s in await self.service.all()],
        }
