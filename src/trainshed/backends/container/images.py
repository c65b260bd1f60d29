"""EngineImages: the promises of core.image_port.Images and ImageShelf, kept with Docker's or Podman's images.

Whether an image is here is answered from memory: from the list at start, and from every look since. What a
name means is asked of the engine once for each job, when it starts, so that a tag that moved holds from the
next job on. An image that is not here is looked for and then pulled by a task, which jobs that ask meanwhile
join. It may assume that all calls come from one event loop. It never removes an image by itself.
"""

import asyncio
import contextlib
import logging
import re
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import TypeVar

from trainshed.backends.container.auth import RegistryAuth
from trainshed.backends.container.engine import Engine
from trainshed.backends.container.fetch import Fetch, absent, failed
from trainshed.backends.container.image_calls import ImageCalls, RegistryTimeouts, checked
from trainshed.backends.container.image_ledger import ImageLedger, kept_of, space_of
from trainshed.backends.container.layers import Layers
from trainshed.backends.container.unpulled import Unpulled, error_of, unpulled
from trainshed.backends.machine.background_tasks import BackgroundTasks
from trainshed.core.errors import NotFound, NotYet, TrainshedError, Unavailable
from trainshed.core.image import BuildRecipe, Image, ImageConfig, ImageStep, Reference, parse, refusal
from trainshed.core.image_cache import PulledImage
from trainshed.core.readiness import READY, Readiness

log = logging.getLogger(__name__)

