"""The image collector: periodically removes unused images, so that the disk does not fill up.

A work queue calls `look`. It removes only images that this server pulled. It never removes an image that a
job, an image cache or a container uses, nor a young one. It removes images that were not used for longer than
the retention, if one is set, and the least recently used ones while too little disk space is free.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from trainshed.core.errors import Conflict, NotFound, Unavailable
from trainshed.core.ports import Clock, Store
from trainshed.core.supplies.image import canonical, refusal
from trainshed.core.supplies.image_cache import ImageCache, held, to_collect
from trainshed.core.supplies.image_port import ImageInventory
from trainshed.core.supplies.runtime import room_to_keep

log = logging.getLogger(__name__)

COLLECT = "collect"
EVERY = timedelta(minutes=5)
YOUNG = timedelta(minutes=10)  # a job may be about to ask for it


@dataclass(slots=True, kw_only=True)
class ImageCollector:
    store: Store
    inventories: Callable[[], Iterable[ImageInventory]]  # of the backends that are there
    clock: Clock
    caches: Callable[[], Iterable[ImageCache]]
    room: int | None = None  # bytes to keep free; None: the same as for runtimes
    retention: timedelta | None = None  # None: no image is removed for its age
    young: timedelta = YOUNG

    async def look(self, _key: str = "") -> datetime:
        """The work queue calls this, and backs off after failures."""
        for inventory in self.inventories():
            try:
                await self._collect(inventory)
            except Unavailable as error:
                log.warning("images cannot be looked at: %s", error.message)
        return self.clock.now() + EVERY

    async def _collect(self, inventory: ImageInventory) -> None:
        space = await inventory.space()
        lacking = 0 if space is None else room_to_keep(space[1], self.room) - space[0]
        if lacking <= 0 and self.retention is None:
            return
        wanted = await self._wanted() | held(self.caches())
        now = self.clock.now()
        images = [image for image in await inventory.kept() if now - image.used_at >= self.young]
        for image in to_collect(images, wanted, now, self.retention, lacking):
            # An engine refuses to remove an image with several names by its id.
            called = image.names if len(image.names) > 1 else (image.id,)
            try:
                gone = [item for name in called for item in await inventory.remove(name)]
            except Conflict:
                continue  # a container uses it, perhaps one that is not ours
            except NotFound:
                continue
            names = ", ".join(image.names) or image.id
            log.info("removed image %s, last used at %s (%d)", names, f"{image.used_at:%F %T}", len(gone))

    async def _wanted(self) -> frozenset[str]:
        """The canonical image names of all jobs that are not final."""
        images = {pool.image for job in await self.store.active() for pool in job.spec.pools if pool.image}
        return frozenset(canonical(image) for image in images if refusal(image) is None)
