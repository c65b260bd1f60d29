"""PodDoors: the doors to the inits of runs that are alive.

Shells, stats and stacks ask it. It reads what the backend remembers and never talks to the cluster.
"""

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager

from trainshed.backends.cluster.api import ClusterApi
from trainshed.backends.cluster.pod_connection import ChannelBroken, PodDoor, Streams
from trainshed.backends.cluster.pod_runs import PodRuns
from trainshed.backends.cluster.run import PodRun
from trainshed.core.jobs.replica import Sight
from trainshed.core.names import RunKey


class PodDoors:
    def __init__(
        self,
        api: ClusterApi,
        runs: PodRuns,
    ) -> None:
        self._api, self._runs = api, runs

    def find(self, key: RunKey, *sights: Sight) -> PodRun | None:
        """The run, where it is shown as one of these."""
        run = self._runs.find(key)
        return run if run is not None and run.sight in sights else None

    def running(self) -> Iterator[PodRun]:
        return (run for run in self._runs if run.sight is Sight.RUNNING)

    def connect(self, run: PodRun, purpose: str) -> AbstractAsyncContextManager[Streams]:
        """To be left by the task that entered it. ChannelBroken where it cannot be made, or breaks."""
        if run.state is None or not run.state.address:
            raise ChannelBroken("its pod has no address")
        door = PodDoor(api=self._api, pod=run.pod, token=self._runs.token(run.key.name.job), route=run.route)
        return door.connect(run.state.address, purpose)
