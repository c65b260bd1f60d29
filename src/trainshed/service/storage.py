"""Use cases of buckets and objects, for every kind of bucket.

The API's storage handlers call it. It adds what is the same for all buckets: the rules for names, compose and
copy. Bytes are passed on in chunks and never collected in memory.
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
    """An object to copy bytes from, and the precondition it must meet."""

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
        """Create a bucket. `to` adds labels, versioning and lifecycle."""
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
        """The project's buckets and those without a project; without a project, all buckets."""
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
        """Make one object from the bytes of several, in order. `removes`: delete those in the same commit."""
        if not 1 <= len(sources) <= MOST_PARTS:
            sentence = f"An object can be composed of 1 to {MOST_PARTS} objects, not {len(sources)}."
            raise Invalid((Violation("sourceObjects", sentence),))

        async def compose() -> ObjectInfo:
            parts = [await self._look(source) for source in sources]
            whole = replace(
                draft,
                components=sum(max(1, item.components) for item in parts),
                removes=tuple(parts) if removes else (),
            )
            return await self.open(bucket).put(whole, self._chained(parts))

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
        """Copy an object; `to` gives the attributes of the copy.

        `removes`: delete the original, which is in the same bucket, in the same commit.
        """

        async def copy() -> ObjectInfo:
            original = await self._look(source)
            new = replace(draft, attributes=to(original.attributes), removes=(original,) if removes else ())
            if self.buckets.together(source.bucket, target):
                return await self.open(target).copy(new, original)
            return await self.open(target).put(
                replace(new, crc32c=original.crc32c), self._chained([original])
            )

        return await self._once(self.open(target), draft.request, copy)

    async def _once(
        self, target: Bucket, request: str, work: Callable[[], Awaitable[ObjectInfo]]
    ) -> ObjectInfo:
        """Do the work, or return what the same request made earlier: its sources may be gone by now."""
        if request and (made := await target.answered(request)) is not None:
            return made
        try:
            return await work()
        except (NotFound, PreconditionFailed):
            if request and (made := await target.answered(request)) is not None:
                return made  # the same request came twice at the same time
            raise

    async def _look(self, source: CopySource) -> ObjectInfo:
        info = await self.open(source.bucket).get(source.name, source.generation)
        source.precondition.check(info)
        return info

    async def _chained(self, objects: Sequence[ObjectInfo]) -> AsyncIterator[bytes]:
        for item in objects:
            reading = await self.open(item.bucket).read(item.name, WHOLE, item.generation)
            async for chunk in reading.chunks:
                yield chunk
