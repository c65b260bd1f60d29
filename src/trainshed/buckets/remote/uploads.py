"""A remote bucket with uploads in pieces: implements `core.bucket_port.Bucket`. The pieces lie in the spool;
the store gets all of them at the end, and keeps nothing of one that is abandoned.
"""

from collections.abc import AsyncIterator
from dataclasses import replace

from trainshed.buckets.remote.names import check_plain
from trainshed.buckets.remote.objects import RemoteObjects
from trainshed.core.bucket import ALWAYS, ObjectDraft, ObjectInfo, Upload
from trainshed.core.errors import Invalid, NotFound


class RemoteBucket(RemoteObjects):
    async def begin(self, draft: ObjectDraft) -> Upload:
        check_plain(draft.name)
        await self._home.run(self._store)
        if draft.precondition != ALWAYS:
            try:
                old = await self.get(draft.name)
            except NotFound:
                old = None
            draft.precondition.check(old)
        return await self._home.run(self._home.spool.begin, self.name, draft)

    async def upload(self, upload: str) -> Upload:
        return await self._home.run(self._home.spool.get, self.name, upload)

    async def append(self, upload: str, offset: int, chunks: AsyncIterator[bytes]) -> Upload:
        async with self._home.pieces.alone(upload):
            state = await self.upload(upload)
            if state.done is not None:
                return state

            async def advance(received: int) -> None:
                await self._keep(replace(state, received=received))

            return await self._home.pieces.append(state, offset, chunks, advance)

    async def finish(self, upload: str, *, crc32c: str = "", md5: str = "") -> ObjectInfo:
        async with self._home.pieces.alone(upload):
            state = await self.upload(upload)
            if state.done is not None:
                return state.done
            try:
                sums = await self._home.pieces.whole(state, crc32c, md5)
            except Invalid:
                await self.abandon(upload)  # more bytes cannot make it right
                raise
            made = await self.send(state.draft, self._home.spool.path(upload), sums)
            await self._keep(replace(state, done=made))
            await self._home.run(self._home.spool.drop, upload)
        self._home.pieces.forget(upload)
        return made

    async def received(self, upload: str) -> AsyncIterator[bytes]:
        async for chunk in self._home.pieces.read(await self.upload(upload)):
            yield chunk

    async def abandon(self, upload: str) -> None:
        await self.upload(upload)
        await self._home.run(self._home.spool.drop, upload, known=True)
        self._home.pieces.forget(upload)

    async def _keep(self, upload: Upload) -> None:
        await self._home.run(self._home.spool.keep, self.name, upload)
