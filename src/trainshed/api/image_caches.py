"""imageCaches: create, list, get, delete. A cache has images ready before a job asks for them."""

import re
from dataclasses import dataclass

from trainshed.api.call import Call, Json
from trainshed.api.permitted import allowed_image
from trainshed.core.errors import Invalid, NotFound, Violation
from trainshed.service.image_caches import ImageCacheService
from trainshed.wire.image_cache import parse_cache, render_cache

_NAME = re.compile(r"[a-z0-9](?:[-a-z0-9.]{0,126}[a-z0-9])?")


@dataclass(slots=True)
class ImageCacheHandlers:
    caches: ImageCacheService

    async def create(self, call: Call) -> Json:
        """The parameter imageCacheId is its name. A name that exists is refused."""
        name, asked = call.query.get("imageCacheId", ""), parse_cache(call.body)
        if not _NAME.fullmatch(name):
            sentence = f"must be at most 128 small letters, digits, '-' and '.', not '{name[:100]}'."
            raise Invalid((Violation("image_cache_id", sentence),))
        for image in asked.images:
            allowed_image(call, image)
        parent = call.path["project"], call.path["location"]
        draft = self.caches.draft(
            parent, name, asked.images, room=asked.image_cache_size, days=asked.retention_days
        )
        return render_cache(await self.caches.create(draft))

    async def find(self, call: Call) -> Json:
        caches = await self.caches.find(call.path["project"], call.path["location"])
        return {"imageCaches": [render_cache(cache) for cache in caches]}

    async def get(self, call: Call) -> Json:
        return render_cache(await self.caches.get(*_place(call)))

    async def delete(self, call: Call) -> Json:
        await self.caches.delete(*_place(call))
        return {}


def _place(call: Call) -> tuple[str, str, str]:
    cache = call.path["cache"]
    if not _NAME.fullmatch(cache):
        raise NotFound(f"There is no method or image cache '{cache[:200]}'.")
    return call.path["project"], call.path["location"], cache
