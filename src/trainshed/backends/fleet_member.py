"""The members of a fleet: backends that are there from the start, or that are looked for once needed.

`fleet.py` calls them. A late member is looked for when a job asks for it, or when an earlier server may have
left runs in it, and is then kept. Until it is found its jobs wait with a reason. It is looked for as long as
runs are left in it.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol

from trainshed.core.errors import TrainshedError, Unavailable
from trainshed.core.jobs.job import JobSpec
from trainshed.core.jobs.readiness import Readiness
from trainshed.core.ports import Backend, Capabilities
from trainshed.core.queue.fleet import Node

log = logging.getLogger("trainshed")

START = 10.0  # seconds a server that is to be ready waits for a member with runs left in it
AGAIN = 2.0  # seconds between looks for a member, while somebody wants it
FORGOTTEN = 30.0  # seconds after which a job that did not ask again no longer wants it


class BackendFinder(Protocol):
    """Finds a backend that may not be there."""

    capabilities: Capabilities  # that it has once it is there

    async def nodes(self) -> tuple[Node, ...]:
        """Its nodes, as far as they are known while it is not there."""
        ...

    def left(self) -> frozenset[str]:
        """The jobs of which it has something, whether it is there or not."""
        ...

    def was_there(self) -> bool:
        """For an earlier server: it may have kept what that one did not get to take away."""
        ...

    def refuse(self, image: str, sentence: str) -> str | None:
        """While it is not there: why it will not run the image, after what others said. Never blocks."""
        ...

    def absence(self) -> Readiness:
        """What a job that needs it is told while it is not there."""
        ...

    async def find(self) -> Backend:
        """It, started. Unavailable where it is not there."""
        ...


class Member(ABC):
    """A backend of a fleet."""

    backend: Backend | None  # None while it is not there

    is_away = False  # it was looked for, and is not there

    def __init__(self, *, runs_as: str, own_images: str = "", site: str = "") -> None:
        """`runs_as` says in a sentence how an image runs there, as in "in a container".

        Images whose names begin with `own_images` are this member's, also those that it does not have. All
        members with the same `site` have their nodes there: their replicas reach each other.
        """
        self.runs_as, self._own_images, self.site = runs_as, own_images, site
        self.left: frozenset[str] = frozenset()  # the jobs that have runs in it, while it is not there

    def owns(self, image: str) -> bool:
        return bool(self._own_images) and image.startswith(self._own_images)

    def runs(self, image: str) -> bool:
        return self.owns(image) or self.refuse(image, "") is None

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities: ...

    @abstractmethod
    async def start(self) -> None: ...

    @abstractmethod
    async def close(self) -> None: ...

    @abstractmethod
    async def nodes(self) -> tuple[Node, ...]: ...

    @abstractmethod
    def refuse(self, image: str, sentence: str) -> str | None:
        """As Backend.refuse_image; `sentence` is why the members before it refuse the image."""

    @abstractmethod
    def prepare(self, spec: JobSpec, job: str) -> Readiness: ...

    @abstractmethod
    async def get(self) -> Backend:
        """The backend, looked for where it was not there. Unavailable where it is not there now."""

    @abstractmethod
    def there(self) -> Backend:
        """The backend, not looked for. Unavailable where it is not there now."""

    @abstractmethod
    def on_change(self, hint: Callable[[str], None]) -> None: ...

    @abstractmethod
    def forget(self, job: str) -> None:
        """The job no longer waits for the member."""


class PresentMember(Member):
    def __init__(self, backend: Backend, *, runs_as: str, own_images: str = "", site: str = "") -> None:
        super().__init__(runs_as=runs_as, own_images=own_images, site=site)
        self.backend = self._backend = backend

    @property
    def capabilities(self) -> Capabilities:
        return self._backend.capabilities

    async def start(self) -> None:
        await self._backend.start()

    async def close(self) -> None:
        await self._backend.close()

    async def nodes(self) -> tuple[Node, ...]:
        return await self._backend.nodes()

    def refuse(self, image: str, sentence: str) -> str | None:
        return self._backend.refuse_image(image)

    def prepare(self, spec: JobSpec, job: str) -> Readiness:
        return self._backend.prepare(spec, job)

    async def get(self) -> Backend:
        return self._backend

    def there(self) -> Backend:
        return self._backend

    def on_change(self, hint: Callable[[str], None]) -> None:
        self._backend.on_change(hint)

    def forget(self, job: str) -> None:
        """No job waits for a member that is there."""


class LateMember(Member):
    def __init__(self, finder: BackendFinder, *, runs_as: str, own_images: str = "", site: str = "") -> None:
        super().__init__(runs_as=runs_as, own_images=own_images, site=site)
        self.backend = None
        self._finder = finder
        self._waiting: set[str] = set()  # jobs
        self._wanted_at = 0.0
        self._looking: asyncio.Task[None] | None = None
        self._finding = asyncio.Lock()
        self._hints: list[Callable[[str], None]] = []

    @property
    def capabilities(self) -> Capabilities:
        return self._finder.capabilities if self.backend is None else self.backend.capabilities

    async def start(self) -> None:
        self.left = await asyncio.to_thread(self._finder.left)
        if self.left:
            try:
                async with asyncio.timeout(START):
                    await self.get()
            except (TrainshedError, TimeoutError) as error:
                why = error.message if isinstance(error, TrainshedError) else "it takes too long to be found."
                log.warning("%d jobs wait to be found again: %s", len(self.left), why)
                self._look()
        elif await asyncio.to_thread(self._finder.was_there):
            self._look()

    async def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait((self._looking,))
        if self.backend is not None:
            await self.backend.close()

    async def nodes(self) -> tuple[Node, ...]:
        return await (self._finder.nodes() if self.backend is None else self.backend.nodes())

    def refuse(self, image: str, sentence: str) -> str | None:
        if self.backend is None:
            return self._finder.refuse(image, sentence)
        return self.backend.refuse_image(image)

    def prepare(self, spec: JobSpec, job: str) -> Readiness:
        if self.backend is not None:
            return self.backend.prepare(spec, job)
        if job:
            self._waiting.add(job)
            self._look()
        return self._finder.absence()

    async def get(self) -> Backend:
        if self.backend is None:
            async with self._finding:
                if self.backend is None:
                    backend = await self._find()
                    for hint in self._hints:
                        backend.on_change(hint)
                    jobs = self._waiting | self.left
                    self.backend, self.left, self._waiting = backend, frozenset(), set()
                    for job in jobs:
                        self._hint(job)
        return self.backend

    async def _find(self) -> Backend:
        try:
            backend = await self._finder.find()
        except TrainshedError:
            self.is_away = True
            raise
        self.is_away = False
        return backend

    def there(self) -> Backend:
        if self.backend is None:
            raise Unavailable(self._finder.absence().message)
        return self.backend

    def on_change(self, hint: Callable[[str], None]) -> None:
        self._hints.append(hint)
        if self.backend is not None:
            self.backend.on_change(hint)

    def forget(self, job: str) -> None:
        self._waiting.discard(job)

    def _look(self) -> None:
        self._wanted_at = asyncio.get_running_loop().time()
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._keep_looking())

    async def _keep_looking(self) -> None:
        now = asyncio.get_running_loop().time
        while self.left or now() < self._wanted_at + FORGOTTEN:
            try:
                await self.get()
                return
            except TrainshedError as error:
                log.debug("still looking: %s", error.message)
                await asyncio.sleep(AGAIN)
        self._waiting.clear()  # all of them are gone, or would have asked again

    def _hint(self, job: str) -> None:
        for hint in self._hints:
            hint(job)
