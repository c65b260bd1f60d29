"""RoutedBuckets: one set of buckets made of those on this disk and the remote ones of the settings.

A bucket's name alone says where it is; gs:// and s3:// before it are how people write it. A name of the
settings wins over one on the disk, and cannot be made there.
"""

from collections.abc import Callable

from trainshed.buckets.seaweed import Seaweed
from trainshed.core.bucket import BucketInfo
from trainshed.core.bucket_port import Bucket, Buckets
from trainshed.core.errors import AlreadyExists


class RoutedBuckets:
    """`store` is one of our own, where there is one: up before the first of its buckets is used."""

    def __init__(
        self,
        own: Buckets,
        remote: Buckets,
        names: frozenset[str],
        store: Seaweed | None = None,
    ) -> None:
        self._own = own
        self._remote = remote
        self._names = names
        self._store = store

    async def start(self) -> None:
        await self._own.start()
        await self._remote.start()
        if self._store is not None:
            await self._store.start()

    async def close(self) -> None:
        await self._remote.close()
        await self._own.close()
        if self._store is not None:
            await self._store.close()

    async def create(self, info: BucketInfo) -> BucketInfo:
        if info.name in self._names:
            raise AlreadyExists(f"There is a bucket named {info.name} already, kept elsewhere.")
        return await self._own.create(info)

    async def all(self) -> tuple[BucketInfo, ...]:
        own = [item for item in await self._own.all() if item.name not in self._names]
        return tuple(sorted((*own, *await self._remote.all()), key=lambda info: info.name))

    async def get(self, bucket: str) -> BucketInfo:
        return await self._of(bucket).get(bucket)

    async def change(
        self,
        bucket: str,
        to: Callable[[BucketInfo], BucketInfo],
        metageneration: int | None = None,
    ) -> BucketInfo:
        return await self._of(bucket).change(bucket, to, metageneration)

    async def remove(self, bucket: str, metageneration: int | None = None) -> None:
        await self._of(bucket).remove(bucket, metageneration)

    def open(self, bucket: str) -> Bucket:
        return self._of(bucket).open(bucket)

    def together(self, one: str, other: str) -> bool:
        return (one in self._names) == (other in self._names) and self._of(one).together(one, other)

    def _of(self, bucket: str) -> Buckets:
        return self._remote if bucket in self._names else self._own
