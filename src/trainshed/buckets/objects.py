"""One bucket on the disk: implements `core.bucket_port.Bucket`.

A put is: bytes to a held file, synced; one row of the index, committed together with others; the file
renamed to its place. The commit alone decides: before it the old object stands, after it the new one does,
wherever its file is.
"""

import contextlib
import errno
import os
import secrets
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from functools import partial

from trainshed.buckets import answers, index, versions
from trainshed.buckets.disk import Disk, no_bucket
from trainshed.buckets.index import StoredObject
from trainshed.buckets.index_writer import Effect
from trainshed.buckets.intake import ObjectIntake
from trainshed.buckets.listing import find
from trainshed.buckets.outlet import Outlet
from trainshed.buckets.places import place_of
from trainshed.buckets.sums import Sums
from trainshed.buckets.trouble import translated
from trainshed.core.bucket import (
    ALWAYS,
    WHOLE,
    Attributes,
    ObjectDraft,
    ObjectInfo,
    ObjectListing,
    ObjectQuery,
    Precondition,
    Span,
    check_object_name,
)
from trainshed.core.bucket_port import Abilities, ObjectReading
from trainshed.core.errors import TrainshedError


@dataclass(frozen=True, slots=True)
class Content:
    """The bytes of an object that is to be: the held file, and what they sum up to."""

    file: str
    size: int
    crc32c: str
    md5: str
    blocks: bytes

    @classmethod
    def of(cls, file: str, sums: Sums) -> "Content":
        return cls(file, sums.size, sums.crc32c, sums.md5, sums.blocks)


