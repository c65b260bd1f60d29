"""CacheKeeper: pulls the images of image caches, and deletes caches whose retention is over.

A work queue calls `turn` for one cache: it starts a pull, or checks that the images are still there. Pulls
run as separate tasks, since they take long. The engine pulls an image once even if a job and a cache want it.
Progress stays in memory; only the result is stored.
"""

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import assert_never

from trainshed.control.queue import WorkQueue
from trainshed.core.errors import NotFound, TrainshedError, Unavailable
from trainshed.core.jobs.job import Job
from trainshed.core.ports import Clock
from trainshed.core.supplies.image_cache import CacheState, ImageCache, ImageCacheStore, best
from trainshed.core.supplies.image_port import ImageStore

log = logging.getLogger(__name__)

EVERY = timedelta(hours=1)  # between looks at a cache that is ready
AGAIN, SELDOM = 5.0, 600.0  # seconds until an unreachable registry is tried again: doubled each time


@dataclass(slots=True)
class CacheKeeper:
    store: ImageCacheStore
    images: ImageStore
    clock: Clock
    queue: WorkQueue
    _known: dict[str, ImageCache] = field(default_factory=dict[str, ImageCache])  # by full name
    _pauses: dict[str, float] = field(default_factory=dict[str, float])
    _filling: dict[str, asyncio.Task[None]] = field(default_factory=dict[str, asyncio.Task[None]])

    async def begin(self) -> None:
        self.queue.serve(self.turn)
        for cache in await self.store.caches():
            self._known[cache.name] = cache
            self.queue.hint(cache.name)

    async def close(self) -> None:
        tasks = list(self._filling.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self.queue.close()

    @property
    def caches(self) -> Iterable[ImageCache]:
        return self._known.values()

    def latest(self, cache: ImageCache) -> ImageCache:
        """The cache with its progress while its images are being pulled."""
        known = self._known.get(cache.name)
        is_same = known is not None and known.asks_the_same(cache) and known.updated_at == cache.updated_at
        return known if known is not None and is_same else cache

    def matched(self, job: Job) -> str:
        """A sentence that names the cache a job starts from; "" if there is none."""
        if not self._known:
            return ""
        images = {pool.image for pool in job.spec.pools if pool.image}
        cache = best(self._known.values(), job.project, images)
        return "" if cache is None else f"Image cache {cache.id} has {', '.join(sorted(_of(cache, images)))}."

    async def turn(self, name: str) -> datetime | None:
        cache = next((cach for cach in await self.store.caches() if cach.name == name), None)
        now = self.clock.now()
        known = self._known.get(name)
        is_same = cache is not None and known is not None and known.asks_the_same(cache)
        if not is_same and (task := self._filling.pop(name, None)):
            task.cancel()
        if cache is None:
            self._known.pop(name, None)
            self._pauses.pop(name, None)
            return None
        if cache.is_over(now):
            await self._forget(cache)
            return None
        if name not in self._filling:
            self._known[name] = cache
            if cache.state is CacheState.CREATING or not await self._is_whole(cache):
                self._fill(cache)
        return min(now + EVERY, cache.expires_at or now + EVERY)

    async def _forget(self, cache: ImageCache) -> None:
        await self.store.delete_cache(cache)
        self._known.pop(cache.name, None)
        log.info("image cache %s is gone: its %d days are over", cache.name, cache.retention_days)

    async def _is_whole(self, cache: ImageCache) -> bool:
        """Whether the images are still there. A failed cache counts as whole: it is not pulled again."""
        match cache.state:
            case CacheState.FAILED:
                return True
            case CacheState.CREATING:
                return False
            case CacheState.READY:
                try:
                    for image in cache.images:
                        await self.images.inspect(image)
                except NotFound:
                    return False
                except TrainshedError as error:
                    log.warning("image cache %s cannot be looked at: %s", cache.name, error.message)
                return True
            case _:
                assert_never(cache.state)

    def _fill(self, cache: ImageCache) -> None:
        cache = replace(cache, state=CacheState.CREATING, percent=0, reason="")
        self._known[cache.name] = cache
        task = asyncio.get_running_loop().create_task(self._filled(cache))
        self._filling[cache.name] = task
        task.add_done_callback(lambda done: self._done(cache.name, done))

    def _done(self, name: str, task: asyncio.Task[None]) -> None:
        if self._filling.get(name) is task:
            del self._filling[name]
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("filling %s broke off: %r", name, error)
            self._later(name)

    def _later(self, name: str) -> None:
        pause = self._pauses[name] = min(SELDOM, 2 * self._pauses.get(name, AGAIN / 2))
        self.queue.within(name, pause)

    async def _filled(self, cache: ImageCache) -> None:
        size = 0
        try:
            for number, image in enumerate(cache.images):
                size += await self._have(cache, image, number)
            end = replace(cache, state=CacheState.READY, percent=100, size=size)
        except Unavailable as error:
            self._known[cache.name] = replace(self._known[cache.name], reason=error.message)
            self._later(cache.name)
            return
        except TrainshedError as error:
            percent = self._known[cache.name].percent
            end = replace(cache, state=CacheState.FAILED, percent=percent, reason=error.message)
        end = replace(end, updated_at=self.clock.now())
        try:
            await self.store.write_cache(end)
        except NotFound:
            return  # deleted meanwhile
        self._known[cache.name] = end
        self._pauses.pop(cache.name, None)

    async def _have(self, cache: ImageCache, image: str, number: int) -> int:
        """Pull the image if it is missing; its size in bytes."""
        count = len(cache.images)
        try:
            info = await self.images.inspect(image)
        except NotFound:
            async for step in self.images.pull(image):
                percent = (100 * number + (step.percent or 0)) // count
                self._known[cache.name] = replace(cache, percent=min(99, percent), reason=step.text)
            info = await self.images.inspect(image)
        self._known[cache.name] = replace(cache, percent=min(99, 100 * (number + 1) // count))
        return info.size


def _of(cache: ImageCache, images: Iterable[str]) -> list[str]:
    """The images that the cache contains."""
    return [image for image in images if best((cache,), cache.project, (image,)) is not None]
