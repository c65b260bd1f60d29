"""Use case of nodes: what each machine has, what is free, who holds the rest, and what it does just now.

`api/nodes.py` calls it. It sees the machines as the scheduler does. It writes nothing and hints nobody.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trainshed.core.metrics import RunReading
from trainshed.core.ports import Backend, Store
from trainshed.core.queue.node_use import NodeState, NodeUse, node_states


@dataclass(slots=True)
class NodeService:
    store: Store
    backend: Backend
    readings: Callable[[str], Sequence[RunReading]]  # the latest of each run of a job

    async def all(self) -> tuple[NodeState, ...]:
        nodes, stats = await self.backend.nodes(), self.backend.node_stats
        uses = await stats.use() if stats is not None else dict[str, NodeUse]()
        holders = [job for job in await self.store.active() if job.status.admission is not None]
        measured = {
            (job.id, reading.key.name.task): reading.values
            for job in holders
            for reading in self.readings(job.id)
        }
        return node_states(nodes, holders, uses, measured)
