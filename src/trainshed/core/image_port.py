"""The seam to container images. Each numbered promise has a contract test."""

from collections.abc import AsyncIterator, Callable
from typing import Protocol

from trainshed.core.image import BuildRecipe, Image, ImageConfig, ImageStep
from trainshed.core.image_cache import PulledImage
from trainshed.core.readiness import Readiness


class Images(Protocol):
    """The images of an engine, as a backend that runs them needs them.

    1. a name that is not refused comes to READY or FAILED by itself; every job that waits is hinted then.
    2. however many jobs ask for an image at once, it is pulled once; what is here is not pulled.
    3. what a name means is looked up once for each job, and stays so for all of its runs.
    4. FAILED stays FAILED for the jobs that waited for it; the next job that asks begins anew.
    5. a registry that is silent is given up after a while, and that is said.
    6. credentials go to the engine alone, and are in no answer, error or log.
    """

    async def close(self) -> None:
        """Give up what is on its way. What is here stays."""
        ...

    def refuse(self, image: str) -> str | None:
        """A sentence naming the image and what is wrong with its name, or None."""
        ...

    def readiness(self, image: str, job: str = "") -> Readiness:
        """As Backend.prepare, for one image: with a job, an image that is not here is pulled."""
        ...

    def config(self, image: str, job: str = "") -> ImageConfig | None:
        """What is known of it without asking anybody: what it is for the job, else what it was lately."""
        ...

    async def resolve(self, image: str, job: str) -> ImageConfig:
        """What the image is for all runs of the job. NotYet, and it is had again, where it went meanwhile."""
        ...

    def forget(self, image: str, job: str = "") -> None:
        """The engine no longer has it, whatever was known: look again when next asked."""
        ...

    def made(self, image: str, name: str) -> None:
        """One was made here under that name, or is used again: it may go when room is needed, as others."""
        ...

    def on_change(self, hint: Callable[[str], None]) -> None:
        """Call hint(job) soon after the readiness of what the job waits for moves."""
        ...


class ImageInventory(Protocol):
    """The images as the one sees them who makes room. Only those that could be had again are shown."""

    async def kept(self) -> tuple[PulledImage, ...]:
        """Those that were pulled here, under no name that somebody else gave them."""
        ...

    async def space(self) -> tuple[int, int] | None:
        """Bytes free, and all bytes, of the disk they are on; None where that cannot be seen."""
        ...

    async def remove(self, name: str, *, force: bool = False) -> tuple[str, ...]: ...


class ImageStore(Protocol):
    """The images as people see them. What a stream of steps cannot do it raises, in the registry's words."""

    async def all(self) -> tuple[Image, ...]: ...

    async def get(self, name: str) -> Image: ...

    async def inspect(self, name: str) -> ImageConfig:
        """What it says of itself, asked of the engine. NotFound where it is not here."""
        ...

    def pull(self, name: str) -> AsyncIterator[ImageStep]:
        """Have it here, as it is in its registry now. Who comes while it is pulled joins in."""
        ...

    def push(self, name: str) -> AsyncIterator[ImageStep]: ...

    def build(self, context: AsyncIterator[bytes], recipe: BuildRecipe) -> AsyncIterator[ImageStep]:
        """From a context in tar's form, compressed or not."""
        ...

    def load(self, archive: AsyncIterator[bytes]) -> AsyncIterator[ImageStep]:
        """From what `save` wrote."""
        ...

    def save(self, names: tuple[str, ...]) -> AsyncIterator[bytes]: ...

    async def tag(self, name: str, new: str) -> None: ...

    async def remove(self, name: str, *, force: bool = False) -> tuple[str, ...]:
        """What went: names, and ids of contents. Conflict where a container is made of it."""
        ...
