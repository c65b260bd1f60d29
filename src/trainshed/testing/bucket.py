"""Buckets in memory that keep the promises of `core.bucket_port`, but for surviving the process.

For tests of what lies above the port. CRC32C is computed bit by bit: slow, and independent of the real one.
"""

import base64
import hashlib
import secrets
import struct
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

from trainshed.core.bucket import (
    ALWAYS,
    WHOLE,
    Attributes,
    BucketInfo,
    ObjectDraft,
    ObjectInfo,
    ObjectListing,
    ObjectQuery,
    Precondition,
    PreconditionFailed,
    Span,
    Upload,
    check_object_name,
)
from trainshed.core.bucket_port import Abilities, ObjectReading
from trainshed.core.errors import AlreadyExists, Conflict, Invalid, NotFound, Violation
from trainshed.core.ports import Clock


class MemoryBuckets:
    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.infos: dict[str, BucketInfo] = {}
        self.objects: dict[str, dict[str, tuple[ObjectInfo, bytes]]] = {}
        self.versions: dict[str, dict[tuple[str, int], tuple[ObjectInfo, bytes]]] = {}
        self.uploads: dict[str, tuple[str, Upload, bytes]] = {}
        self.answers: dict[tuple[str, str], ObjectInfo | None] = {}  # by bucket and request
        self.generation = 0

    async def start(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close."""

    async def create(self, info: BucketInfo) -> BucketInfo:
        if info.name in self.infos:
            raise AlreadyExists(f"There is a bucket named {info.name} already; choose another name.")
        self.infos[info.name], self.objects[info.name], self.versions[info.name] = info, {}, {}
        return info

    async def all(self) -> tuple[BucketInfo, ...]:
        return tuple(self.infos[name] for name in sorted(self.infos))

    async def get(self, bucket: str) -> BucketInfo:
        return self._info(bucket)

    async def change(
        self,
        bucket: str,
        to: Callable[[BucketInfo], BucketInfo],
        metageneration: int | None = None,
    ) -> BucketInfo:
        old = self._info(bucket, metageneration)
        now = self.clock.now()
        new = replace(to(old), metageneration=old.metageneration + 1, updated_at=now)
        self.infos[bucket] = new
        return new

    async def remove(self, bucket: str, metageneration: int | None = None) -> None:
        self._info(bucket, metageneration)
        if self.objects[bucket] or self.versions[bucket]:
            raise Conflict(f"The bucket {bucket} is not empty: delete what is in it first.")
        del self.infos[bucket], self.objects[bucket]

    def open(self, bucket: str) -> "MemoryBucket":
        return MemoryBucket(bucket, self)

    def together(self, one: str, other: str) -> bool:
        return True

    def _info(self, bucket: str, metageneration: int | None = None) -> BucketInfo:
        if (result := self.infos.get(bucket)) is None:
            raise NotFound(f"The specified bucket does not exist: {bucket}.")
        if metageneration not in (None, result.metageneration):
            raise PreconditionFailed(f"The bucket has the metageneration {result.metageneration}.")
        return result


class MemoryBucket:
    abilities = Abilities()

    def __init__(self, name: str, home: MemoryBuckets) -> None:
        self.name = name
        self._home = home

    async def get(self, name: str, generation: int | None = None) -> ObjectInfo:
        return self._object(name, generation)[0]

    async def find(self, query: ObjectQuery) -> ObjectListing:
        if self.name not in self._home.infos:
            raise NotFound(f"The specified bucket does not exist: {self.name}.")
        entries: dict[tuple[bytes, int], ObjectInfo | str] = {}
        old = self._home.versions[self.name] if query.versions else {}
        for info, _ in (*self._objects().values(), *old.values()):
            name = info.name
            if not name.startswith(query.prefix) or name.encode() < query.start.encode():
                continue
            if query.end and name.encode() >= query.end.encode():
                continue
            cut = name.find(query.delimiter, len(query.prefix)) if query.delimiter else -1
            prefix = name[: cut + len(query.delimiter)]
            if cut < 0 or (query.trailing and prefix == name):
                entries[(name.encode(), info.generation)] = info
            if cut >= 0:
                entries[(prefix.encode(), 0)] = prefix
        after = (query.after.encode(), query.after_generation or self._home.generation)
        remaining = sorted((key, entry) for key, entry in entries.items() if not query.after or key > after)
        page = remaining[: query.size]
        return ObjectListing(
            items=tuple(e for _, e in page if isinstance(e, ObjectInfo)),
            prefixes=tuple(e for _, e in page if isinstance(e, str)),
            next_after=page[-1][0][0].decode() if len(remaining) > len(page) else "",
            next_generation=page[-1][0][1] if query.versions and len(remaining) > len(page) else 0,
        )

    async def answered(self, request: str) -> ObjectInfo | None:
        return self._home.answers.get((self.name, request))

    async def put(self, draft: ObjectDraft, chunks: AsyncIterator[bytes]) -> ObjectInfo:
        check_object_name(draft.name)
        return self._keep(draft, b"".join([chunk async for chunk in chunks]))

    async def copy(self, draft: ObjectDraft, source: ObjectInfo) -> ObjectInfo:
        check_object_name(draft.name)
        bucket = self._home.open(source.bucket)
        _, content = bucket._object(source.name, source.generation)
        return self._keep(draft, content)

    async def read(
        self,
        name: str,
        span: Span = WHOLE,
        generation: int | None = None,
        precondition: Precondition = ALWAYS,
    ) -> ObjectReading:
        info, content = self._object(name, generation)
        precondition.check(info)
        first, length = span.within(info.size)
        return ObjectReading(info, first, length, _chunks(content[first : first + length]))

    async def change(
        self,
        name: str,
        to: Callable[[Attributes], Attributes],
        generation: int | None = None,
        precondition: Precondition = ALWAYS,
        request: str = "",
    ) -> ObjectInfo:
        if (made := await self.answered(request)) is not None:
            return made
        old, content = self._object(name, generation)
        precondition.check(old)
        new = replace(
            old,
            attributes=to(old.attributes),
            metageneration=old.metageneration + 1,
            updated_at=self._home.clock.now(),
        )
        if new.noncurrent_at is None:
            self._objects()[name] = (new, content)
        else:
            self._home.versions[self.name][(name, new.generation)] = (new, content)
        self._remember(request, new)
        return new

    async def delete(
        self,
        name: str,
        generation: int | None = None,
        precondition: Precondition = ALWAYS,
        request: str = "",
    ) -> None:
        if (self.name, request) in self._home.answers:
            return
        info, _ = self._object(name, generation)
        precondition.check(info)
        if info.noncurrent_at is not None:
            del self._home.versions[self.name][(name, info.generation)]
        elif generation is not None:
            del self._objects()[name]
        else:
            self._end(name)
        self._remember(request, None)

    async def begin(self, draft: ObjectDraft) -> Upload:
        check_object_name(draft.name)
        old = self._objects().get(draft.name)
        draft.precondition.check(old[0] if old else None)
        upload = Upload(id=secrets.token_urlsafe(12), draft=draft, received=0)
        self._home.uploads[upload.id] = (self.name, upload, b"")
        return upload

    async def upload(self, upload: str) -> Upload:
        return self._upload(upload)[0]

    async def append(self, upload: str, offset: int, chunks: AsyncIterator[bytes]) -> Upload:
        state, content = self._upload(upload)
        if offset > state.received:
            raise Invalid((Violation("Content-Range", f"The upload has {state.received} bytes so far."),))
        skipped = state.received - offset
        try:
            async for chunk in chunks:
                content, skipped = content + chunk[skipped:], max(0, skipped - len(chunk))
        finally:
            state = replace(state, received=len(content))
            self._home.uploads[upload] = (self.name, state, content)
        return replace(state, crc32c=base64.b64encode(struct.pack(">I", crc(content))).decode())

    async def finish(self, upload: str, *, crc32c: str = "", md5: str = "") -> ObjectInfo:
        state, content = self._upload(upload)
        if state.done:
            return state.done
        try:
            info = self._keep(state.draft, content, replace(state.draft, crc32c=crc32c, md5=md5))
        except Invalid:
            await self.abandon(upload)
            raise
        self._home.uploads[upload] = (self.name, replace(state, done=info), b"")
        return info

    async def received(self, upload: str) -> AsyncIterator[bytes]:
        yield self._upload(upload)[1]

    async def abandon(self, upload: str) -> None:
        self._upload(upload)
        del self._home.uploads[upload]

    def _upload(self, upload: str) -> tuple[Upload, bytes]:
        bucket, state, content = self._home.uploads.get(upload, ("", None, b""))
        if state is None or bucket != self.name:
            raise NotFound("There is no such upload; it was abandoned, or begun more than a week ago.")
        return state, content

    def _objects(self) -> dict[str, tuple[ObjectInfo, bytes]]:
        if (result := self._home.objects.get(self.name)) is None:
            raise NotFound(f"The specified bucket does not exist: {self.name}.")
        return result

    def _object(self, name: str, generation: int | None) -> tuple[ObjectInfo, bytes]:
        result = self._objects().get(name)
        if generation is not None and (result is None or result[0].generation != generation):
            result = self._home.versions[self.name].get((name, generation))
        if result is None:
            raise NotFound(f"No such object: {self.name}/{name}")
        return result

    def _keep(self, draft: ObjectDraft, content: bytes, also: ObjectDraft | None = None) -> ObjectInfo:
        crc32c = base64.b64encode(struct.pack(">I", crc(content))).decode()
        md5 = base64.b64encode(hashlib.md5(content, usedforsecurity=False).digest()).decode()
        (also or draft).check_hashes(crc32c, md5)
        draft.check_hashes(crc32c, md5)
        objects = self._objects()
        before = self._home.answers.get((self.name, draft.request))
        if before is not None and before.crc32c == crc32c:
            return before
        old = objects.get(draft.name)
        draft.precondition.check(old[0] if old else None)
        now = self._home.clock.now()
        self._home.generation = max(self._home.generation + 1, int(now.timestamp() * 1e6))
        info = ObjectInfo(
            bucket=self.name,
            name=draft.name,
            generation=self._home.generation,
            metageneration=1,
            size=len(content),
            crc32c=crc32c,
            md5=md5,
            created_at=now,
            updated_at=now,
            attributes=draft.attributes,
            components=draft.components,
        )
        for source in draft.removes:
            if source.name != draft.name and objects.get(source.name, (None,))[0] == source:
                self._end(source.name)
        if old is not None:
            self._end(draft.name)
        objects[draft.name] = (info, content)
        self._remember(draft.request, info)
        return info

    def _end(self, name: str) -> None:
        """The object is live no more."""
        info, content = self._objects().pop(name)
        if self._home.infos[self.name].versioning:
            old = replace(info, noncurrent_at=self._home.clock.now())
            self._home.versions[self.name][(name, info.generation)] = (old, content)

    def _remember(self, request: str, made: ObjectInfo | None) -> None:
        if request:
            self._home.answers[(self.name, request)] = made


def crc(content: bytes) -> int:
    value = 0xFFFFFFFF
    for byte in content:
        value ^= byte
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


async def _chunks(content: bytes) -> AsyncIterator[bytes]:
    if content:
        yield content
