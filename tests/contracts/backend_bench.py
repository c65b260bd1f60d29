"""What the backend contract stands on: the world a backend's tests supply, and a bench with one job on it."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

from trainshed.core.errors import NotYet
from trainshed.core.jobs.launch import Launch
from trainshed.core.jobs.replica import Observation
from trainshed.core.names import ReplicaName, RunKey
from trainshed.core.ports import Backend
from trainshed.core.queue.fleet import Placement
from trainshed.testing.run_files import FolderRunFiles

Words = tuple[str, ...]


class Programs(Protocol):
    """Commands that do something worth observing. Those that stay write "ready" once they are set up."""

    def exits(self, code: int) -> Words: ...
    def dies(self, number: int) -> Words: ...
    def prints(self, text: str) -> Words: ...
    def finds(self, host: str) -> Words: ...  # exits with 0 where the name is known
    def sleeps(self) -> Words: ...
    def stubborn(self) -> Words: ...  # ignores SIGTERM
    def counts(self) -> Words: ...  # writes "term" at each SIGTERM and stays
    def escapes(
        self, job: str
    ) -> Words: ...  # sleeps; its child has a new session, no environment, no parent
    def abandons(self, job: str, code: int) -> Words: ...  # exits at once; its child is like that
    def missing(self) -> Words: ...
    def forbidden(self) -> Words: ...


class World(Protocol):
    """What a backend's tests have to supply."""

    programs: Programs
    image: str  # one that is there
    refused: str  # one that can never run there
    files: FolderRunFiles  # the bench sets it before it asks for a backend

    async def backend(self) -> Backend:
        """A started backend over this world: the first, or a successor of one whose server was killed."""
        ...

    def unmake(self) -> str:
        """An image that has to be made ready before a job can start; nothing makes it until `make`."""
        ...

    async def make(self, image: str, *, well: bool) -> None:
        """What it needs has been made for those that asked, or cannot be."""
        ...

    async def lose(self, key: RunKey) -> None:
        """Take away whoever holds the exit status of a run."""
        ...

    def leftovers(self, job: str) -> list[str]:
        """Every process of the job that is alive."""
        ...

    def private_files(self, job: str) -> list[str]: ...

    async def close(self) -> None: ...


def pauses() -> Iterator[float]:
    """Seconds to wait before each new look: what comes soon is seen soon, and a long wait costs few looks."""
    pause = 0.005
    while True:
        yield pause
        pause = min(pause * 1.2, 0.03)


async def until(check: Callable[[], Awaitable[bool]] | Callable[[], bool]) -> None:
    """Wait for what is sure to come; the test's own timeout says when it was not."""
    pause = pauses()
    while True:
        answer = check()
        if answer if isinstance(answer, bool) else await answer:
            return
        await asyncio.sleep(next(pause))


class Bench:
    """One job on one backend, with its output files."""

    cpus = 1.0  # of each run

    def __init__(self, world: World, folder: Path) -> None:
        self.world = world
        self.programs = world.programs
        self.job = f"job{uuid.uuid4().hex}"
        self.folder = folder
        self.files = world.files = FolderRunFiles(folder)
        self.node = "n"
        self.backend: Backend

    async def renew(self) -> None:
        """Another server over the same world."""
        await self.backend.close()
        self.backend = await self.world.backend()

    def key(self, run: int = 0, index: int = 0) -> RunKey:
        return RunKey(ReplicaName(self.job, 1, 0, index), run)

    def launch(self, command: Words, run: int = 0, index: int = 0) -> Launch:
        return Launch(
            key=self.key(run, index),
            image=self.world.image,
            command=command,
            args=(),
            placement=Placement(
                pool=0, index=index, node=self.node, host="127.0.0.1", cpus=self.cpus, memory=256 << 20
            ),
        )

    def out(self, index: int = 0) -> str:
        path = Path(self.files.output(self.key(index=index).name).stdout)
        return path.read_text() if path.exists() else ""

    def err(self, index: int = 0) -> str:
        return Path(self.files.output(self.key(index=index).name).stderr).read_text()

    async def begin(self, command: Words, run: int = 0) -> RunKey:
        """Launch a program that stays, and wait until it is set up."""
        before = self.out().count("ready")
        await self.backend.launch(self.launch(command, run))
        await until(lambda: self.out().count("ready") > before)
        return self.key(run)

    async def see(self, key: RunKey) -> Observation | None:
        return next((seen for seen in await self.backend.observe(self.job) if seen.key == key), None)

    async def ended(self, key: RunKey) -> Observation:
        pause = pauses()
        while True:
            seen = await self.see(key)
            if seen is not None and not seen.alive:
                return seen
            await asyncio.sleep(next(pause))

    async def run(self, command: Words) -> Observation:
        await self.backend.launch(self.launch(command))
        return await self.ended(self.key())


async def launched(backend: Backend, launch: Launch) -> None:
    """As the loop does it: asked again while what it needs is being made."""
    while True:
        try:
            await backend.launch(launch)
        except NotYet:
            await asyncio.sleep(0.05)
        else:
            return


@asynccontextmanager
async def benched(world: World, home: Path, kind: type[Bench] = Bench) -> AsyncIterator[Bench]:
    """A bench over the world, which it leaves as clean as a job may leave it."""
    (home / "logs").mkdir()
    bench = kind(world, home / "logs")
    bench.backend = await world.backend()
    bench.node = (await bench.backend.nodes())[0].name
    yield bench
    await bench.backend.remove(bench.job)
    assert world.leftovers(bench.job) == []
    await bench.backend.close()
    await world.close()
