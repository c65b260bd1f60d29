"""What people may do with buckets and objects, whoever keeps them.

It adds what is the same for every kind of bucket: rules of names, objects put together from others, copies.
Bytes pass through and are never gathered.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace

from trainshed.core.bucket import (
    MOST_PARTS,
    NOBODY,
    WHOLE,
    Attributes,
    BucketInfo,
    ObjectDraft,
    ObjectInfo,
    Precondition,
    check_new_bucket_name,
)
from trainshed.core.bucket_port import Bucket, Buckets
from trainshed.core.errors import Invalid, Violation
from trainshed.core.ports import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class CopySource:
    """An object to take bytes from: which, and what must hold of it."""

    bucket: str
    name: str
    generation: int | None = None
    precondition: Precondition = Precondition()  # noqa: RUF009 - frozen


@dataclass(slots=True)
class StorageService:
    buckets: Buckets
    clock: Clock

    async def create(self, name: str, project: str, location: str, labels: dict[str, str]) -> BucketInfo:
        now = self.clock.now()
        return await self.buckets.create(
            BucketInfo(
                name=check_new_bucket_name(name),
                project=project,
                location=location.upper() or "US",
                created_at=now,
                updated_at=now,
                labels=labels,
            )
        )

    async def of_project(self, project: str, prefix: str = "") -> tuple[BucketInfo, ...]:
        """The project's buckets and those of nobody; all of them for who names no project."""
        return tuple(
            one
            for one in await self.buckets.all()
            if one.name.startswith(prefix) and (project in NOBODY or one.is_open_to(project))
        )

    def open(self, bucket: str) -> Bucket:
        return self.buckets.open(bucket)

    async def compose(self, bucket: str, draft: ObjectDraft, sources: Sequence[CopySource]) -> ObjectInfo:
        """One object of the bytes of several, in order."""
        if not 1 <= len(sources) <= MOST_PARTS:
            sentence = f"An object can be composed of 1 to {MOST_PARTS} objects, not {len(sources)}."
            raise Invalid((Violation("sourceObjects", sentence),))
        found = [await self._look(source) for source in sources]
        components = sum(max(1, one.components) for one in found)
        target = self.open(bucket)
        return await target.put(replace(draft, components=components), self._chained(found))

    async def copy(
        self, target: str, draft: ObjectDraft, source: CopySource, to: Callable[[Attributes], Attributes]
    ) -> ObjectInfo:
        """A copy, with the attributes of the original as they are to be changed."""
        found = await self._look(source)
        draft = replace(draft, attributes=to(found.attributes))
        if self.buckets.together(source.bucket, target):
            return await self.open(target).copy(draft, found)
        return await self.open(target).put(replace(draft, crc32c=found.crc32c), self._chained([found]))

    async def _look(self, source: CopySource) -> ObjectInfo:
        found = await self.open(source.bucket).get(source.name, source.generation)
        source.precondition.check(found)
        return found

    async def _chained(self, found: Sequence[ObjectInfo]) -> AsyncIterator[bytes]:
        for one in found:
            reading = await self.open(one.bucket).read(one.name, WHOLE, one.generation)
            async for chunk in reading.chunks:
                yield chunk
