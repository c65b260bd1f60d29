"""nodes: the machines, what is free of them, who holds the rest, and what they do just now."""

from dataclasses import dataclass

from trainshed.api.call import Call, Json
from trainshed.service.nodes import NodeService
from trainshed.wire.node import render_node


@dataclass(slots=True)
class NodeHandlers:
    service: NodeService

    async def find(self, call: Call) -> Json:
        """Of the whole server: machines belong to no project. Jobs of others have no name."""
        sees = call.principal.sees
        return {"nodes": [render_node(state, sees) for state in await self.service.all()]}
