"""ClusterFinder makes the cluster backend once the Kubernetes API answers.

The fleet calls it. Nothing of the backend and of its client is imported before: a server without a cluster
pays nothing for it. It remembers why there is no cluster, to tell the jobs that wait.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from trainshed.core.errors import TrainshedError
from trainshed.core.jobs.readiness import Readiness, ReadinessState
from trainshed.core.metrics import Measure
from trainshed.core.ports import Backend, Capabilities
from trainshed.core.queue.fleet import Node
from trainshed.core.supplies.image import refusal

CAPABILITIES = Capabilities(
    name="kubernetes",
    survives_server=True,
    kills_escapees=True,
    measures=frozenset(Measure),
    private_network=True,
    moves=True,
    starts_at_once=24,
)
_WAITS = "It is tried again every few seconds, and the job starts when the cluster answers."
_OWN_IMAGES = "trainshed/"


def refuse(image: str) -> str | None:
    if image.startswith(_OWN_IMAGES):
        return (
            f"'{image}' is a runtime of the server's machine, and this server runs jobs in Kubernetes: "
            "name a container image."
        )
    return refusal(image)


class ClusterFinder:
    capabilities = CAPABILITIES

    def __init__(self, home: Path, make: Callable[[], Awaitable[Backend]]) -> None:
        self._home, self._make = home, make
        self._why = "it has not answered yet."
        self._tried = asyncio.Event()

    async def nodes(self) -> tuple[Node, ...]:
        return ()

    def left(self) -> frozenset[str]:
        folder = self._home / "jobs"
        return frozenset(path.name for path in folder.iterdir()) if folder.exists() else frozenset()

    def was_there(self) -> bool:
        """Nodes are known only once it was found, so it is always looked for."""
        return True

    def refuse(self, image: str, sentence: str) -> str | None:
        return refuse(image)

    def absence(self) -> Readiness:
        return Readiness(
            standing=ReadinessState.PREPARING,
            message=f"The Kubernetes cluster cannot be used: {self._why}",
            remedy=_WAITS,
        )

    async def find(self) -> Backend:
        try:
            backend = await self._make()
        except TrainshedError as error:
            self._why = error.message
            self._tried.set()
            raise
        nodes = len(await backend.nodes())
        self._why = f"{nodes} node{'s' if nodes != 1 else ''} for jobs"
        self._tried.set()
        return backend

    async def look(self) -> str:
        """What became of the first look for it, for the server's announcement."""
        await self._tried.wait()
        return self._why
