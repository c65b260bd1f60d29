"""Removes what the engine still has of jobs that are over. Nobody waits for it.

The backend calls it. It may be interrupted at any line: a later server finds the rest by its labels. It
repeats a removal until the engine has done it.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection, Generator, Sequence
from dataclasses import dataclass, field

from trainshed.backends.container.containers import EngineContainers, retry_until_done
from trainshed.backends.container.limits import JobGroups
from trainshed.backends.container.mount_preparer import EngineVolumes
from trainshed.backends.container.network import Networks
from trainshed.background_tasks import BackgroundTasks
from trainshed.core.errors import TrainshedError, Unavailable

_SOON = 0.1  # seconds
_PATIENCE = 10.0  # seconds
_REST, _LONGEST = 0.3, 20.0  # seconds a removal waits after a launch, and at most


@dataclass(slots=True)
class ContainerReaper:
    containers: EngineContainers
    networks: Networks
    volumes: EngineVolumes
    groups: JobGroups
    _removals: dict[str, asyncio.Task[None]] = field(default_factory=dict[str, asyncio.Task[None]])
    _background: BackgroundTasks = field(default_factory=BackgroundTasks)
    _urgent: set[str] = field(default_factory=set[str])  # jobs that a launch waits for
    _launches: int = 0
    _launched_at: float = 0.0
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def begin(self, jobs: Callable[[], Collection[str]], containers: Callable[[], Collection[str]]) -> None:
        """Remove what belongs to no folder; the callables are asked again before each step."""
        self._background.run(retry_until_done(lambda: self._sweep(jobs, containers), "earlier jobs"))

    async def close(self) -> None:
        await self._background.close()  # the next server goes on

    def remove_job(self, job: str, containers: Sequence[str]) -> None:
        removal = self._background.run(
            retry_until_done(lambda: self._remove_when_idle(job, containers), f"job {job}")
        )
        self._removals[job] = removal
        removal.add_done_callback(lambda _: self._removed(job))

    def _removed(self, job: str) -> None:
        self._removals.pop(job, None)
        self._urgent.discard(job)

    async def wait(self, job: str) -> None:
        """Wait until nothing of the job is being removed."""
        if (removal := self._removals.get(job)) is not None:
            self._urgent.add(job)
            _, late = await asyncio.wait((removal,), timeout=_PATIENCE)
            if late:
                raise Unavailable(f"The container engine has not taken away yet what is left of job {job}.")

    @contextlib.contextmanager
    def launching(self) -> Generator[None]:
        """While a launch runs, removals wait: somebody waits for the launch, and nobody for a removal."""
        self._launches += 1
        try:
            yield
        finally:
            self._launches -= 1
            self._launched_at = time.monotonic()

    async def _remove_when_idle(self, job: str, containers: Sequence[str]) -> None:
        for _ in range(int(_LONGEST / _SOON)):
            # Where the network is kept, the next launch may need it.
            if not self._is_busy() or job in self._urgent or self.networks.is_kept(job):
                break
            await asyncio.sleep(_SOON)
        async with self._turn:
            await self._take_away(job, containers)

    def _is_busy(self) -> bool:
        return self._launches > 0 or time.monotonic() < self._launched_at + _REST

    async def _take_away(self, job: str, containers: Sequence[str]) -> None:
        for container in containers:
            await self.containers.remove(container)
        await self.networks.remove(job)
        await self.volumes.remove(job)
        if not self.groups.remove(job):
            raise Unavailable(f"The cgroup of job {job} is still in use.")

    async def _sweep(
        self, jobs: Callable[[], Collection[str]], containers: Callable[[], Collection[str]]
    ) -> None:
        stuck: TrainshedError | None = None
        for name in await self.containers.names():
            if name not in containers():
                try:
                    await self.containers.remove(name)
                except TrainshedError as error:  # remove the others all the same
                    stuck = error
        self.groups.sweep(jobs)
        await self.networks.sweep(jobs)
        if stuck is not None:  # it may have volumes
            raise stuck
        await self.volumes.sweep(jobs)
