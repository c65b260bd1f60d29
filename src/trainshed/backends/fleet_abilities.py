"""The abilities of a fleet: each asks the member that has the run, the job or the image.

Services and loops get them as the abilities of one backend. A member that is not there has nothing to tell,
except of images: a call that needs them looks for it. Where it is not there the call is Unavailable, with the
reason.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence

from trainshed.backends.fleet_member import Member
from trainshed.core.caller_port import CallerConnection
from trainshed.core.errors import Unavailable
from trainshed.core.jobs.stacks import StackDump
from trainshed.core.metrics import Usage
from trainshed.core.names import RunKey
from trainshed.core.ports import Backend
from trainshed.core.queue.node_use import NodeUse
from trainshed.core.shell_port import Screen, Terminal
from trainshed.core.supplies.image import BuildRecipe, Image, ImageConfig, ImageStep
from trainshed.core.supplies.image_port import ImageStore
from trainshed.core.view import Stored, View, Views, ViewScan, Written


def backends_there(members: Sequence[Member]) -> list[Backend]:
    return [member.backend for member in members if member.backend is not None]


class FleetStats:
    def __init__(self, members: Sequence[Member]) -> None:
        self._members = members

    async def sample(self) -> Mapping[RunKey, Usage]:
        result: dict[RunKey, Usage] = {}
        for backend in backends_there(self._members):
            if backend.stats is not None:
                result |= await backend.stats.sample()
        return result


class FleetNodeStats:
    def __init__(self, members: Sequence[Member]) -> None:
        self._members = members

    async def use(self) -> Mapping[str, NodeUse]:
        """Members that share a node see the same machine: the first of them tells of it."""
        result: dict[str, NodeUse] = {}
        for backend in backends_there(self._members):
            if backend.node_stats is not None:
                result = {**await backend.node_stats.use(), **result}
        return result


class FleetStacks:
    def __init__(self, members: Sequence[Member]) -> None:
        self._members = members

    async def stacks(self, keys: Sequence[RunKey]) -> Mapping[RunKey, StackDump]:
        result: dict[RunKey, StackDump] = {}
        for backend in backends_there(self._members):
            if backend.stacks is not None:
                result |= await backend.stacks.stacks(keys)
        return result


class FleetShells:
    def __init__(self, members: Sequence[Member]) -> None:
        self._members = members

    async def open_shell(self, key: RunKey, command: Sequence[str], screen: Screen | None) -> Terminal:
        there = backends_there(self._members)
        chosen = there[0]  # of a run that no member has it says so
        for backend in there:
            if any(seen.key == key for seen in await backend.observe(key.name.job)):
                chosen = backend
        if chosen.shells is None:
            raise Unavailable(f"There are no shells in what runs as {chosen.capabilities.name}.")
        return await chosen.shells.open_shell(key, command, screen)


class FleetCallers:
    def __init__(self, members: Sequence[Member]) -> None:
        self._members = members

    async def job_of(self, connection: CallerConnection) -> str:
        for backend in backends_there(self._members):
            if backend.callers is not None and (job := await backend.callers.job_of(connection)):
                return job
        return ""


class FleetViews:
    """The views of all members: a job's is with whichever has it.

    A job has a view with one member at a time. At least one member that is there has views. Any of them reads
    a file of another: a Written tells all that is needed.
    """

    def __init__(self, members: Sequence[Member]) -> None:
        self._members = members

    def view_of(self, job: str) -> str | None:
        labels = (views.view_of(job) for views in self._there())
        return next((label for label in labels if label is not None), None)

    async def scan(self, job: str) -> ViewScan:
        return await self._of(job).scan(job)

    def read(self, file: Written) -> AsyncIterator[bytes]:
        return self._there()[0].read(file)

    async def tail(self, file: Written, offset: int, most: int) -> bytes:
        return await self._there()[0].tail(file, offset, most)

    async def shows(self, job: str, bucket: str, name: str) -> bool:
        return await self._of(job).shows(job, bucket, name)

    async def note(self, job: str, stored: Sequence[Stored]) -> None:
        await self._of(job).note(job, stored)

    async def notes(self, job: str) -> tuple[Stored, ...]:
        return await self._of(job).notes(job)

    async def keep(self, job: str) -> str:
        return await self._of(job).keep(job)

    def kept(self, job: str) -> str:
        return next((place for views in self._there() if (place := views.kept(job))), "")

    async def discard(self, job: str) -> None:
        for views in self._there():
            await views.discard(job)

    def on_want(self, hint: Callable[[str], None]) -> None:
        for views in self._there():
            views.on_want(hint)

    def wants(self, job: str) -> bool:
        return any(views.wants(job) for views in self._there())

    async def make(self, job: str, view: View) -> None:
        for views in self._there():
            if views.wants(job):
                await views.make(job, view)

    def _of(self, job: str) -> Views:
        """Of a job that has none the first answers: it knows nothing of it either."""
        there = self._there()
        if not there:
            raise Unavailable("No backend of this server has views of buckets.")
        return next((views for views in there if views.view_of(job) is not None), there[0])

    def _there(self) -> list[Views]:
        return [backend.views for backend in backends_there(self._members) if backend.views is not None]


class FleetImages:
    """The images of the first member that has any, looked for where no member that is there does."""

    def __init__(self, members: Sequence[Member]) -> None:
        self._members = members

    async def all(self) -> tuple[Image, ...]:
        return await (await self._store()).all()

    async def get(self, name: str) -> Image:
        return await (await self._store()).get(name)

    async def inspect(self, name: str) -> ImageConfig:
        return await (await self._store()).inspect(name)

    async def has_triggers(self, id: str) -> bool:
        return await (await self._store()).has_triggers(id)

    async def pull(self, name: str) -> AsyncIterator[ImageStep]:
        async for step in (await self._store()).pull(name):
            yield step

    async def push(self, name: str) -> AsyncIterator[ImageStep]:
        async for step in (await self._store()).push(name):
            yield step

    async def build(self, context: AsyncIterator[bytes], recipe: BuildRecipe) -> AsyncIterator[ImageStep]:
        async for step in (await self._store()).build(context, recipe):
            yield step

    async def load(self, archive: AsyncIterator[bytes]) -> AsyncIterator[ImageStep]:
        async for step in (await self._store()).load(archive):
            yield step

    async def save(self, names: tuple[str, ...]) -> AsyncIterator[bytes]:
        async for piece in (await self._store()).save(names):
            yield piece

    async def tag(self, name: str, new: str) -> None:
        await (await self._store()).tag(name, new)

    async def remove(self, name: str, *, force: bool = False) -> tuple[str, ...]:
        return await (await self._store()).remove(name, force=force)

    async def _store(self) -> ImageStore:
        for backend in backends_there(self._members):
            if backend.images is not None:
                return backend.images
        for member in self._members:
            if (images := (await member.get()).images) is not None:
                return images
        raise Unavailable("No backend of this server has container images.")
