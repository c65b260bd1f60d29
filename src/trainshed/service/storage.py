"""What people may do with buckets and objects, whoever keeps them.

It adds what is the same for every kind of bucket: rules of names, objects put together from others, copies.
Bytes pass through and are never gathered.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
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
    PreconditionFailed,
    check_new_bucket_name,
)
from trainshed.core.bucket_port import Bucket, Buckets
from trainshed.core.errors import Invalid, NotFound, Violation
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
    on_rules: Callable[[], None] = lambda: None  # called when rules of a bucket may have changed

    async def create(
        self, name: str, project: str, location: str, to: Callable[[BucketInfo], BucketInfo]
    ) -> BucketInfo:
        """A bucket; `to` gives the plain one its labels, versioning and lifecycle."""
        now = self.clock.now()
        plain = BucketInfo(
            name=check_new_bucket_name(name),
            project=project,
            location=location.upper() or "US",
            created_at=now,
            updated_at=now,
        )
        made = await self.buckets.create(to(plain))
        self.on_rules()
        return made

    async def change(
        self, bucket: str, to: Callable[[BucketInfo], BucketInfo], metageneration: int | None = None
    ) -> BucketInfo:
        changed = await self.buckets.change(bucket, to, metageneration)
        self.on_rules()
        return changed

    async def of_project(self, project: str, prefix: str = "") -> tuple[BucketInfo, ...]:
        """The project's buckets and those of nobody; all of them for who names no project."""
        return tuple(
            item
            for item in await self.buckets.all()
            if item.name.startswith(prefix) and (project in NOBODY or item.is_open_to(project))
        )

    def open(self, bucket: str) -> Bucket:
        return self.buckets.open(bucket)

    async def compose(
        self, bucket: str, draft: ObjectDraft, sources: Sequence[CopySource], *, removes: bool = False
    ) -> ObjectInfo:
        """One object of the bytes of several, in order; `removes`: these are deleted with its commit."""
        if not 1 <= len(sources) <= MOST_PARTS:
            sentence = f"An object can be composed of 1 to {MOST_PARTS} objects, not {len(sources)}."
            raise Invalid((Violation("sourceObjects", sentence),))

        async def compose() -> ObjectInfo:
            found = [await self._look(source) for source in sources]
            whole = replace(
                draft,
                components=sum(max(1, item.components) for item in found),
                removes=tuple(found) if removes else (),
            )
            return await self.open(bucket).put(whole, self._chained(found))

        return await self._once(self.open(bucket), draft.request, compose)

    async def copy(
        self,
        target: str,
        draft: ObjectDraft,
        source: CopySource,
        to: Callable[[Attributes], Attributes],
        *,
        removes: bool = False,
    ) -> ObjectInfo:
        """A copy, with the attributes of the original as they are to be changed; `removes`: the original,
        which is in the same bucket, is deleted with its commit.
        """

        async def copy() -> ObjectInfo:
            found = await self._look(source)
            new = replace(draft, attributes=to(found.attributes), removes=(found,) if removes else ())
            if self.buckets.together(source.bucket, target):
                return await self.open(target).copy(new, found)
            return await self.open(target).put(replace(new, crc32c=found.crc32c), self._chained([found]))

        return await self._once(self.open(target), draft.request, copy)

    async def _once(
        self, target: Bucket, request: str, work: Callable[[], Awaitable[ObjectInfo]]
    ) -> ObjectInfo:
        """What the work makes, or has made when it was asked for before: then its sources may be gone."""
        if request and (made := await target.answered(request)) is not None:
            return made
        try:
            return await work()
        except (NotFound, PreconditionFailed):
            if request and (made := await target.answered(request)) is not None:
                return made  # the same request came twice at the same time
            raise

    async def _look(self, source: CopySource) -> ObjectInfo:
        result = await self.open(source.bucket).get(source.name, source.generation)
        source.precondition.check(result)
        return result

    async def _chained(self, found: Sequence[ObjectInfo]) -> AsyncIterator[bytes]:
        for item in found:
            reading = await self.open(item.bucket).read(item.name, WHOLE, item.generation)
            async for chunk in reading.chunks:
                yield chunk
