"""The ports to container images. Each numbered promise has a contract test.

`backends/container` implements them; the backends, `control/` and `service/images.py` call them.
"""

from collections.abc import AsyncIterator, Callable
from typing import Protocol

from trainshed.core.jobs.readiness import PreparationProgress, Readiness
from trainshed.core.supplies.image import BuildRecipe, Image, ImageConfig, ImageStep
from trainshed.core.supplies.image_cache import PulledImage


class Images(Protocol):
    """The images of an engine, as a backend that runs them needs them.

    1. a name that is not refused comes to READY or FAILED by itself; every job that waits is hinted then.
    2. however many jobs ask for an image at once, it is pulled once; what is here is not pulled.
    3. what a name means is looked up once for each job, and stays so for all of its runs.
    4. FAILED stays FAILED for the jobs that waited for it; the next job that asks begins anew.
    5. a registry that does not answer is a failure after a while, with a message that says so.
    6. credentials go to the engine alone, and are in no answer, error or log.
    """

    async def close(self) -> None:
        """Stop the pulls under way. Images that are here stay."""
        ...

    def refuse(self, image: str) -> str | None:
        """A sentence naming the image and what is wrong with its name, or None."""
        ...

    def readiness(self, image: str, job: str = "") -> Readiness:
        """As Backend.prepare, for one image: with a job, an image that is not here is pulled."""
        ...

    def config(self, image: str, job: str = "") -> ImageConfig | None:
        """What is known of the image without a call: as resolved for the job, else as last seen."""
        ...

    async def resolve(self, image: str, job: str) -> ImageConfig:
        """The image for all runs of the job. NotYet where it was removed meanwhile and is pulled again."""
        ...

    def forget(self, image: str, job: str = "") -> None:
        """The engine no longer has the image: look again at the next call."""
        ...

    def made(self, image: str, name: str) -> None:
        """An image was made here under that name, or is used again. It may be collected like others."""
        ...

    def preparing(self) -> tuple[PreparationProgress, ...]:
        """As Backend.preparing: the pulls under way."""
        ...

    def on_change(self, hint: Callable[[str], None]) -> None:
        """Call hint(job) soon after the readiness of what the job waits for moves."""
        ...


class ImageInventory(Protocol):
    """An ability of a backend: the images as the collector sees them.

    Only those that could be pulled or built again.
    """

    async def kept(self) -> tuple[PulledImage, ...]:
        """The images that this server pulled and that have no name from anybody else."""
        ...

    async def space(self) -> tuple[int, int] | None:
        """Free bytes and all bytes of the disk they are on; None where that is unknown."""
        ...

    async def remove(self, name: str, *, force: bool = False) -> tuple[str, ...]: ...


class ImageStore(Protocol):
    """An ability of a backend: the images as people see them.

    A stream of steps raises where it fails, with the registry's message.
    """

    async def all(self) -> tuple[Image, ...]: ...

    async def get(self, name: str) -> Image: ...

    async def inspect(self, name: str) -> ImageConfig:
        """Its configuration, from the engine. NotFound where the engine does not have it."""
        ...

    async def has_triggers(self, id: str) -> bool:
        """Whether a build from it begins with steps of its own (ONBUILD)."""
        ...

    def pull(self, name: str) -> AsyncIterator[ImageStep]:
        """Pull it as it is in its registry now. A second caller joins a pull that is under way."""
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
        """Returns what was removed: names and ids. Conflict where a container uses it."""
        ...
