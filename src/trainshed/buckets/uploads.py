"""A bucket on the disk with uploads in pieces: what has come lies in a held file, how much of it counts is in
the index.

An upload that has made its object is remembered with it, so that whoever missed the answer can ask again.
"""

import secrets
import sqlite3
from collections.abc import AsyncIterator
from functools import partial

from trainshed.buckets import index
from trainshed.buckets.disk import Disk, no_bucket
from trainshed.buckets.index_writer import Effect
from trainshed.buckets.objects import Content, DiskObjects
from trainshed.buckets.pieces import Pieces
from trainshed.core.bucket import ObjectDraft, ObjectInfo, Upload, check_object_name
from trainshed.core.errors import Invalid, NotFound


class DiskBucket(DiskObjects):
    """Implements `core.bucket_port.Bucket`."""

    def __init__(self, name: str, disk: Disk, pieces: Pieces) -> None:
        super().__init__(name, disk)
        self._pieces = pieces

    async def begin(self, draft: ObjectDraft) -> Upload:
        check_object_name(draft.name)
        upload = Upload(id=secrets.token_urlsafe(24), draft=draft, received=0)

        def change(db: sqlite3.Connection) -> tuple[Upload, tuple[Effect, ...]]:
            if not index.has_bucket(db, self.name):
                raise no_bucket(self.name)
            old = index.get(db, self.name, draft.name)
            draft.precondition.check(old.info if old else None)
            index.keep_upload(db, self.name, upload, self._disk.clock.now())
            return upload, ()

        return await self._disk.writer.write(change)

    async def upload(self, upload: str) -> Upload:
        return await self._disk.look(lambda db: self._upload(db, upload))

    async def append(self, upload: str, offset: int, chunks: AsyncIterator[bytes]) -> Upload:
        async with self._pieces.alone(upload):
            result = await self.upload(upload)
            if result.done is not None:
                return result
            return await self._pieces.append(result, offset, chunks, partial(self._advance, upload))

    async def finish(self, upload: str, *, crc32c: str = "", md5: str = "") -> ObjectInfo:
        async with self._pieces.alone(upload):
            state = await self.upload(upload)
            if state.done is not None:
                return state.done
            try:
                sums = await self._pieces.whole(state, crc32c, md5)
            except Invalid:
                await self.abandon(upload)  # more bytes cannot make it right
                raise
            kept = await self.keep(state.draft, Content.of(upload, sums), upload)
        self._pieces.forget(upload)
        return kept.info

    async def received(self, upload: str) -> AsyncIterator[bytes]:
        async for chunk in self._pieces.read(await self.upload(upload)):
            yield chunk

    async def abandon(self, upload: str) -> None:
        def change(db: sqlite3.Connection) -> tuple[None, tuple[Effect, ...]]:
            state = self._upload(db, upload)
            index.forget_upload(db, upload)
            return None, () if state.done else (lambda: self._disk.writer.let_go(upload),)

        await self._disk.writer.write(change)
        self._pieces.forget(upload)

    def _upload(self, db: sqlite3.Connection, upload: str) -> Upload:
        result = index.upload(db, self.name, upload)
        if result is None:
            raise NotFound("There is no such upload; it was abandoned, or begun more than a week ago.")
        return result

    async def _advance(self, upload: str, received: int) -> None:
        def change(db: sqlite3.Connection) -> tuple[None, tuple[Effect, ...]]:
            index.advance_upload(db, upload, received)
            return None, ()

        await self._disk.writer.write(change)
