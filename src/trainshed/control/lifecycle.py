"""LifecycleSweeper: applies the lifecycle rules of buckets, periodically and after each change of a bucket.

A work queue calls `look`. It deletes through the port, with the generation it saw: an object that was
replaced meanwhile stays. If it is interrupted, the next look continues.
"""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from trainshed.core.bucket import BucketInfo, ObjectInfo, ObjectQuery, Precondition, PreconditionFailed
from trainshed.core.bucket_port import Bucket, Buckets
from trainshed.core.errors import NotFound
from trainshed.core.lifecycle import expired
from trainshed.core.ports import Clock

EVERY = timedelta(minutes=10)


@dataclass(slots=True)
class LifecycleSweeper:
    buckets: Buckets
    clock: Clock

    async def look(self, _key: str = "") -> datetime:
        for info in await self.buckets.all():
            if info.lifecycle:
                with contextlib.suppress(NotFound):  # the bucket was removed meanwhile
                    await self._sweep(info)
        return self.clock.now() + EVERY

    async def _sweep(self, info: BucketInfo) -> None:
        bucket = self.buckets.open(info.name)
        async for versions in _groups(bucket):
            for item in expired(info, versions, self.clock.now()):
                with contextlib.suppress(NotFound, PreconditionFailed):
                    if item.noncurrent_at is None:
                        await bucket.delete(item.name, None, Precondition(generation=item.generation))
                    else:
                        await bucket.delete(item.name, item.generation)


async def _groups(bucket: Bucket) -> AsyncIterator[list[ObjectInfo]]:
    """All versions of each object, the oldest first."""
    query, group = ObjectQuery(versions=True), list[ObjectInfo]()
    while True:
        page = await bucket.find(query)
        for info in page.items:
            if group and group[0].name != info.name:
                yield group
                group = []
            group.append(info)
        if not page.next_after:
            break
        query = ObjectQuery(versions=True, after=page.next_after, after_generation=page.next_generation)
    if group:
        yield group
