"""One remote bucket's objects: implements `core.bucket_port.Bucket`, uploads excepted (uploads.py).

The store decides: a condition goes along with the bytes, as an entity tag the store compares itself. An
object's generation is made of its tag, so it says "the same bytes", not "the newer ones".
"""

import base64
import contextlib
import hashlib
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, ParamSpec

import obstore

from trainshed.buckets.remote import labels
from trainshed.buckets.remote.connect import Store
from trainshed.buckets.remote.home import RemoteStores
from trainshed.buckets.remote.listing import find
from trainshed.buckets.remote.names import check_plain, is_plain
from trainshed.buckets.remote.rows import Remote, StoreKind
from trainshed.buckets.remote.trouble import translated
from trainshed.buckets.sums import Sums
from trainshed.core.bucket import (
    ALWAYS,
    WHOLE,
    Attributes,
    DamagedObject,
    ObjectDraft,
    ObjectInfo,
    ObjectListing,
    ObjectQuery,
    Precondition,
    PreconditionFailed,
    Span,
)
from trainshed.core.bucket_port import Abilities, ObjectReading
from trainshed.core.errors import Invalid, NotFound, Unavailable, Violation

LOCKED = 32 << 20  # bytes of an object sent in one request, which alone can carry a condition
PART = 8 << 20
PIECE = 1 << 20
_TRIES = 5
_P = ParamSpec("_P")
ABILITIES = Abilities(
    creates=False,
    any_name=False,
    sorted=False,
    rising=False,
    locks_up_to=LOCKED,
    reads_on=False,
    notices_damage=False,
    changes=False,
    lists_all=False,
    remembers=False,
    versions=False,
    own_time=False,
)


