"""Use cases of image caches: create, apply, get, list and delete one.

`api/image_caches.py` and `dialects/kubernetes/http.py` call it. It writes the store and hints the keeper
of caches (`control/image_caches.py`), which pulls the images. It never pulls itself. The progress of a pull
comes from the keeper through `latest`, because the store is not written at every step.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from trainshed.core.errors import AlreadyExists, NotFound
from trainshed.core.ports import Clock
from trainshed.core.supplies.image_cache import CacheState, ImageCache, ImageCacheStore
from trainshed.service.jobs import check_location


class CacheOutcome(StrEnum):
    CREATED = "CREATED"
    CHANGED = "CHANGED"
    UNCHANGED = "UNCHANGED"


@dataclass(slots=True)
class ImageCacheService:
    store: ImageCacheStore
    clock: Clock
    hint: Callable[[str], None]  # asks the keeper to look at the cache of that name
    latest: Callable[[ImageCache], ImageCache] = lambda cache: cache  # adds the progress of a pull

    def draft(
        self, parent: tuple[str, str], name: str, images: tuple[str, ...], *, room: int = 0, days: int = 0
    ) -> ImageCache:
        """A cache that is not stored yet. The parent is its project and location."""
        check_location(parent[1])
        now = self.clock.now()
        return ImageCache(
            id=name,
            project=parent[0],
            location=parent[1],
            images=images,
            room=room,
            retention_days=days,
            created_at=now,
            updated_at=now,
        )

    async def create(self, cache: ImageCache) -> ImageCache:
        await self.store.insert_cache(cache)
        self.hint(cache.name)
        return cache

    async def apply(self, cache: ImageCache, *, dry_run: bool = False) -> tuple[ImageCache, CacheOutcome]:
        """Create or change the cache as asked. A failed one is tried again; a change renews its retention."""
        try:
            existing = await self.get(cache.project, cache.location, cache.id)
        except NotFound:
            existing = None
        if existing is not None and existing.asks_the_same(cache):
            if existing.state is CacheState.FAILED and not dry_run:
                existing = replace(existing, state=CacheState.CREATING, percent=0, reason="")
                await self.store.write_cache(replace(existing, updated_at=self.clock.now()))
                self.hint(existing.name)
            return existing, CacheOutcome.UNCHANGED
        outcome = CacheOutcome.CREATED if existing is None else CacheOutcome.CHANGED
        if dry_run:
            return cache, outcome
        if existing is not None:
            await self.store.write_cache(cache)
            self.hint(cache.name)
            return cache, outcome
        try:
            return await self.create(cache), outcome
        except AlreadyExists:  # somebody else was first
            return await self.apply(cache)

    async def get(self, project: str, location: str, cache: str) -> ImageCache:
        return self.latest(await self.store.cache(project, location, cache))

    async def find(self, project: str, location: str) -> tuple[ImageCache, ...]:
        """The caches of a project, newest first. The location "-" means any."""
        caches = reversed(await self.store.caches())
        return tuple(self.latest(c) for c in caches if c.project == project and location in ("-", c.location))

    async def delete(self, project: str, location: str, cache: str) -> None:
        """Delete the cache. Its images stay until their space is needed or somebody removes them."""
        stored = await self.store.cache(project, location, cache)
        await self.store.delete_cache(stored)
        self.hint(stored.name)
