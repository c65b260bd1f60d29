"""Images on this machine: image caches and who fills them, and who makes room on the disk."""

from collections.abc import Iterable
from dataclasses import dataclass

from trainshed.assembly.shared import SharedParts
from trainshed.backends.fleet import Fleet
from trainshed.control.image_caches import CacheKeeper
from trainshed.control.image_collector import COLLECT, ImageCollector
from trainshed.control.queue import WorkQueue
from trainshed.core.supplies.image_cache import ImageCache
from trainshed.service.image_caches import ImageCacheService
from trainshed.store.sql import SqlStore


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageParts:
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

    def caches(self) -> Iterable[ImageCache]:
        return self.keeper.caches


def make_images(shared: SharedParts, store: SqlStore, fleet: Fleet) -> ImageParts:
    settings, clock = shared.settings, shared.clock
    filling = WorkQueue(clock)
    keeper = CacheKeeper(store, fleet.images, clock, filling)
    collector = ImageCollector(
        store=store,
        inventories=lambda: fleet.image_inventories,
        clock=clock,
        caches=lambda: keeper.caches,
        room=settings.keep_free,
        retention=settings.image_retention,
    )
    service = ImageCacheService(store, clock, filling.hint, keeper.latest)
    return ImageParts(keeper=keeper, service=service, collector=collector, collecting=WorkQueue(clock))
