"""Image caches put together: what people may do with them, who fills them, who makes room on the disk.

A part of the composition root with a name of its own.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from trainshed.api.image_caches import ImageCacheHandlers
from trainshed.api.manifests import ManifestHandlers
from trainshed.backing import MachineBackends
from trainshed.clock import SteadyClock
from trainshed.control.image_caches import CacheKeeper
from trainshed.control.image_collector import COLLECT, ImageCollector
from trainshed.control.queue import WorkQueue
from trainshed.core.image_cache import ImageCache
from trainshed.service.image_caches import ImageCacheService
from trainshed.service.jobs import JobService
from trainshed.service.manifests import ManifestService
from trainshed.settings import Settings
from trainshed.store.sql import SqlStore
from trainshed.wire.pool import Offer


@dataclass(frozen=True, slots=True)
class Caching:
    keeper: CacheKeeper
    service: ImageCacheService
    collector: ImageCollector
    collecting: WorkQueue

    async def open(self) -> None:
        await self.keeper.begin()
        self.collecting.serve(self.collector.look)
        self.collecting.hint(COLLECT)

    async def close(self) -> None:
        await self.keeper.close()
        await self.collecting.close()

    def manifests(self, jobs: JobService, offer: Offer) -> ManifestHandlers:
        return ManifestHandlers(ManifestService(jobs), self.service, offer)

    def kept(self) -> Iterable[ImageCache]:
        return self.keeper.caches

    def caches(self) -> ImageCacheHandlers:
        return ImageCacheHandlers(self.service)


def keep_caches(settings: Settings, store: SqlStore, backend: MachineBackends, clock: SteadyClock) -> Caching:
    filling = WorkQueue(clock)
    keeper = CacheKeeper(store, backend.shelf, clock, filling)
    collector = ImageCollector(
        store=store,
        shelf=lambda: backend.images,
        clock=clock,
        caches=lambda: keeper.caches,
        room=settings.keep_free,
        retention=settings.image_retention,
    )
    service = ImageCacheService(store, clock, filling.hint, keeper.latest)
    return Caching(keeper, service, collector, WorkQueue(clock))
