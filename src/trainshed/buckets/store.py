"""All buckets on the disk: implements `core.bucket_port.Buckets`."""

import contextlib
import os
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from trainshed.buckets import index, versions
from trainshed.buckets.disk import Disk, no_bucket
from trainshed.buckets.index_writer import Effect
from trainshed.buckets.pieces import Pieces
from trainshed.buckets.uploads import DiskBucket
from trainshed.core.bucket import BucketInfo, PreconditionFailed
from trainshed.core.errors import AlreadyExists, Conflict
from trainshed.core.ports import Clock


class DiskBuckets:
    def __init__(self, root: Path, clock: Clock) -> None:
        self._disk = Disk(root, clock)
        self._pieces = Pieces(self._disk.writer.held_path, self._disk.executor)

    async def start(self) -> None:
        await self._disk.start()

    async def close(self) -> None:
        await self._disk.close()

    async def create(self, info: BucketInfo) -> BucketInfo:
        def change(db: sqlite3.Connection) -> tuple[BucketInfo, tuple[Effect, ...]]:
            if index.has_bucket(db, info.name):
                raise AlreadyExists(f"There is a bucket named {info.name} already; choose another name.")
            index.keep_bucket(db, info)
            return info, (lambda: self._make_folder(info.name),)

        return await self._disk.writer.write(change)

    async def all(self) -> tuple[BucketInfo, ...]:
        return await self._disk.look(index.buckets)

    async def get(self, bucket: str) -> BucketInfo:
        return await self._disk.look(lambda db: _info(db, bucket))

    async def change(
        self,
        bucket: str,
        to: Callable[[BucketInfo], BucketInfo],
        metageneration: int | None = None,
    ) -> BucketInfo:
        def change(db: sqlite3.Connection) -> tuple[BucketInfo, tuple[Effect, ...]]:
            old = _info(db, bucket, metageneration)
            new = replace(
                to(old),
                metageneration=old.metageneration + 1,
                updated_at=self._disk.clock.now(),
            )
            index.keep_bucket(db, new)
            return new, ()

        return await self._disk.writer.write(change)

    async def remove(self, bucket: str, metageneration: int | None = None) -> None:
        def change(db: sqlite3.Connection) -> tuple[None, tuple[Effect, ...]]:
            _info(db, bucket, metageneration)
            if index.first_name(db, bucket) is not None:
                raise Conflict(f"The bucket {bucket} is not empty: delete what is in it first.")
            if versions.are_in(db, bucket):
                raise Conflict(
                    f"The bucket {bucket} is not empty: old versions are in it. Delete them first, as "
                    f"`trainshed storage rm -r gs://{bucket}` does."
                )
            index.forget_bucket(db, bucket)
            return None, (lambda: self._remove_folder(bucket),)

        await self._disk.writer.write(change)

    def open(self, bucket: str) -> DiskBucket:
        return DiskBucket(bucket, self._disk, self._pieces)

    def together(self, one: str, other: str) -> bool:
        return True

    def _make_folder(self, bucket: str) -> None:
        with contextlib.suppress(OSError):  # the first object makes it where it is missing
            os.makedirs(self._disk.root / bucket, 0o700, exist_ok=True)

    def _remove_folder(self, bucket: str) -> None:
        # What somebody else has put there stays.
        for folder, _, _ in os.walk(self._disk.root / bucket, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(folder)


def _info(db: sqlite3.Connection, bucket: str, metageneration: int | None = None) -> BucketInfo:
    result = index.bucket(db, bucket)
    if result is None:
        raise no_bucket(bucket)
    if metageneration not in (None, result.metageneration):
        raise PreconditionFailed(
            f"The bucket has the metageneration {result.metageneration}, not {metageneration}."
        )
    return result
