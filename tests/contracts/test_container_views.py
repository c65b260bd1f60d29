"""Views of buckets in containers keep the promises of core.view: for root by an overlay, else by copies."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.containers.engine import Podman
from tests.containers.engine_images import BASE
from tests.containers.known_engine import KnownEngine
from tests.contracts.views import ViewsContract, ViewWorld
from trainshed.backends.container.backend import ContainerBackend
from trainshed.backends.container.images import EngineImages

pytestmark = pytest.mark.containers

ORDINARY = "localhost/ordinary:1"  # its user is not root


@pytest.fixture(scope="session")
def ordinary(podman: Podman) -> str:
    podman.run("build", "--tag", ORDINARY, "-", feed=f"FROM {BASE}\nUSER 1234:1234\n".encode())
    return ORDINARY


class ContainerViews(ViewWorld):
    python = "python3"

    def __init__(self, home: Path, podman: Podman, tools: Path, image: str) -> None:
        super().__init__(home)
        self.podman, self.image = podman, image
        shutil.copytree(tools, self.place / "bin")

    def make(self) -> ContainerBackend:
        engine = KnownEngine(str(self.podman.socket))
        return ContainerBackend(
            self.place, engine, EngineImages(engine), storage=self.storage, subnets=self.podman.subnets
        )

    async def start(self) -> None:
        await super().start()
        await self.backend.images.start()


class TestContainers(ViewsContract):
    @pytest.fixture(params=["root", "ordinary"])
    async def one(
        self, tmp_path: Path, podman: Podman, tools: Path, ordinary: str, request: pytest.FixtureRequest
    ) -> AsyncIterator[ViewWorld]:
        image = BASE if request.param == "root" else ordinary
        one = ContainerViews(tmp_path, podman, tools, image)
        await one.buckets.start()
        await one.start()
        try:
            yield one
        finally:
            await one.close()
