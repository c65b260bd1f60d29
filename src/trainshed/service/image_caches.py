"""What people may do with image caches: ask for one, look, change what is in it, delete it.

Filling them is the keeper's (`control/image_caches.py`), which is only told to look. What is being pulled
just now it knows better than the store.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from trainshed.core.errors import AlreadyExists, NotFound
from trainshed.core.image_cache import CacheState, ImageCache, ImageCacheStore
from trainshed.core.ports import Clock
from trainshed.service.jobs import check_location


class CacheOutcome(StrEnum):
    CREATED = "CREATED"
    CHANGED = "CHANGED"
    UNCHANGED = "UNCHANGED"


@dataclass(slots=True)
class ImageCacheService:
    store: ImageCacheStore
    clock: Clock
    hint: Callable[[str], None]  # look at the cache of that name
    latest: Callable[[ImageCache], ImageCache] = lambda cache: cache  # with how far it is

    def draft(
        self, parent: tuple[str, str], name: str, images: tuple[str, ...], *, room: int = 0, days: int = 0
    ) -> ImageCache:
        """The parent is its project and location."""
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
        """Have it as it is asked for. One that failed is tried again; its retention begins with a change."""
        try:
            there = await self.get(cache.project, cache.location, cache.id)
        except NotFound:
            there = None
        if there is not None and there.asks_the_same(cache):
            if there.state is CacheState.FAILED and not dry_run:
                there = replace(there, state=CacheState.CREATING, percent=0, reason="")
                await self.store.write_cache(replace(there, updated_at=self.clock.now()))
                self.hint(there.name)
            return there, CacheOutcome.UNCHANGED
        outcome = CacheOutcome.CREATED if there is None else CacheOutcome.CHANGED
        if dry_run:
            return cache, outcome
        if there is not None:
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
        """Newest first; a location of "-" is any."""
        found = [c for c in await self.store.caches() if c.project == project]
        return tuple(self.latest(c) for c in reversed(found) if location in ("-", c.location))

    async def delete(self, project: str, location: str, cache: str) -> None:
        """Its images stay until their room is needed, or somebody removes them."""
        found = await self.store.cache(project, location, cache)
        await self.store.delete_cache(found)
        self.hint(found.name)
