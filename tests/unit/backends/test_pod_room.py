"""Whether a node can still take the pods that are meant for it."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from trainshed.backends.cluster.api import ApiFault
from trainshed.backends.cluster.pod import node_affinity, not_on, on_node
from trainshed.backends.cluster.pod_room import PodRoom
from trainshed.backends.cluster.pod_state import slim_own_pod
from trainshed.core.queue.fleet import Node

ONE = {"cpu": 1.0, "memory": 100.0}


def pod(name: str, *, meant: str = "", avoided: str = "", node: str = "", phase: str = "Pending") -> Any:
    spec: dict[str, Any] = {"containers": [{"resources": {"requests": {"cpu": "1", "memory": "100"}}}]}
    spec |= {"nodeName": node} if node else {}
    spec |= {"affinity": on_node(meant)} if meant else {}
    spec |= {"affinity": node_affinity([{"matchFields": [not_on(avoided)]}])} if avoided else {}
    meta = {"name": name, "resourceVersion": "7"}
    return slim_own_pod({"metadata": meta, "spec": spec, "status": {"phase": phase}})


@dataclass
class Calls:
    """Stands where the API is, and refuses what has changed."""

    version: str = "7"
    deleted: list[str] = field(default_factory=list[str])

    async def delete(self, kind: str, name: str, *, grace: int | None = None, version: str = "") -> None:
        if version != self.version:
            raise ApiFault(409, "Conflict", "it has changed")
        self.deleted.append(name)


def room(*pods: Any, takes_pods: bool = True, api: Calls | None = None) -> PodRoom:
    nodes = SimpleNamespace(
        takes_pods=lambda name: takes_pods,
        offered=lambda: (Node(name="n1", host="h", cpus=2.0, memory=1000, gpus=("0",)),),
    )
    cache = SimpleNamespace(objects={item["metadata"]["name"]: item for item in pods})
    return PodRoom(cast(Any, api or Calls()), cast(Any, nodes), cast(Any, cache))


def test_a_node_takes_as_many_as_fit():
    assert room().refusal("n1", "new", {"cpu": 2.0}) == ""
    assert room(pod("a", node="n1")).refusal("n1", "new", ONE) == ""


@pytest.mark.parametrize("other", [pod("b", node="n1"), pod("b", meant="n1", phase="Running")])
def test_those_that_are_there_and_those_that_are_meant_for_it_count(other: Any):
    assert "no room" in room(pod("a", node="n1"), other).refusal("n1", "new", ONE)


@pytest.mark.parametrize(
    "other",
    [pod("new", meant="n1"), pod("b", node="n1", phase="Failed"), pod("b", meant="n1", node="n2"), pod("b")],
)
def test_itself_what_has_ended_and_what_is_elsewhere_do_not_count(other: Any):
    assert room(pod("a", node="n1"), other).refusal("n1", "new", ONE) == ""


def test_gpus_count_too():
    assert "no room" in room().refusal("n1", "new", {"nvidia.com/gpu": 2.0})


def test_a_node_that_takes_no_pods_is_told_so():
    assert "takes no pods" in room(takes_pods=False).refusal("n1", "new", ONE)
    assert "takes no pods" in room().refusal("n2", "new", ONE)


async def test_a_pod_that_waits_for_a_full_node_is_deleted():
    api = Calls()
    waiting = room(pod("a", node="n1"), pod("b", node="n1"), pod("c", meant="n1"), api=api)
    assert "no room" in await waiting.displace("c") and api.deleted == ["c"]


@pytest.mark.parametrize("other", [pod("c", meant="n1", node="n1"), pod("c"), pod("d", meant="n1")])
async def test_a_pod_that_has_a_node_or_waits_for_none_stays(other: Any):
    api = Calls()
    assert await room(pod("a", node="n1"), pod("b", node="n1"), other, api=api).displace("c") == ""
    assert api.deleted == []


async def test_a_pod_that_avoids_a_silent_node_goes_back_once_that_answers():
    api, waits = Calls(), pod("c", avoided="n1")
    assert await room(waits, takes_pods=False, api=api).displace("c") == ""
    assert await room(pod("c", avoided="n1", node="n2"), api=api).displace("c") == ""
    assert api.deleted == []
    assert await room(waits, api=api).displace("c") == "Node n1 answers again."
    assert api.deleted == ["c"]


async def test_a_pod_that_was_just_given_a_node_stays():
    api = Calls(version="8")
    waiting = room(pod("a", node="n1"), pod("b", node="n1"), pod("c", meant="n1"), api=api)
    assert await waiting.displace("c") == "" and api.deleted == []


def test_pods_that_are_created_together_do_not_get_the_same_room():
    kept = room(pod("a", node="n1"))
    assert kept.promise("n1", "b", ONE) == ""
    assert "no room" in kept.promise("n1", "c", ONE)
    assert kept.promise("n1", "b", ONE) == ""  # once more
    kept.withdraw("b")
    assert kept.promise("n1", "c", ONE) == ""


def test_what_was_promised_counts_once_when_it_is_there():
    waiting = pod("b", meant="n1")
    kept = room(waiting)
    assert kept.promise("n1", "b", ONE) == "" and kept.refusal("n1", "c", ONE) == ""
