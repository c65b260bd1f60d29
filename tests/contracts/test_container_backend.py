"""The container backend keeps the promises, on a real Podman."""

import asyncio
import shutil
import uuid
from pathlib import Path

import pytest

from tests.containers.engine import Podman
from tests.containers.engine_images import BASE
from tests.containers.gated_registry import Gate, GatedRegistry
from tests.containers.known_engine import KnownEngine
from tests.contracts.backend import BackendContract, WritesHere
from tests.contracts.backend_bench import Programs, until
from tests.contracts.test_process_backend import ShellPrograms
from trainshed.backends.container.backend import ContainerBackend
from trainshed.backends.container.containers import EngineContainers
from trainshed.backends.container.images import EngineImages
from trainshed.backends.container.start import make_init
from trainshed.backends.machine.run_storage import RunStorage
from trainshed.core.names import RunKey
from trainshed.core.ports import Backend
from trainshed.testing.run_files import FolderRunFiles


class ContainerWorld:
    files: FolderRunFiles

    def __init__(self, home: Path, podman: Podman, tools: Path) -> None:
        self.programs: Programs = ShellPrograms()
        self.image, self.refused = BASE, "no/such image"
        self.home, self.podman = home, podman
        self.registry = GatedRegistry(podman.registry_ports[1])
        (home / "bin").mkdir(parents=True)
        shutil.copy2(make_init(tools), home / "bin")

    async def backend(self) -> Backend:
        engine = KnownEngine(str(self.podman.socket))
        self.images = EngineImages(engine)
        await self.images.start()
        backend = ContainerBackend(
            self.home,
            engine,
            self.images,
            storage=RunStorage(files=self.files),
            subnets=self.podman.subnets,
        )
        await backend.start()
        return backend

    def unmake(self) -> str:
        return self.registry.image(f"gated/{uuid.uuid4().hex}:1")

    async def make(self, image: str, *, well: bool) -> None:
        self.registry.turn(Gate.OPEN if well else Gate.EMPTY)
        await until(lambda: not self.images._fetches.going)
        self.registry.turn(Gate.SHUT)

    def name(self, key: RunKey) -> str:
        return f"trainshed-{(self.home / 'id').read_text()}-{key}"

    async def lose(self, key: RunKey) -> None:
        await asyncio.to_thread(self.podman.remove, self.name(key))

    def leftovers(self, job: str) -> list[str]:
        found: list[str] = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                words = (process / "cmdline").read_bytes(), (process / "environ").read_bytes()
            except OSError:
                continue
            if (
                any(job.encode() in text for text in words)
                and b"conmon" not in words[0]
                and b"podman" not in words[0]
            ):
                found.append(words[0].decode())
        return found

    def private_files(self, job: str) -> list[str]:
        return [str(path) for path in self.home.rglob(f"*{job}*")]

    async def close(self) -> None:
        await self.images.close()
        engine = KnownEngine(str(self.podman.socket))
        for name in await EngineContainers(engine, (self.home / "id").read_text()).names():
            await EngineContainers(engine, "").remove(name)
        await engine.close()


class TestContainers(WritesHere, BackendContract):
    many = 16  # an engine takes much of the CPU for each

    @pytest.fixture
    async def world(self, tmp_path: Path, podman: Podman, tools: Path):
        world = ContainerWorld(tmp_path / "home", podman, tools)
        await world.registry.start()
        yield world
        await world.registry.close()