PACE = 1.0  # seconds between two hints while a pull goes on
LOOK = 15.0  # seconds between two looks at what is here
SILENT = 120.0  # seconds an engine that does not answer is asked again, where no job waits for it
MOST_KNOWN = 10_000
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
        self._fetches: dict[str, Fetch] = {}
        self._settled: dict[tuple[str, str], Readiness] = {}  # name, job: pulled for it, or not to be had
        self._hints: list[Callable[[str], None]] = []
        self._parsed: dict[str, Reference] = {}
        # Two images of one registry often share layers: one after the other, those are pulled once.
        self._lanes: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._background = BackgroundTasks()

    async def start(self) -> None:
        try:
            await self._list()
        except TrainshedError as error:
            log.warning("the images of the container engine cannot be listed: %s", error.message)
        self._background.run(self._watch())

    async def close(self) -> None:
        """Pulls are given up; what came whole of them stays with the engine."""
        self._ledger.write()
        await self._background.close()

    # What a backend asks

    def refuse(self, image: str) -> str | None:
        return None if image in self._parsed else refusal(image)

    def readiness(self, image: str, job: str = "") -> Readiness:
        reference = self._parse(image)
        name = reference.canonical
        if (found := self._settled.get((name, job))) is not None:
            return found
        if self._here(reference) is not None:
            return READY
        if not job:
            fetch = self._fetches.get(name)
            return absent(reference) if fetch is None else fetch.readiness()
        fetch = self._fetches.get(name) or self._fetch(reference)
        fetch.jobs.add(job)
        return fetch.readiness()

    def config(self, image: str, job: str = "") -> ImageConfig | None:
        reference = self._parse(image)
        found = self._pinned.get((reference.canonical, job))
        return found or self._seen.get(self._here(reference) or "")

    async def resolve(self, image: str, job: str) -> ImageConfig:
        reference = self._parse(image)
        key = (reference.canonical, job)
        if (pinned := self._pinned.get(key)) is not None:
            return pinned
        found = await self._look(reference)
        if found is None:
            self._settled.pop(key, None)
            raise NotYet(f"Image {reference.familiar} is no longer here; it is pulled again.")
        if job:
            _keep(self._pinned, key, found)
            self._ledger.used(found.id)
        return found

    def forget(self, image: str, job: str = "") -> None:
        reference = self._parse(image)
        self._pinned.pop((reference.canonical, job), None)
        self._settled.pop((reference.canonical, job), None)
        for place in reference.places:
            self._seen.pop(place, None)

    def made(self, image: str, name: str) -> None:
        if image in self._ledger.entries:
            self._ledger.used(image)
        else:
            self._ledger.pulled(image, self._parse(name).canonical)

    def on_change(self, hint: Callable[[str], None]) -> None:
        self._hints.append(hint)

    # What people ask

    async def all(self) -> tuple[Image, ...]:
        return await self._list()

    async def get(self, name: str) -> Image:
        config = await self.inspect(name)
        for one in await self._list():
            if one.id == config.id:
                return one
        raise NotFound(f"There is no image {name} here.")

    async def inspect(self, name: str) -> ImageConfig:
        return (await self._find(name))[1]

    async def pull(self, name: str) -> AsyncIterator[ImageStep]:
        reference = checked("name", name)
        fetch = self._fetches.get(reference.canonical) or self._fetch(reference)
        fetch.fresh = True
        async for step in fetch.follow():
            yield step

    async def push(self, name: str) -> AsyncIterator[ImageStep]:
        reference = checked("name", name)
        config = await self.inspect(reference.familiar)
        layers = Layers(f"Pushing image {reference.familiar}")
        said = ImageStep(text=f"{layers.doing}: asking its registry")
        yield said
        try:
            async for _ in self._calls.push(reference, layers, config.size):
                if layers.layers and layers.step != said:
                    said = layers.step
                    yield said
        except Unpulled as error:
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
        found = [(await self._find(checked("name", name).familiar))[0] for name in names]
        async for piece in self._calls.save(found):
            yield piece

    async def tag(self, name: str, new: str) -> None:
        reference = checked("tag", new)
        await self._calls.tag((await self._find(name))[0], reference)
        await self._list()

    async def remove(self, name: str, *, force: bool = False) -> tuple[str, ...]:
        gone = await self._calls.remove((await self._find(name))[0], force=force)
        await self._list()
        return gone

    # What a collector asks

    async def kept(self) -> tuple[PulledImage, ...]:
        return kept_of(await self._list(), self._ledger)

    async def space(self) -> tuple[int, int] | None:
        return await space_of(self._engine)

    # How it is done

    def _parse(self, image: str) -> Reference:
        if (known := self._parsed.get(image)) is None:
            known = checked("image", image)
            _keep(self._parsed, image, known)
        return known

    def _here(self, reference: Reference) -> str | None:
        """The full name under which it is known to be here."""
        return next((place for place in reference.places if place in self._seen), None)

    async def _find(self, name: str) -> tuple[str, ImageConfig]:
        """Under which full name, or id, the engine has it, and what it is."""
        places = () if refusal(name) else parse(name).places
        try:
            for place in (*places, *((name,) if _ID.fullmatch(name) else ())):
                if (found := await self._calls.inspect(place)) is not None:
                    return place, found
        except Unpulled as error:
            raise error_of(error.verdict) from error
        raise NotFound(f"There is no image {name} here.")

    async def _list(self) -> tuple[Image, ...]:
        found = await self._calls.all()
        names = {self._parse(name).canonical for one in found for name in (*one.names, *one.digests)}
        self._seen = {name: self._seen.get(name) for name in names}
        return found

    async def _watch(self) -> None:
        """What others bring and take is seen before long, also where nobody asks."""
        while True:
            await asyncio.sleep(LOOK)
            with contextlib.suppress(TrainshedError):
                await self._list()

    async def _changing(self, steps: AsyncIterator[ImageStep]) -> AsyncIterator[ImageStep]:
        """Before the steps end, what is here is known anew."""
        try:
            async for step in steps:
                yield step
        except Unpulled as error:
            raise error_of(error.verdict) from error
        await self._list()

    async def _look(self, reference: Reference) -> ImageConfig | None:
        """Ask the engine, and remember."""
        for place in reference.places:
            if (found := await self._calls.inspect(place)) is not None:
                self._seen[place] = found
                return found
            self._seen.pop(place, None)
        return None

    def _fetch(self, reference: Reference) -> Fetch:
        fetch = Fetch(
            reference, Layers(f"Pulling image {reference.familiar}"), sentence="looking for it here"
        )
        self._fetches[reference.canonical] = fetch
        fetch.task = self._background.run(self._fetched(fetch))
        return fetch

    async def _fetched(self, fetch: Fetch) -> None:
        reference = fetch.reference
        try:
            fetch.config = await self._have(fetch)
        except Unpulled as error:
            fetch.verdict = error.verdict
            log.warning("%s", error.verdict.summary)
        finally:
            self._fetches.pop(reference.canonical, None)  # from here on whoever asks begins anew
            if fetch.verdict is not None and self._here(reference) is None:
                failure = failed(reference, fetch.verdict)
                for job in fetch.jobs:
                    _keep(self._settled, (reference.canonical, job), failure)
            elif fetch.config is not None and fetch.pulled:
                self._ledger.pulled(fetch.config.id, reference.canonical)
                told = Readiness(installed=(f"{fetch.outcome}.",))
                for job in fetch.jobs:
                    _keep(self._settled, (reference.canonical, job), told)
            fetch.move()
            for job in fetch.jobs:
                self._hint(job)

    async def _have(self, fetch: Fetch) -> ImageConfig:
        """Look, and pull where it is not here. An engine that is away for a moment is asked again."""
        until, pause = time.monotonic() + SILENT, 0.2
        while True:
            try:
                found = await self._look(fetch.reference)
                return await self._pull(fetch) if found is None or fetch.fresh else found
            except Unavailable as error:
                if not fetch.jobs and time.monotonic() > until:
                    doing = f"Image {fetch.reference.familiar} could not be pulled"
                    raise unpulled(doing, error.message) from error
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
            fetch.sentence, fetch.pulled, told_at = "", True, 0.0
            self._tell(fetch)
            async for _ in self._calls.pull(fetch.reference, fetch.layers):
                if (now := time.monotonic()) - told_at >= PACE:
                    told_at = now
                    self._tell(fetch)
        if (found := await self._look(fetch.reference)) is None:
            raise unpulled(
                f"Image {fetch.reference.familiar} could not be pulled", "it is not here afterwards"
            )
        return found

    def _tell(self, fetch: Fetch) -> None:
        """A hint to one of those who wait, upon which the cycle looks at the others too."""
        fetch.move()
        for job in list(fetch.jobs)[:1]:
            self._hint(job)

    def _hint(self, job: str) -> None:
        for hint in self._hints if job else ():
            hint(job)


_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def _keep(kept: dict[_Key, _Value], key: _Key, value: _Value) -> None:
    """The oldest go: what is forgotten is asked for again."""
    kept[key] = value
    while len(kept) > MOST_KNOWN:
        del kept[next(iter(kept))]
