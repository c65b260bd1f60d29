"""Surroundings: what the supervisor of runs is told of other runs, of pods and of nodes.

The backend makes one for replicas, `layers.py` one for the pods that install. It decides nothing itself.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from trainshed.backends.cluster.objects import Object
from trainshed.backends.cluster.pod_state import PodState
from trainshed.backends.cluster.run import PodRun
from trainshed.core.names import ReplicaName


async def _no_names(_: PodRun) -> None:
    """A pod without peers needs none."""


async def _stays(_: PodRun) -> str:
    """Where Kubernetes has chosen the node, that can take it."""
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    peers: Callable[[ReplicaName], Iterable[PodRun]]  # the runs of a replica's attempt
    is_node_silent: Callable[[str], bool]
    is_drained: Callable[[str], bool]
    read_state: Callable[[Object], PodState]  # what a pod says of its run
    displace: Callable[[PodRun], Awaitable[str]] = _stays  # delete a pod whose node cannot take it; why
    give_names: Callable[[PodRun], Awaitable[None]] = _no_names  # to the replicas of its gang, which is whole
