"""What the secret of a job in a cluster has, as its replicas are launched again and again."""

from typing import Any, cast

from trainshed.backends.cluster.api import ClusterApi
from trainshed.backends.cluster.job_objects import JobObjects
from trainshed.backends.cluster.run import PodRun
from trainshed.core.names import ReplicaName, RunKey


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
