"""Implements core.supplies.image_port.Images and ImageStore with Docker's or Podman's images.

It answers from memory whether an image is here: from the list at start and from every look since. It asks
the engine once for each job, when the job starts, what a name means: a tag that moved holds from the next
job on. It looks for an image that is not here, and then pulls it. All calls come from one event loop. It
never removes an image by itself.
"""

import asyncio
import contextlib
import logging
import re
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

from trainshed.backends.container.engine import Engine
from trainshed.backends.container.image_calls import ImageCalls, RegistryTimeouts, checked
from trainshed.backends.container.image_ledger import ImageLedger, kept_of, space_of
from trainshed.backends.container.pull import (
    Fetch,
    ImageFailure,
    Layers,
    absent,
    error_of,
    failed,
    image_failure,
)
from trainshed.backends.machine.registry_auth import RegistryAuth
from trainshed.background_tasks import BackgroundTasks
from trainshed.core.errors import NotFound, NotYet, TrainshedError, Unavailable
from trainshed.core.jobs.readiness import READY, PreparationKind, PreparationProgress, Readiness
from trainshed.core.supplies.image import (
    BuildRecipe,
    Image,
    ImageConfig,
    ImageStep,
    Reference,
    parse,
    refusal,
)
from trainshed.core.supplies.image_cache import PulledImage
from trainshed.preparation import Preparations, remember

log = logging.getLogger(__name__)

LOOK = 15.0  # seconds between two looks at what is here
SILENT = 120.0  # seconds for which a silent engine is asked again, where no job waits
_ID = re.compile("(?:sha256:)?[0-9a-f]{4,64}")


