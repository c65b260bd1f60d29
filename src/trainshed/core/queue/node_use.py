"""What a node is used for: who holds what of it, what is free, and what its machine does just now. Pure.

`service/nodes.py` calls `node_states`. What jobs hold and what the machine does are different numbers: a job
may hold eight CPUs and use one, and other programs of the machine may use what is free.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from trainshed.core.jobs.job import Job
from trainshed.core.metrics import GpuUse
from trainshed.core.names import task_name
from trainshed.core.queue.fleet import Node, Placement
from trainshed.core.queue.place import Amount, Room


@dataclass(frozen=True, slots=True)
class PartInUse:
    """How much of a resource is in use, of how much there is: CPUs, or bytes."""

    used: float
    size: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeUse:
    """What the machine of a node does, whoever does it. None: not known."""

    cpus: PartInUse | None = None
    memory: PartInUse | None = None
    disk: PartInUse | None = None  # the one that runs write to
    gpus: tuple[GpuUse, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What one replica of an admitted job has of a node, and what it uses of that, where it is measured."""

    job: Job
    placement: Placement
    use: Mapping[str, float] = field(default_factory=dict[str, float])  # by the name of the series

    @property
    def task(self) -> str:
        return task_name(self.placement.pool, self.placement.index)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeState:
    node: Node
    free: Amount
    free_gpus: tuple[str, ...]  # devices
    holdings: tuple[Holding, ...]  # of the oldest job first
    use: NodeUse


Measured: TypeAlias = Mapping[tuple[str, str], Mapping[str, float]]  # by job and task


def node_states(
    nodes: Sequence[Node], active: Iterable[Job], uses: Mapping[str, NodeUse], measured: Measured
) -> tuple[NodeState, ...]:
    """Every node, in the order of the scheduler. A holding on a node that is gone is left out."""
    room = Room(nodes)
    holdings: dict[str, list[Holding]] = {node.name: [] for node in nodes}
    for job in sorted(active, key=lambda job: (job.created_at, job.id)):
        placements = job.status.admission.placements if job.status.admission else ()
        room.take(placements)
        for placement in placements:
            if placement.node in holdings:
                task = task_name(placement.pool, placement.index)
                use = measured.get((job.id, task), {})
                holdings[placement.node].append(Holding(job=job, placement=placement, use=use))
    return tuple(
        NodeState(
            node=node,
            free=room.free_on(node.name),
            free_gpus=tuple(room.gpus[node.name]),
            holdings=tuple(holdings[node.name]),
            use=uses.get(node.name, NodeUse()),
        )
        for node in nodes
    )
