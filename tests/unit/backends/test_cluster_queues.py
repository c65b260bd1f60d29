"""Which pods wait in a queue or are placed together, by what a cluster serves and allows."""

from typing import Any, cast

import pytest

from tests.unit.backends.test_cluster_pod import LAUNCH
from trainshed.backends.cluster.api import ApiFault, ClusterApi
from trainshed.backends.cluster.cluster_queues import ClusterQueues
from trainshed.backends.cluster.grouping import ALONE, UNDECIDED, Grouping
from trainshed.backends.cluster.images import ClusterImages
from trainshed.backends.cluster.registry import RegistryClient
from trainshed.core.errors import Hindered
from trainshed.core.event import Reason
from trainshed.core.jobs.launch import Launch
from trainshed.core.names import ReplicaName, RunKey
from trainshed.core.obstacle import PATIENCE

FORBIDDEN = ApiFault(403, "Forbidden", "may not")
GATES = [{"name": "kueue.x-k8s.io/admission"}]


class ScriptedApi:
    """Answers as a cluster of newer versions would, and remembers what was asked: 1.20 can do neither."""

    namespace = "ml"

    def __init__(self, *served: str, faults: dict[str, ApiFault] | None = None) -> None:
        self.served, self.faults, self.asked = served, faults or {}, list[str]()

    async def serves(self, kind: str) -> bool:
        self.asked.append(f"serves {kind}")
        return kind in self.served

    async def get(self, kind: str, name: str) -> Any:
        return self._answer("get", kind, name)

    async def create(self, kind: str, body: Any) -> Any:
        self._answer("create", kind, body["metadata"]["name"])
        return {**body, "spec": {**body["spec"], "schedulingGates": GATES}}

    make = create

    async def delete(self, kind: str, name: str, **_: object) -> None:
        self._answer("delete", kind, name)

    def _answer(self, verb: str, kind: str, name: str) -> Any:
        self.asked.append(f"{verb} {kind}/{name}")
        if kind in self.faults:
            raise self.faults[kind]
        return {"metadata": {"name": name}}


def launch(run: int = 0, peers: int = 2, queue: str = "") -> Launch:
    names = tuple(f"workerpool0-{number}" for number in range(peers))
    key = RunKey(ReplicaName("179", 0, 0, 0), run)
    return Launch(
        key=key, image="i", command=("c",), args=(), placement=LAUNCH.placement, peers=names, queue=queue
    )


def queues(api: ScriptedApi, default: str = "") -> ClusterQueues:
    return ClusterQueues(cast("ClusterApi", api), default, PATIENCE, lambda _: None)


async def test_without_a_queue_nobody_asks_for_kueue_and_one_replica_asks_for_nothing():
    api = ScriptedApi()
    assert await queues(api).grouping("h", launch(peers=1)) == ALONE
    assert api.asked == []
    assert await queues(api).grouping("h", launch(peers=2)) == ALONE
    assert api.asked == ["serves podgroups"]


async def test_the_queue_of_the_job_counts_before_that_of_the_server_and_is_looked_for_once():
    api = ScriptedApi("localqueues", "workloads", "podgroups")
    each = queues(api, "team-a")
    assert await each.grouping("h", launch()) == Grouping(name="ts-h-179-0", queue="team-a", count=2)
    assert (await each.grouping("h", launch(queue="team-b"))).queue == "team-b"
    assert (await each.grouping("h", launch(run=1, peers=1))).queue == "team-a"
    assert [word for word in api.asked if word.startswith("get")] == [
        "get localqueues/team-a",
        "get localqueues/team-b",
    ]


async def test_all_pods_of_an_attempt_wait_in_one_queue_though_label_or_setting_have_changed():
    api = ScriptedApi("localqueues")
    queued = Grouping(name="ts-h-179-0", queue="team-a", count=2)
    later = launch(run=1, queue="team-b")
    assert await queues(api).grouping("h", later, [UNDECIDED, queued]) == queued
    assert await queues(api, "team-c").grouping("h", later, [ALONE]) == ALONE
    assert (await queues(api, "team-c").grouping("h", launch(), [UNDECIDED])).queue == "team-c"


async def test_a_server_that_may_not_see_queues_leaves_it_to_kueue_to_say_that_one_is_missing():
    api = ScriptedApi("localqueues", faults={"localqueues": FORBIDDEN})
    assert (await queues(api).grouping("h", launch(queue="q"))).queue == "q"


@pytest.mark.parametrize(("queue", "says"), [("q", "label kueue.x-k8s.io"), ("", "without --kueue-queue")])
async def test_a_kueue_that_is_asked_for_and_not_there_is_an_obstacle_that_names_who_asks(
    queue: str, says: str
):
    with pytest.raises(Hindered) as hindered:
        await queues(ScriptedApi(), "team-a").grouping("h", launch(queue=queue))
    assert hindered.value.obstacle.reason is Reason.CLUSTER_QUEUE_UNUSABLE
    assert says in hindered.value.obstacle.remedy


async def test_pods_are_placed_one_by_one_where_pod_groups_may_not_be_made():
    api = ScriptedApi("podgroups", faults={"podgroups": FORBIDDEN})
    each = queues(api)
    assert [await each.grouping("h", launch()) for _ in range(2)] == [ALONE, ALONE]
    assert api.asked.count("create podgroups/ts-h-179-0") == 1


async def test_a_group_is_freed_once_and_one_that_may_not_be_deleted_holds_nothing_up():
    queued, gang = Grouping(name="a", queue="q"), Grouping(name="b")
    for faults in ({}, {"workloads": FORBIDDEN, "podgroups": FORBIDDEN}):
        api = ScriptedApi("workloads", "podgroups", faults=faults)
        each = queues(api)
        await each.free([queued, queued, ALONE, gang])
        await each.free([queued, gang])
        deleted = [word for word in api.asked if word.startswith("delete")]
        assert deleted == ["delete workloads/a", "delete podgroups/b"]


async def test_a_pod_that_only_pulls_does_not_wait_in_a_queue_that_caught_it():
    api = ScriptedApi()
    images = ClusterImages(cast("ClusterApi", api), "h", lambda _: None, cast("RegistryClient", None))
    assert await images.start_with("python:3", lambda _: None) == ""
    words = await images.start_with("python:3", lambda _: None, "node1")
    assert "Kueue holds back the pod that pulls it" in words
    assert sum(word.startswith("delete pods/") for word in api.asked) == 2