class EngineImages:
    def __init__(
        self,
        engine: Engine,
        *,
        auth: RegistryAuth | None = None,
        patience: RegistryTimeouts | None = None,
        ledger: ImageLedger | None = None,
    ) -> None:
        self._engine, self._ledger = engine, ledger or ImageLedger(None)
        self._calls = ImageCalls(engine, auth or RegistryAuth(), patience or RegistryTimeouts())
        self._seen: dict[str, ImageConfig | None] = {}  # by canonical name; None: here, not looked at yet
        self._pinned: dict[tuple[str, str], ImageConfig] = {}  # name, job
        self._plain: dict[str, None] = {}  # ids of images without triggers
        self._fetches = Preparations[str, Fetch](self._hint)  # by canonical name
        self._hints: list[Callable[[str], None]] = []
        self._parsed: dict[str, Reference] = {}
        # Images of one registry often share layers: pulled one after the other, each layer comes once.
        self._lanes: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._background = BackgroundTasks()

    async def start(self) -> None:
        try:
            await self._list()
        except TrainshedError as error:
            log.warning("the images of the container engine cannot be listed: %s", error.message)
        self._background.run(self._watch())

    async def close(self) -> None:
        """Give up pulls; the engine keeps their complete layers."""
        self._ledger.write()
        await self._fetches.close()
        await self._background.close()

    # For the backend

    def refuse(self, image: str) -> str | None:
        return None if image in self._parsed else refusal(image)

    def readiness(self, image: str, job: str = "") -> Readiness:
        reference = self._parse(image)
        name = reference.canonical
        if (outcome := self._fetches.outcome(name, job)) is not None:
            return outcome
        if self._here(reference) is not None:
            return READY
        if not job:
            fetch = self._fetches.going.get(name)
            return absent(reference) if fetch is None else fetch.readiness()
        fetch = self._fetches.going.get(name) or self._fetch(reference)
        fetch.jobs.add(job)
        return fetch.readiness()

    def config(self, image: str, job: str = "") -> ImageConfig | None:
        reference = self._parse(image)
        pinned = self._pinned.get((reference.canonical, job))
        return pinned or self._seen.get(self._here(reference) or "")

    async def resolve(self, image: str, job: str) -> ImageConfig:
        reference = self._parse(image)
        key = (reference.canonical, job)
        if (pinned := self._pinned.get(key)) is not None:
            return pinned
        result = await self._look(reference)
        if result is None:
            self._fetches.forget(*key)
            raise NotYet(f"Image {reference.familiar} is no longer here; it is pulled again.")
        if job:
            remember(self._pinned, key, result)
            self._ledger.used(result.id)
        return result

    def forget(self, image: str, job: str = "") -> None:
        reference = self._parse(image)
        self._pinned.pop((reference.canonical, job), None)
        self._fetches.forget(reference.canonical, job)
        for place in reference.places:
            self._seen.pop(place, None)

    def made(self, image: str, name: str) -> None:
        if image in self._ledger.entries:
            self._ledger.used(image)
        else:
            self._ledger.pulled(image, self._parse(name).canonical)

    def preparing(self) -> tuple[PreparationProgress, ...]:
        return self._fetches.under_way(PreparationKind.IMAGE)

    def on_change(self, hint: Callable[[str], None]) -> None:
        self._hints.append(hint)

    # For people

    async def all(self) -> tuple[Image, ...]:
        return await self._list()

    async def get(self, name: str) -> Image:
        config = await self.inspect(name)
        for item in await self._list():
            if item.id == config.id:
                return item
        raise NotFound(f"There is no image {name} here.")

    async def inspect(self, name: str) -> ImageConfig:
        return (await self._find(name))[1]

    async def has_triggers(self, id: str) -> bool:
        if id not in self._plain:
            if await self._calls.has_triggers(id):
                return True
            remember(self._plain, id, None)
        return False

    async def pull(self, name: str) -> AsyncIterator[ImageStep]:
        reference = checked("name", name)
        fetch = self._fetches.going.get(reference.canonical) or self._fetch(reference)
        fetch.fresh = True
        async for step in fetch.follow():
            yield step

    async def push(self, name: str) -> AsyncIterator[ImageStep]:
        reference = checked("name", name)
        config = await self.inspect(reference.familiar)
        layers = Layers(f"Pushing image {reference.familiar}")
        step = ImageStep(text=f"{layers.doing}: asking its registry")
        yield step
        try:
            async for _ in self._calls.push(reference, layers, config.size):
                if layers.layers and layers.step != step:
                    step = layers.step
                    yield step
        except ImageFailure as error:
            raise error_of(error.verdict) from error
        digest = f" ({layers.digest})" if layers.digest else ""
        yield ImageStep(text=f"Pushed image {reference.familiar}{digest}", percent=100)

    async def build(self, context: AsyncIterator[bytes], recipe: BuildRecipe) -> AsyncIterator[ImageStep]:
        recipe = replace(recipe, tags=tuple(checked("tag", tag).canonical for tag in recipe.tags))
        async for step in self._changing(self._calls.build(context, recipe)):
            yield step

    async def load(self, archive: AsyncIterator[bytes]) -> AsyncIterator[ImageStep]:
        async for step in self._changing(self._calls.load(archive)):
            yield step

    async def save(self, names: tuple[str, ...]) -> AsyncIterator[bytes]:
        places = [(await self._find(checked("name", name).familiar))[0] for name in names]
        async for piece in self._calls.save(places):
            yield piece

    async def tag(self, name: str, new: str) -> None:
        reference = checked("tag", new)
        await self._calls.tag((await self._find(name))[0], reference)
        await self._list()

    async def remove(self, name: str, *, force: bool = False) -> tuple[str, ...]:
        gone = await self._calls.remove((await self._find(name))[0], force=force)
        await self._list()
        return gone

    # For the image collector

    async def kept(self) -> tuple[PulledImage, ...]:
        return kept_of(await self._list(), self._ledger)

    async def space(self) -> tuple[int, int] | None:
        return await space_of(self._engine)

    # How it is done

    def _parse(self, image: str) -> Reference:
        if (known := self._parsed.get(image)) is None:
            known = checked("image", image)
            remember(self._parsed, image, known)
        return known

    def _here(self, reference: Reference) -> str | None:
        """The full name under which it is known to be here."""
        return next((place for place in reference.places if place in self._seen), None)

    async def _find(self, name: str) -> tuple[str, ImageConfig]:
        """The full name or id under which the engine has it, and its configuration."""
        places = () if refusal(name) else parse(name).places
        try:
            for place in (*places, *((name,) if _ID.fullmatch(name) else ())):
                if (config := await self._calls.inspect(place)) is not None:
                    return place, config
        except ImageFailure as error:
            raise error_of(error.verdict) from error
        raise NotFound(f"There is no image {name} here.")

    async def _list(self) -> tuple[Image, ...]:
        result = await self._calls.all()
        names = {self._parse(name).canonical for item in result for name in (*item.names, *item.digests)}
        self._seen = {name: self._seen.get(name) for name in names}
        uses = self._ledger.entries
        return tuple(
            replace(item, used_at=uses[item.id].used_at) if item.id in uses else item for item in result
        )

    async def _watch(self) -> None:
        """See within LOOK seconds what others add and remove."""
        while True:
            await asyncio.sleep(LOOK)
            with contextlib.suppress(TrainshedError):
                await self._list()

    async def _changing(self, steps: AsyncIterator[ImageStep]) -> AsyncIterator[ImageStep]:
        """List the images again after the last step."""
        try:
            async for step in steps:
                yield step
        except ImageFailure as error:
            raise error_of(error.verdict) from error
        await self._list()

    async def _look(self, reference: Reference) -> ImageConfig | None:
        """Ask the engine, and remember."""
        for place in reference.places:
            if (result := await self._calls.inspect(place)) is not None:
                self._seen[place] = result
                return result
            self._seen.pop(place, None)
        return None

    def _fetch(self, reference: Reference) -> Fetch:
        layers = Layers(f"Pulling image {reference.familiar}")
        fetch = Fetch(
            reference=reference, layers=layers, sentence="looking for it here", begun=time.monotonic()
        )
        return self._fetches.begin(reference.canonical, fetch, self._fetched)

    async def _fetched(self, fetch: Fetch) -> Readiness | None:
        reference = fetch.reference
        try:
            fetch.config = await self._have(fetch)
        except ImageFailure as error:
            fetch.verdict = error.verdict
            log.warning("%s", error.verdict.summary)
        fetch.move()
        if fetch.verdict is not None and self._here(reference) is None:
            return failed(reference, fetch.verdict)
        if fetch.config is None or not fetch.pulled:
            return None
        self._ledger.pulled(fetch.config.id, reference.canonical)
        return Readiness(installed=(f"{fetch.outcome}.",))

    async def _have(self, fetch: Fetch) -> ImageConfig:
        """Look for it, and pull it where it is not here. Ask an engine that does not answer again."""
        until, pause = time.monotonic() + SILENT, 0.2
        while True:
            try:
                config = await self._look(fetch.reference)
                return await self._pull(fetch) if config is None or fetch.fresh else config
            except Unavailable as error:
                if not fetch.jobs and time.monotonic() > until:
                    doing = f"Image {fetch.reference.familiar} could not be pulled"
                    raise image_failure(doing, error.message) from error
                fetch.sentence = f"{error.message.rstrip('.')}; it is asked again"
                self._tell(fetch)
            await asyncio.sleep(pause)
            pause = min(5.0, pause * 2)

    async def _pull(self, fetch: Fetch) -> ImageConfig:
        lane = self._lanes[fetch.reference.domain]
        if lane.locked():
            fetch.sentence = f"it waits for another pull from {fetch.reference.domain} to end"
            self._tell(fetch)
        async with lane:
            fetch.sentence, fetch.pulled = "", True
            self._tell(fetch)
            async for _ in self._calls.pull(fetch.reference, fetch.layers):
                pass
        if (result := await self._look(fetch.reference)) is None:
            raise image_failure(
                f"Image {fetch.reference.familiar} could not be pulled", "it is not here afterwards"
            )
        return result

    def _tell(self, fetch: Fetch) -> None:
        fetch.move()
        self._fetches.tell(fetch)

    def _hint(self, job: str) -> None:
        for hint in self._hints:
            hint(job)