class RemoteObjects:
    abilities = ABILITIES

    def __init__(self, remote: Remote, home: RemoteStores) -> None:
        self.name = remote.name
        self._remote = remote
        self._home = home

    async def get(self, name: str, generation: int | None = None) -> ObjectInfo:
        return (await self._home.run(self._look, name, generation))[0]

    async def find(self, query: ObjectQuery) -> ObjectListing:
        if query.versions:
            sentence = f"{self._place()} is kept elsewhere: old versions are not told of here."
            raise Invalid((Violation("versions", sentence),))

        def look() -> ObjectListing:
            with translated(self._place()):
                page = find(self._store(), query)
            items = tuple(self._info(meta) for meta in page.metas)
            return ObjectListing(items=items, prefixes=page.prefixes, next_after=page.next_after)

        return await self._home.run(look)

    async def answered(self, request: str) -> ObjectInfo | None:
        return None

    async def put(self, draft: ObjectDraft, chunks: AsyncIterator[bytes]) -> ObjectInfo:
        check_plain(draft.name)
        async with self._home.spooled(chunks) as (path, sums):
            draft.check_hashes(sums.crc32c, sums.md5)
            return await self.send(draft, path, sums)

    async def send(self, draft: ObjectDraft, path: str, sums: Sums) -> ObjectInfo:
        """A file's bytes to the store, under the draft's condition."""
        return await self._made(draft, self._send, draft, path, sums)

    async def copy(self, draft: ObjectDraft, source: ObjectInfo) -> ObjectInfo:
        check_plain(draft.name)
        there = self._home.objects(source.bucket)
        same = source.bucket == self.name and draft.precondition == ALWAYS and source.name != draft.name
        if same and draft.attributes == source.attributes:
            return await self._made(draft, self._copy, source, draft.name)
        reading = await there.read(source.name, WHOLE, source.generation)
        return await self.put(replace(draft, crc32c=draft.crc32c or source.crc32c), reading.chunks)

    async def read(
        self,
        name: str,
        span: Span = WHOLE,
        generation: int | None = None,
        precondition: Precondition = ALWAYS,
    ) -> ObjectReading:
        def begin() -> tuple[ObjectInfo, int, int, Iterator[Any]]:
            if span == WHOLE:
                return self._begin_whole(name, generation, precondition)
            for _ in range(_TRIES):
                info, tag = self._look(name, generation)
                precondition.check(info)
                first, length = span.within(info.size)
                options: Any = {"range": (first, first + length)} if length < info.size else {}
                if "e_tag" in tag:
                    options["if_match"] = tag["e_tag"]
                try:
                    with translated(self._place(name)):
                        response = obstore.get(self._store(), name, options=options)
                        return info, first, length, iter(response.stream(min_chunk_size=PIECE))
                except (PreconditionFailed, NotFound):
                    continue  # replaced between the two requests, or gone: then the next look says so
            raise Unavailable(f"{self._place(name)} changes too fast to be read.")

        info, first, length, pieces = await self._home.run(begin)
        return ObjectReading(info, first, length, self._stream(info, length, pieces))

    async def change(
        self,
        name: str,
        to: Callable[[Attributes], Attributes],
        generation: int | None = None,
        precondition: Precondition = ALWAYS,
        request: str = "",
    ) -> ObjectInfo:
        info = await self.get(name, generation)
        precondition.check(info)
        if to(info.attributes) == info.attributes:
            return info
        sentence = f"What is said about {self._place(name)} cannot be changed there: put or copy it anew."
        raise Invalid((Violation("", sentence),))

    async def delete(
        self,
        name: str,
        generation: int | None = None,
        precondition: Precondition = ALWAYS,
        request: str = "",
    ) -> None:
        def drop() -> None:
            info, _ = self._look(name, generation)
            precondition.check(info)
            with translated(self._place(name)):
                obstore.delete(self._store(), name)

        await self._home.run(drop)

    async def _made(
        self, draft: ObjectDraft, work: Callable[_P, ObjectInfo], *args: _P.args, **kwargs: _P.kwargs
    ) -> ObjectInfo:
        """What the work makes; then what the draft removes is deleted, as no store does both at once."""
        made = await self._home.run(work, *args, **kwargs)
        for name, generation in {item.name: item.generation for item in draft.removes}.items():
            if name != draft.name:
                with contextlib.suppress(NotFound):  # replaced meanwhile, or gone
                    await self.delete(name, generation)
        return made

    # ---- for threads

    def _begin_whole(
        self, name: str, generation: int | None, precondition: Precondition
    ) -> tuple[ObjectInfo, int, int, Iterator[Any]]:
        """One request, so nothing can come between."""
        if not is_plain(name):
            raise NotFound(f"No such object: {self._place(name)}")
        with translated(self._place(name)):
            response = obstore.get(self._store(), name)
        info = self._info(response.meta, response.attributes)
        if generation not in (None, info.generation):
            raise NotFound(f"No such object: {self._place(name)}#{generation}")
        precondition.check(info)
        return info, 0, info.size, iter(response.stream(min_chunk_size=PIECE))

    def _look(self, name: str, generation: int | None = None) -> tuple[ObjectInfo, dict[str, str]]:
        """The object, and what the store tells it apart by. One request, and no bytes."""
        place = self._place(name)
        if not is_plain(name):
            raise NotFound(f"No such object: {place}")
        with translated(place):
            response = obstore.get(self._store(), name, options={"head": True})
        info = self._info(response.meta, response.attributes)
        if generation not in (None, info.generation):
            raise NotFound(f"No such object: {place}#{generation}")
        return info, {word: value for word in ("e_tag", "version") if (value := response.meta[word])}

    def _send(self, draft: ObjectDraft, path: str, sums: Sums) -> ObjectInfo:
        mode: Any = "overwrite"
        if draft.precondition != ALWAYS:
            try:
                old, tag = self._look(draft.name)
            except NotFound:
                old, tag = None, {}
            draft.precondition.check(old)
            if sums.size <= LOCKED:
                mode = tag if old else "create"
        attributes: Any = labels.written(draft.attributes, {"crc32c": sums.crc32c, "md5": sums.md5})
        with translated(self._place(draft.name)):
            sent = obstore.put(
                self._store(),
                draft.name,
                Path(path).read_bytes() if sums.size <= LOCKED else Path(path),
                attributes=attributes,
                mode=mode,
                use_multipart=sums.size > LOCKED,
                chunk_size=max(PART, -(-sums.size // 9000)),  # a store takes 10,000 parts
                max_concurrency=4,
            )
        meta = {"path": draft.name, "size": sums.size, "e_tag": sent["e_tag"]}
        try:
            info, tag = self._look(draft.name)
            if tag.get("e_tag") == sent["e_tag"]:
                return info
        except NotFound:
            pass  # somebody else was faster with the next change: what was put was put
        return self._info(meta | {"last_modified": self._home.clock.now()}, attributes)

    def _copy(self, source: ObjectInfo, name: str) -> ObjectInfo:
        self._look(source.name, source.generation)
        with translated(self._place(source.name)):
            obstore.copy(self._store(), source.name, name)
        return self._look(name)[0]

    async def _stream(self, info: ObjectInfo, length: int, pieces: Iterator[Any]) -> AsyncIterator[bytes]:
        """The last piece is held back until the sum of all is known to be right, where one is known."""
        sums = Sums() if info.crc32c and length == info.size else None
        got = 0
        while got < length:
            piece = await self._home.run(self._next, info, pieces)
            if not piece:
                raise Unavailable(f"{self._place(info.name)} broke off after {got} of {length} bytes.")
            got += len(piece)
            if sums is not None:
                sums.feed((piece,))
                if got >= length and sums.crc32c != info.crc32c:
                    raise DamagedObject(
                        f"{self._place(info.name)} is damaged: its CRC32C is not {info.crc32c}."
                    )
            yield piece

    def _next(self, info: ObjectInfo, pieces: Iterator[Any]) -> bytes:
        with translated(self._place(info.name)):
            return bytes(next(pieces, b""))

    def _store(self) -> Store:
        return self._home.store(self._remote)

    def _place(self, name: str = "") -> str:
        return f"{self._remote.kind.value}://{self.name}" + (f"/{name[:200]}" if name else "")

    def _info(self, meta: Any, stored: Any = None) -> ObjectInfo:
        attributes, sums = labels.read(stored or {})
        tag: str = meta["e_tag"] or f"{meta['last_modified']} {meta['size']}"
        at: datetime = meta["last_modified"].replace(microsecond=0)
        return ObjectInfo(
            bucket=self.name,
            name=meta["path"],
            generation=1 + int(hashlib.sha256(tag.encode()).hexdigest()[:14], 16),
            metageneration=1,
            size=meta["size"],
            crc32c=sums.get("crc32c", ""),
            md5=sums.get("md5") or (_md5(tag) if self._remote.kind is StoreKind.S3 else ""),
            created_at=at,
            updated_at=at,
            attributes=attributes,
        )


def _md5(tag: str) -> str:
    """S3's tag of an object that came in one request and is not encrypted by a key of its own."""
    try:
        digest = bytes.fromhex(tag.strip('"'))
    except ValueError:
        return ""
    return base64.b64encode(digest).decode() if len(digest) == 16 else ""
