"""EngineImages on the engine of tests, with a real registry, and small images that are like no other."""

import asyncio
import io
import os
import tarfile
import uuid
from collections.abc import AsyncIterator

from tests.containers.engine import Podman
from tests.containers.known_engine import KnownEngine
from tests.containers.registry import Registry
from tests.live import PATIENCE
from trainshed.backends.container.image_calls import RegistryTimeouts
from trainshed.backends.container.images import EngineImages
from trainshed.backends.machine.registry_auth import RegistryAuth
from trainshed.core.jobs.readiness import Readiness, ReadinessState
from trainshed.core.supplies.image import BuildRecipe, ImageStep

MIB = 1 << 20


async def pieces(data: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(data), MIB):
        yield data[at : at + MIB]


def context(**files: bytes) -> AsyncIterator[bytes]:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return pieces(made.getvalue())


async def all_of(steps: AsyncIterator[ImageStep]) -> list[ImageStep]:
    return [step async for step in steps]


class World:
    """EngineImages on the engine of tests, with a registry, and small images that are like no other."""

    def __init__(self, podman: Podman, registry: Registry) -> None:
        self.podman, self.registry = podman, registry
        self.engine = KnownEngine(str(podman.socket))
        self.opened: list[EngineImages] = []
        self.hints: list[str] = []

    def images(self, **patience: float) -> EngineImages:
        environ = {"REGISTRY_AUTH_FILE": self.podman.env["REGISTRY_AUTH_FILE"], "HOME": "/nonexistent"}
        return self.opens(RegistryAuth(None, environ), RegistryTimeouts(**patience))

    def opens(self, auth: RegistryAuth, patience: RegistryTimeouts | None = None) -> EngineImages:
        images = EngineImages(self.engine, auth=auth, patience=patience)
        images.on_change(self.hints.append)
        self.opened.append(images)
        return images

    async def started(self, **patience: float) -> EngineImages:
        images = self.images(**patience)
        await images.start()
        return images

    async def build(self, name: str, *layers: bytes, extra: str = "") -> str:
        files = {f"layer{number}": layer for number, layer in enumerate(layers)}
        lines = "".join(f"COPY {file} /\n" for file in files)
        recipe = BuildRecipe(tags=(name,))
        images = self.images()
        text = f"FROM scratch\n{lines}{extra}".encode()
        steps = await all_of(images.build(context(Dockerfile=text, **files), recipe))
        return steps[-1].image

    async def offer(self, *layers: bytes) -> str:
        """The name below a registry of an image that is in the registry, and not here."""
        name = f"test/{uuid.uuid4().hex}:1"
        full = self.registry.image(name)
        await self.build(full, *(layers or (os.urandom(1000),)))
        await all_of(self.images().push(full))
        await self.images().remove(full)
        self.podman.run("image", "prune", "--force")
        return name

    async def close(self) -> None:
        for images in self.opened:
            await images.close()
        await self.engine.close()
        await asyncio.sleep(0)


async def settled(images: EngineImages, image: str, job: str = "j") -> Readiness:
    async with asyncio.timeout(PATIENCE):
        while (found := images.readiness(image, job)).standing is ReadinessState.PREPARING:
            await asyncio.sleep(0.01)
    return found
