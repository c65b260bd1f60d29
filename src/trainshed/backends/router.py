"""Two backends of one machine as one: the second runs the images that the first refuses, once it is there.

Callers never learn which backend has a run. The second may be absent: the router looks for it when a job asks
for it, or when an earlier server may have left runs in it, and then keeps it. Until it is found its jobs wait
with a reason, and runs left in it are neither shown nor called lost. Both backends must know a run by its
RunKey alone, and have the same nodes.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, cast

from trainshed.backends.routed_views import RoutedViews
from trainshed.core.errors import Conflict, TrainshedError, Unavailable
from trainshed.core.fleet import Admission, Node
from trainshed.core.job import JobSpec
from trainshed.core.launch import Launch
from trainshed.core.metrics import Usage
from trainshed.core.names import RunKey
from trainshed.core.ports import Backend, Capabilities, Stacks, Stats
from trainshed.core.readiness import Readiness, together
from trainshed.core.replica import Handle, Observation
from trainshed.core.shell_port import Screen, Shells, Terminal
from trainshed.core.stacks import StackDump
from trainshed.core.view import Views

log = logging.getLogger("trainshed")

START = 10.0  # seconds a server that is to be ready waits for the second
AGAIN = 2.0  # seconds between looks for the second, while somebody wants it
FORGOTTEN = 30.0  # seconds after which a job that did not ask again no longer wants it


class _Viewing(Protocol):
    """A backend whose capabilities name views."""

    @property
    def views(self) -> Views: ...


class LazyBackend(Protocol):
    """How the second backend is come by."""

    capabilities: Capabilities  # that it has once it is there

    def left(self) -> frozenset[str]:
        """The jobs of which it has something, whether it is there or not."""
        ...

    def was_there(self) -> bool:
        """For an earlier server: it may have kept what that one did not get to take away."""
        ...

    def refuse(self, image: str, sentence: str) -> str | None:
        """While it is not there: why it will not run the image, after what the first said. Never blocks."""
        ...

    def absence(self) -> Readiness:
        """What a job that needs it is told while it is not there."""
        ...

    async def find(self) -> Backend:
        """It, started. Unavailable where it is not there."""
        ...


class Router:
    def __init__(self, first: Backend, second: LazyBackend, own: str = "") -> None:
        """Images whose names begin with `own` are the first's, also those that it does not have."""
        self._first, self._second, self._own = first, second, own
        self._other: Backend | None = None
        self._left: frozenset[str] = frozenset()  # jobs of the second, while it is not there
        self._waiting: set[str] = set()
        self._wanted_at = 0.0
        self._looking: asyncio.Task[None] | None = None
        self._finding = asyncio.Lock()
        self._hints: list[Callable[[str], None]] = []
        self.views = RoutedViews(self._views)
        self.capabilities = _both(first.capabilities, second.capabilities)

    async def start(self) -> None:
        await self._first.start()
        self._left = await asyncio.to_thread(self._second.left)
        if self._left:
            try:
                async with asyncio.timeout(START):
                    await self.second()
            except (TrainshedError, TimeoutError) as error:
                why = error.message if isinstance(error, TrainshedError) else "it takes too long to be found."
                log.warning("%d jobs wait to be found again: %s", len(self._left), why)
                self._look()
        elif await asyncio.to_thread(self._second.was_there):
            self._look()

    async def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait((self._looking,))
        await self._first.close()
        if self._other is not None:
            await self._other.close()

    async def second(self) -> Backend:
        """The second backend, looked for where it was not there. Unavailable where it is not there now."""
        if self._other is None:
            async with self._finding:
                if self._other is None:
                    other = await self._second.find()
                    for hint in self._hints:
                        other.on_change(hint)
                    self._other, self._left = other, frozenset()
                    self.capabilities = _both(self._first.capabilities, other.capabilities)
                    waiting, self._waiting = self._waiting, set()
                    for job in waiting:
                        self._hint(job)
        return self._other

    async def nodes(self) -> tuple[Node, ...]:
        return await self._first.nodes()

    def refuse_image(self, image: str) -> str | None:
        sentence = self._first.refuse_image(image)
        if sentence is None or (self._own and image.startswith(self._own)):
            return sentence
        if self._other is None:
            return self._second.refuse(image, sentence)
        return self._other.refuse_image(image)

    def refuse_together(self, images: Sequence[str]) -> str | None:
        """Why one job cannot have all of these images; None where it can."""
        ours = [image for image in images if self._is_first(image)]
        theirs = [image for image in images if not self._is_first(image)]
        if not ours or not theirs:
            return None
        return (
            f"One job cannot run both '{ours[0]}', which runs as a process of this machine, and "
            f"'{theirs[0]}', which runs in a container: their replicas could not reach each other by the "
            "addresses in CLUSTER_SPEC. Give every worker pool a container image, or every one a runtime."
        )

    def prepare(self, spec: JobSpec, job: str = "") -> Readiness:
        if len(spec.pools) == 1 and self._is_first(spec.pools[0].image):
            return self._first.prepare(spec, job)
        ours, theirs = self._parts(spec)
        if theirs is None:
            return self._first.prepare(spec, job)
        needed = self._absent(job) if self._other is None else self._other.prepare(theirs, job)
        return needed if ours is None else together((self._first.prepare(ours, job), needed))

    def render(self, launch: Launch) -> Mapping[str, object]:
        if self._is_first(launch.image):
            return self._first.render(launch)
        if self._other is None:
            raise Unavailable(self._second.absence().message)
        return self._other.render(launch)

    async def launch(self, launch: Launch) -> Handle:
        key = launch.key
        chosen, beside = self._first, self._other
        if not self._is_first(launch.image):
            chosen, beside = await self.second(), self._first
        elif beside is None and key.name.job in self._left:
            raise Unavailable(self._second.absence().message)
        if beside is not None:
            known = await _cleared(beside, key)
            if known is not None:
                return known
        return await chosen.launch(launch)

    async def observe(self, job: str) -> tuple[Observation, ...]:
        seen = await self._first.observe(job)
        other = self._knowing(job)
        return seen if other is None else (*seen, *await other.observe(job))

    async def stop(self, key: RunKey, *, force: bool) -> None:
        await self._first.stop(key, force=force)
        other = self._knowing(key.name.job)
        if other is not None:
            await other.stop(key, force=force)

    async def remove(self, job: str) -> None:
        self._waiting.discard(job)
        await self._first.remove(job)
        other = self._knowing(job)
        if other is not None:
            await other.remove(job)

    async def jobs(self) -> frozenset[str]:
        jobs = await self._first.jobs() | self._left
        return jobs if self._other is None else jobs | await self._other.jobs()

    async def address(self, admission: Admission, spec: JobSpec, avoid: frozenset[int]) -> Admission:
        ours, _ = self._parts(spec)
        chosen = self._first if ours is not None else await self.second()
        return await chosen.address(admission, spec, avoid)

    def on_change(self, hint: Callable[[str], None]) -> None:
        self._hints.append(hint)
        self._first.on_change(hint)
        if self._other is not None:
            self._other.on_change(hint)

    # Abilities: of whichever has the run

    async def sample(self) -> Mapping[RunKey, Usage]:
        result: dict[RunKey, Usage] = {}
        for backend in self._there():
            if backend.capabilities.measures:
                result |= await cast(Stats, backend).sample()
        return result

    async def stacks(self, keys: Sequence[RunKey]) -> Mapping[RunKey, StackDump]:
        result: dict[RunKey, StackDump] = {}
        for backend in self._there():
            if backend.capabilities.stacks:
                result |= await cast(Stacks, backend).stacks(keys)
        return result

    async def open_shell(self, key: RunKey, command: Sequence[str], screen: Screen | None) -> Terminal:
        chosen = self._first
        for backend in self._there():
            if any(seen.key == key for seen in await backend.observe(key.name.job)):
                chosen = backend
        if not chosen.capabilities.shells:
            raise Unavailable(f"There are no shells in what runs as {chosen.capabilities.name}.")
        return await cast(Shells, chosen).open_shell(key, command, screen)

    # Which

    def _is_first(self, image: str) -> bool:
        return (bool(self._own) and image.startswith(self._own)) or self._first.refuse_image(image) is None

    def _parts(self, spec: JobSpec) -> tuple[JobSpec | None, JobSpec | None]:
        """The job as each of them sees it; None where there is nothing for it to do."""
        pools = [pool for pool in spec.pools if not pool.is_empty]
        ours = [pool for pool in pools if self._is_first(pool.image)]
        if len(ours) == len(pools):
            return spec, None
        if not ours:
            return None, spec
        theirs = tuple(pool for pool in pools if pool not in ours)
        return replace(spec, pools=tuple(ours)), replace(spec, pools=theirs)

    def _there(self) -> tuple[Backend, ...]:
        return (self._first,) if self._other is None else (self._first, self._other)

    def _views(self) -> list[Views]:
        return [cast(_Viewing, backend).views for backend in self._there() if backend.capabilities.views]

    def _knowing(self, job: str) -> Backend | None:
        """The second, where it is there. Of what it has nothing may be said while it is not."""
        if self._other is None and job in self._left:
            raise Unavailable(self._second.absence().message)
        return self._other

    # Waiting for the second

    def _absent(self, job: str) -> Readiness:
        if job:
            self._waiting.add(job)
            self._look()
        return self._second.absence()

    def _look(self) -> None:
        self._wanted_at = asyncio.get_running_loop().time()
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._keep_looking())

    async def _keep_looking(self) -> None:
        now = asyncio.get_running_loop().time
        while self._left or now() < self._wanted_at + FORGOTTEN:
            try:
                await self.second()
                return
            except TrainshedError as error:
                log.debug("still looking: %s", error.message)
                await asyncio.sleep(AGAIN)
        self._waiting.clear()  # all of them are gone, or would have asked again

    def _hint(self, job: str) -> None:
        for hint in self._hints:
            hint(job)


async def _cleared(beside: Backend, key: RunKey) -> Handle | None:
    """No other run of that name is alive there. The handle of this very run, where it is there.

    What an image is run by may change from one server to the next; what a name stands for may not.
    """
    for seen in await beside.observe(key.name.job):
        if seen.key == key:
            return seen.handle
        if seen.key.name == key.name and seen.key.run > key.run:
            raise Conflict(f"A later run than {key} has been started.")
        if seen.key.name == key.name and seen.alive:
            await beside.stop(seen.key, force=True)
            if any(item.key == seen.key and item.alive for item in await beside.observe(key.name.job)):
                raise Unavailable(f"Run {seen.key} is still alive although it was killed: {key} has to wait.")
    return None


def _both(first: Capabilities, second: Capabilities) -> Capabilities:
    """What either can do, and what holds for every run."""
    return Capabilities(
        name=f"{first.name}, {second.name}",
        survives_server=first.survives_server and second.survives_server,
        kills_escapees=first.kills_escapees and second.kills_escapees,
        measures=first.measures | second.measures,
        stacks=first.stacks or second.stacks,
        views=first.views or second.views,
        private_network=first.private_network or second.private_network,
        shells=first.shells or second.shells,
        images=first.images or second.images,
    )
