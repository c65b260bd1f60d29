"""What a job has in a cluster, as its replicas are launched again and again."""

from typing import Any, cast

from trainshed.backends.cluster.api import ClusterApi
from trainshed.backends.cluster.cluster_queues import ClusterQueues
from trainshed.backends.cluster.grouping import Grouping
from trainshed.backends.cluster.job_objects import JobObjects
from trainshed.backends.cluster.run import PodRun
from trainshed.core.names import ReplicaName, RunKey
from trainshed.core.obstacle import PATIENCE


class RecordingApi:
    """The objects of a namespace, and how often a secret was changed."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.has_secret, self.patches = False, 0

    async def make(self, kind: str, body: dict[str, Any]) -> bool:
        if kind != "secrets" or self.has_secret:
            return kind != "secrets"
        self.has_secret = True
        self.values |= body["stringData"]
        return True

    async def patch(self, kind: str, name: str, body: dict[str, Any]) -> None:
        self.patches += 1
        self.values |= body["stringData"]


def launched(attempt: int) -> PodRun:
    return PodRun(RunKey(ReplicaName("1", attempt, 0, 0), 0), "/none", "pod")


async def test_a_later_attempt_has_the_values_of_then_and_equal_values_are_sent_once() -> None:
    api = RecordingApi()
    objects = JobObjects(cast(ClusterApi, api))
    for attempt, value, patches in ((0, "old", 0), (0, "old", 0), (1, "new", 1), (1, "new", 1)):
        await objects.make_shared(launched(attempt), {"0.0.token": value})
        assert (api.values["0.0.token"], api.patches) == (value, patches)


class OrderedApi:
    """What was asked of the pods and groups of a namespace, in order."""

    def __init__(self) -> None:
        self.asked = list[str]()

    async def serves(self, kind: str) -> bool:
        return True

    async def patch(self, kind: str, name: str, body: dict[str, Any]) -> None:
        assert body["metadata"]["finalizers"] is None
        self.asked.append(f"let {kind}/{name} go")

    async def delete(self, kind: str, name: str, **_: object) -> None:
        self.asked.append(f"delete {kind}/{name}")


async def test_pods_of_an_earlier_attempt_leave_their_queue_before_their_group_does_and_once() -> None:
    api = cast(ClusterApi, OrderedApi())
    objects, queues = JobObjects(api), ClusterQueues(api, "", PATIENCE, lambda _: None)
    queued, alone, gang = launched(0), launched(0), launched(0)
    queued.grouping = Grouping(name="a", queue="q")
    gang.grouping = Grouping(name="b")
    for _ in range(2):
        await objects.free_attempts([queued, alone, gang], queues)
    assert cast(OrderedApi, api).asked == [
        "let pods/pod go",
        "delete pods/pod",
        "delete workloads/a",
        "delete podgroups/b",
    ]
