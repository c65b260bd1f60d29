"""All remote buckets: implements `core.bucket_port.Buckets` for those of the settings. None is made or
removed through here: that is between their owner and their store.
"""

from collections.abc import Callable
from pathlib import Path

from trainshed.buckets.disk import no_bucket
from trainshed.buckets.remote.home import RemoteStores
from trainshed.buckets.remote.rows import Remote, StoreKind
from trainshed.buckets.remote.uploads import RemoteBucket
from trainshed.core.bucket import BucketInfo
from trainshed.core.errors import Conflict
from trainshed.core.ports import Clock


class RemoteBuckets:
    def __init__(self, remotes: tuple[Remote, ...], spool: Path, clock: Clock) -> None:
        self._remotes = {remote.name: remote for remote in sorted(remotes, key=lambda item: item.name)}
        self.spool = spool
        self._home = RemoteStores(str(spool), clock, self.open)
        self._started_at = clock.now()

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._remotes)

    async def start(self) -> None:
        await self._home.run(self._home.spool.start)

    async def close(self) -> None:
        await self._home.close()

    async def create(self, info: BucketInfo) -> BucketInfo:
        raise Conflict(f"Buckets kept elsewhere are those of the settings; {info.name} cannot be made here.")

    async def all(self) -> tuple[BucketInfo, ...]:
        return tuple(self._info(remote) for remote in self._remotes.values())

    async def get(self, bucket: str) -> BucketInfo:
        return self._info(self._remote(bucket))

    async def change(
        self,
        bucket: str,
        to: Callable[[BucketInfo], BucketInfo],
        metageneration: int | None = None,
    ) -> BucketInfo:
        self._remote(bucket)
        raise Conflict(
            f"The bucket {bucket} is kept elsewhere: its labels, versions and lifecycle are its store's."
        )

    async def remove(self, bucket: str, metageneration: int | None = None) -> None:
        self._remote(bucket)
        raise Conflict(f"The bucket {bucket} is kept elsewhere: take it out of the settings instead.")

    def open(self, bucket: str) -> RemoteBucket:
        # One that is not there is told when something is done with it, as everywhere.
        remote = self._remotes.get(bucket) or Remote(name=bucket, kind=StoreKind.S3, bucket="")
        return RemoteBucket(remote, self._home)

    def together(self, one: str, other: str) -> bool:
        return True

    def _remote(self, bucket: str) -> Remote:
        if (result := self._remotes.get(bucket)) is None:
            raise no_bucket(bucket)
        return result

    def _info(self, remote: Remote) -> BucketInfo:
        return BucketInfo(
            name=remote.name,
            project=remote.project,
            location=(remote.region or "US").upper(),
            created_at=self._started_at,
            updated_at=self._started_at,
            scheme=remote.kind.value,
        )
