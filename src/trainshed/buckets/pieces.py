"""Pieces: the bytes of uploads in pieces, one file per upload, for buckets on the disk and remote ones.

The caller stores how many bytes of a file are acknowledged. After a crash the file is cut to that length, and
its sums are computed again. It never makes an object and never removes a file.
"""

import asyncio
import contextlib
import os
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import partial

from trainshed.buckets.intake import BATCH, ObjectIntake, summed
from trainshed.buckets.sums import Sums
from trainshed.buckets.trouble import translated
from trainshed.core.bucket import DamagedObject, Upload
from trainshed.core.errors import Invalid, Violation


@dataclass(slots=True, weakref_slot=True, eq=False)
class Session:
    """What this process knows of an upload: one caller at a time, and the sums so far."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    sums: Sums | None = None


class Sessions:
    """Sessions by upload; those nobody has used for a while are forgotten, which costs a reading of the
    file.
    """

    def __init__(self, most: int = 1000) -> None:
        self._most = most
        self._recent: dict[str, Session] = {}
        self._all: weakref.WeakValueDictionary[str, Session] = weakref.WeakValueDictionary()

    def of(self, upload: str) -> Session:
        session = self._recent.pop(upload, None) or self._all.get(upload) or Session()
        self._recent[upload] = self._all[upload] = session
        if len(self._recent) > self._most:
            del self._recent[next(iter(self._recent))]
        return session

    def forget(self, upload: str) -> None:
        self._recent.pop(upload, None)


class Pieces:
    """`place` says where an upload's file lies; `with_md5`: its MD5 is made at once, however large it is."""

    def __init__(self, place: Callable[[str], str], executor: Executor, *, with_md5: bool = False) -> None:
        self._place = place
        self._executor = executor
        self._with_md5 = with_md5
        self._sessions = Sessions()

    @contextlib.asynccontextmanager
    async def alone(self, upload: str) -> AsyncGenerator[None]:
        """Hold the upload's lock: nobody else appends to it or finishes it."""
        # Held to the end: were it forgotten meanwhile, the next caller would get another one and its lock.
        session = self._sessions.of(upload)
        async with session.lock:
            yield

    def forget(self, upload: str) -> None:
        self._sessions.forget(upload)

    async def append(
        self,
        upload: Upload,
        offset: int,
        chunks: AsyncIterator[bytes],
        advance: Callable[[int], Awaitable[None]],
    ) -> Upload:
        """The upload with these bytes; `advance` is told how many count whenever more do. Only `alone`."""
        if offset > upload.received:
            sentence = f"The upload has {upload.received} bytes so far; these begin at {offset}."
            raise Invalid((Violation("Content-Range", sentence),))
        sums = await self._sums(upload)
        intake = ObjectIntake(self._place(upload.id), sums, self._executor)
        try:
            await intake.take(_behind(chunks, upload.received - offset), advance)
        finally:
            intake.close()
            # Also where the stream broke off: what came is on the disk.
            await asyncio.shield(advance(sums.size))
        return replace(upload, received=sums.size, crc32c=sums.crc32c)

    async def whole(self, upload: Upload, crc32c: str, md5: str) -> Sums:
        """The sums of all that came, now a file; Invalid where a given hash differs. Only `alone`."""
        sums = await self._sums(upload)
        if md5 and not sums.md5:
            sums = await self._summed(upload, with_md5=True)
        upload.draft.check_hashes(sums.crc32c, sums.md5)
        replace(upload.draft, crc32c=crc32c, md5=md5).check_hashes(sums.crc32c, sums.md5)
        if not sums.size:
            await ObjectIntake(self._place(upload.id), sums, self._executor).take(_none())
        return sums

    async def read(self, upload: Upload) -> AsyncIterator[bytes]:
        loop, at = asyncio.get_running_loop(), 0
        while at < upload.received:
            chunk = await loop.run_in_executor(self._executor, self._chunk, upload, at)
            at += len(chunk)
            yield chunk

    def _chunk(self, upload: Upload, at: int) -> bytes:
        with translated("The upload cannot be read"), open(self._place(upload.id), "rb", buffering=0) as file:
            chunk = os.pread(file.fileno(), min(BATCH, upload.received - at), at)
        if not chunk:
            raise DamagedObject("Bytes of the upload are gone from the server's disk: begin it again.")
        return chunk

    async def _sums(self, upload: Upload) -> Sums:
        """The sums of the acknowledged bytes, computed again if those in memory cover another length."""
        session = self._sessions.of(upload.id)
        if session.sums is None or session.sums.size != upload.received:
            session.sums = await self._summed(upload, with_md5=self._with_md5 or upload.draft.wants_md5)
        return session.sums

    async def _summed(self, upload: Upload, *, with_md5: bool) -> Sums:
        make = partial(summed, self._place(upload.id), upload.received, with_md5=with_md5)
        return await asyncio.get_running_loop().run_in_executor(self._executor, make)


async def _behind(chunks: AsyncIterator[bytes], skipped: int) -> AsyncIterator[bytes]:
    async for chunk in chunks:
        if skipped < len(chunk):
            yield chunk[skipped:]
        skipped = max(0, skipped - len(chunk))


async def _none() -> AsyncIterator[bytes]:
    return
    yield b""