class DiskObjects:
    """The objects; uploads in pieces come on top (uploads.py)."""

    abilities = Abilities()

    def __init__(self, name: str, disk: Disk) -> None:
        self.name = name
        self._disk = disk

    async def get(self, name: str, generation: int | None = None) -> ObjectInfo:
        return await self._disk.look(lambda db: self._stored(db, name, generation).info)

    async def find(self, query: ObjectQuery) -> ObjectListing:
        def look(db: sqlite3.Connection) -> ObjectListing:
            listing = find(db, self.name, query)
            if not listing.items and not index.has_bucket(db, self.name):
                raise no_bucket(self.name)
            return listing

        return await self._disk.look(look)

    async def answered(self, request: str) -> ObjectInfo | None:
        made = await self._disk.look(lambda db: answers.made_by(db, self.name, request))
        return made.info if made is not None else None

    async def put(self, draft: ObjectDraft, chunks: AsyncIterator[bytes]) -> ObjectInfo:
        check_object_name(draft.name)
        file = secrets.token_hex(12)
        sums = Sums(with_md5=draft.wants_md5)
        intake = ObjectIntake(self._disk.writer.held_path(file), sums, self._disk.executor)
        is_kept = False
        try:
            await intake.take(chunks)
            draft.check_hashes(intake.sums.crc32c, intake.sums.md5)
            kept = await self.keep(draft, Content.of(file, intake.sums))
            is_kept = True
            return kept.info
        finally:
            intake.close()
            if not is_kept:
                await self._disk.run(self._let_go_unless_kept, file)

    async def copy(self, draft: ObjectDraft, source: ObjectInfo) -> ObjectInfo:
        check_object_name(draft.name)
        file = secrets.token_hex(12)

        def share() -> Content:
            with translated("The object cannot be copied"):
                kept, opened, sums = self._disk.opened(source.bucket, source.name, source.generation)
                try:
                    _share(opened, self._disk.writer.held_path(file))
                finally:
                    os.close(opened)
            info = kept.info
            return Content(file, info.size, info.crc32c, info.md5, sums)

        try:
            return (await self.keep(draft, await self._disk.run(share))).info
        except TrainshedError:
            await self._disk.run(self._disk.writer.let_go, file)
            raise

    async def read(
        self,
        name: str,
        span: Span = WHOLE,
        generation: int | None = None,
        precondition: Precondition = ALWAYS,
    ) -> ObjectReading:
        def begin() -> tuple[ObjectInfo, Outlet, tuple[int, int, bytes]]:
            kept, file, sums = self._disk.opened(self.name, name, generation, precondition)
            outlet = Outlet(file, kept.info, sums)
            return kept.info, outlet, outlet.open(span)

        info, outlet, (first, length, block) = await self._disk.run(begin)
        bounds = first, length, block, self._disk.executor
        return ObjectReading(info, first, length, outlet.stream(*bounds), partial(outlet.send, *bounds))

    async def change(
        self,
        name: str,
        to: Callable[[Attributes], Attributes],
        generation: int | None = None,
        precondition: Precondition = ALWAYS,
        request: str = "",
    ) -> ObjectInfo:
        def change(db: sqlite3.Connection) -> tuple[ObjectInfo, tuple[Effect, ...]]:
            if (before := answers.made_by(db, self.name, request)) is not None:
                return before.info, ()
            old = self._stored(db, name, generation)
            precondition.check(old.info)
            info = replace(
                old.info,
                attributes=to(old.info.attributes),
                metageneration=old.info.metageneration + 1,
                updated_at=self._disk.clock.now(),
            )
            kept = StoredObject(info, old.file, old.place)
            if info.noncurrent_at is None:
                index.keep(db, kept, b"")
            else:
                versions.keep(db, kept)
            answers.remember(db, self.name, request, kept, info.updated_at)
            return info, ()

        return await self._disk.writer.write(change)

    async def delete(
        self,
        name: str,
        generation: int | None = None,
        precondition: Precondition = ALWAYS,
        request: str = "",
    ) -> None:
        def change(db: sqlite3.Connection) -> tuple[None, tuple[Effect, ...]]:
            if answers.is_answered(db, self.name, request):
                return None, ()
            old = self._stored(db, name, generation)
            precondition.check(old.info)
            answers.remember(db, self.name, request, None, self._disk.clock.now())
            if generation is None:
                return None, self._ended(db, old)
            if old.info.noncurrent_at is None:
                index.forget(db, old)
            else:
                versions.forget(db, old)
            return None, self._dropped(db, old)

        await self._disk.writer.write(change)

    async def keep(self, draft: ObjectDraft, content: Content, upload: str = "") -> StoredObject:
        """Make the held file the object, for good; with the end of the upload it came by."""

        def change(db: sqlite3.Connection) -> tuple[StoredObject, tuple[Effect, ...]]:
            if not index.has_bucket(db, self.name):
                raise no_bucket(self.name)
            before = answers.made_by(db, self.name, draft.request)
            if before is not None and before.info.crc32c == content.crc32c:
                return before, (lambda: self._disk.writer.let_go(content.file),)
            old = index.get(db, self.name, draft.name)
            draft.precondition.check(old.info if old else None)
            now = self._disk.clock.now()
            generation = index.next_generation(db, now)
            info = ObjectInfo(
                bucket=self.name,
                name=draft.name,
                generation=generation,
                metageneration=1,
                size=content.size,
                crc32c=content.crc32c,
                md5=content.md5,
                created_at=now,
                updated_at=now,
                attributes=draft.attributes,
                components=draft.components,
            )
            kept = StoredObject(info, content.file, self._place(db, draft.name, old))
            effects: tuple[Effect, ...] = ()
            if old is not None:
                effects = self._ended(db, old, replaced_at=kept.place)
            if kept.place is not None:
                index.undrop(db, self.name, kept.place)
            index.keep(db, kept, content.blocks)
            effects += self._removed(db, draft)
            answers.remember(db, self.name, draft.request, kept, now)
            if upload:
                index.end_upload(db, upload, kept)
            return kept, (*effects, lambda: self._disk.writer.settle(kept))

        kept = await self._disk.writer.write(change)
        if not kept.info.md5:
            self._disk.late.add(kept)
        return kept

    def _removed(self, db: sqlite3.Connection, draft: ObjectDraft) -> tuple[Effect, ...]:
        """Delete what the draft removes, but for objects that were replaced meanwhile and the draft's own."""
        effects: tuple[Effect, ...] = ()
        for name, generation in {item.name: item.generation for item in draft.removes}.items():
            stored = index.get(db, self.name, name)
            if stored is not None and stored.info.generation == generation and name != draft.name:
                effects += self._ended(db, stored)
        return effects

    def _ended(
        self, db: sqlite3.Connection, live: StoredObject, replaced_at: str | None = None
    ) -> tuple[Effect, ...]:
        """The object is live no more: an old version where the bucket keeps them, else gone."""
        bucket = index.bucket(db, self.name)
        if bucket is None or not bucket.versioning:
            index.forget(db, live)
            return self._dropped(db, live, replaced_at)
        self._disk.writer.retire(live)
        versions.retire(db, live, self._disk.clock.now())
        return self._left_place(db, live, replaced_at)

    def _stored(self, db: sqlite3.Connection, name: str, generation: int | None) -> StoredObject:
        return self._disk.get(db, self.name, name, generation)

    def _dropped(
        self, db: sqlite3.Connection, old: StoredObject, replaced_at: str | None = None
    ) -> tuple[Effect, ...]:
        """What becomes of the files of an object that is no more."""
        let_go = partial(self._disk.writer.let_go, old.file)
        return (let_go, *self._left_place(db, old, replaced_at))

    def _left_place(
        self, db: sqlite3.Connection, old: StoredObject, replaced_at: str | None
    ) -> tuple[Effect, ...]:
        if (place := old.place) is None or place == replaced_at:
            return ()
        index.drop(db, self.name, place)
        return (partial(self._disk.writer.discard, self.name, place),)

    def _place(self, db: sqlite3.Connection, name: str, old: StoredObject | None) -> str | None:
        """Where a person would look for it, if nothing else is or must be there."""
        if old is not None and old.place is not None:
            return old.place
        place = place_of(name)
        if place is None:
            return None
        above = name
        while "/" in above:
            above = above.rpartition("/")[0]
            if above and index.is_placed(db, self.name, above):
                return None  # a file is where a folder would have to be
        path = self._disk.writer.placed(self.name, place)
        try:
            os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
            return None if os.path.isdir(path) else place
        except OSError:
            return None

    def _let_go_unless_kept(self, file: str) -> None:
        """A caller that went away may have left a change behind that was made all the same."""
        with contextlib.suppress(sqlite3.Error):  # the caller is told what went wrong before
            if self._disk.by_file(file) is None:
                self._disk.writer.let_go(file)


def _share(opened: int, path: str) -> None:
    """The same bytes under another name, or a copy where the file system will have no more names for them."""
    try:
        # Given a folder, the system's call that follows this link to the open file is used.
        os.link(f"/proc/self/fd/{opened}", path, src_dir_fd=opened, follow_symlinks=True)
        return
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
    with open(opened, "rb", closefd=False) as source, open(path, "xb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
        target.flush()
        os.fsync(target.fileno())
