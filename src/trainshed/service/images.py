"""Use cases of container images: list, pull, push, build, load, save, tag and remove.

`api/images.py` calls it. It checks names, and refuses to remove an image that a job which is not over, or an
image cache, needs. An image all of whose names are of projects that the caller may not see is as one that is
not there, also by its id. It never talks to an engine itself: that is the `ImageStore`.
"""

import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from trainshed.core.accounts.permission import Principal
from trainshed.core.errors import Conflict, Forbidden, Invalid, NotFound, Violation
from trainshed.core.jobs.job import Job
from trainshed.core.ports import Store
from trainshed.core.supplies.image import (
    BuildRecipe,
    Image,
    ImageStep,
    ImageWork,
    ImageWorkKind,
    canonical,
    is_seen,
    parse,
    refusal,
)
from trainshed.core.supplies.image_cache import ImageCache, holding
from trainshed.core.supplies.image_port import ImageStore
from trainshed.service.image_uploads import ImageUploads
from trainshed.service.wanted import wanted_by

_ID = re.compile("(?:sha256:)?[0-9a-f]{4,64}")
_OTHERS = ImageStep(text="it is going on, for somebody else")


@dataclass(slots=True)
class ImageService:
    store: Store
    images: ImageStore
    uploads: ImageUploads
    caches: Callable[[], Iterable[ImageCache]] = tuple  # all caches that keep images
    _going: list[ImageWork] = field(default_factory=list[ImageWork])

    async def all(self, principal: Principal) -> tuple[tuple[Image, tuple[str, ...]], ...]:
        """All images, each with the ids of the jobs that need it and are not over.

        Without images, names and jobs of projects that the principal may not see.
        """
        images, wanted = await self.images.all(), await self._wanted()
        pairs: list[tuple[Image, tuple[str, ...]]] = []
        for image in images:
            if not _is_open(image, principal):
                continue
            jobs = [job.id for job in _wanting(image.names, wanted) if principal.sees(job.project)]
            names = tuple(name for name in image.names if is_seen(name, principal))
            digests = tuple(name for name in image.digests if is_seen(name, principal))
            pairs.append((replace(image, names=names, digests=digests), tuple(jobs)))
        return tuple(sorted(pairs, key=lambda pair: (not pair[0].names, pair[0].names, pair[0].id)))

    def going(self, principal: Principal) -> tuple[ImageWork, ...]:
        """What people do with images now. Pulls for jobs alone are told by `Backend.preparing`.

        What the build or the load of somebody else says is for those who see all.
        """
        return tuple(
            work if principal.sees_all or work.by in ("", str(principal)) else replace(work, step=_OTHERS)
            for work in self._going
            if all(is_seen(name, principal) for name in work.name.split(", "))
        )

    async def get(self, name: str, principal: Principal) -> Image:
        """The image with that name or id."""
        try:
            image = await self.images.get(name)
        except NotFound as error:
            raise _absent(name) from error
        if not _is_open(image, principal):
            raise _absent(name)
        return image

    def pull(self, name: str) -> AsyncIterator[ImageStep]:
        return self._shown(ImageWorkKind.PULL, name, self.images.pull(_checked("name", name)))

    def push(self, name: str) -> AsyncIterator[ImageStep]:
        if "@" in _checked("name", name):
            raise Invalid((Violation("name", f"'{name}' has a digest; push a name and a tag."),))
        return self._shown(ImageWorkKind.PUSH, name, self.images.push(name))

    def build(
        self, context: AsyncIterator[bytes], recipe: BuildRecipe, principal: Principal, project: str
    ) -> AsyncIterator[ImageStep]:
        """Build it, with the caches of the project for people who do not see all projects."""
        if principal.sees_all:
            steps = self.images.build(context, recipe)
        else:
            steps = self.uploads.build(context, recipe, principal, project)
        return self._shown(ImageWorkKind.BUILD, ", ".join(recipe.tags), steps, principal)

    def load(self, archive: AsyncIterator[bytes], principal: Principal) -> AsyncIterator[ImageStep]:
        is_spared = principal.sees_all
        steps = self.images.load(archive) if is_spared else self.uploads.load(archive, principal)
        return self._shown(ImageWorkKind.LOAD, "", steps, principal)

    def save(self, names: tuple[str, ...]) -> AsyncIterator[bytes]:
        return self.images.save(tuple(_checked("names", name) for name in names))

    async def tag(self, name: str, new: str) -> None:
        if "@" in _checked("tag", new):
            raise Invalid((Violation("tag", f"'{new}' has a digest; give a name and a tag."),))
        await self.images.tag(name, new)

    async def remove(self, names: tuple[str, ...], principal: Principal, *, force: bool) -> tuple[str, ...]:
        """Remove images by name or id. Nothing is removed where one of them is refused.

        Returns what was removed: names, and the ids of images that no other name has.
        """
        wanted = await self._wanted()
        if wrong := [s for name in names if not _ID.fullmatch(name) and (s := refusal(name))]:
            raise Invalid(tuple(Violation("names", sentence) for sentence in wrong))
        for name in names:
            image = await self.get(name, principal)
            # With force the containers are removed too, whichever name of the image they were made from.
            only_this_name = not force and refusal(name) is None and canonical(name) in _full(image.names)
            removed_names = (name,) if only_this_name else image.names
            touched = removed_names if only_this_name else (*image.names, *image.digests)
            if not all(is_seen(each, principal) for each in touched):
                raise Forbidden(f"{name} has names of another project as well: remove your own name of it.")
            if jobs := _wanting(removed_names, wanted):
                raise Conflict(wanted_by(name, jobs, principal))
            if not force and (cache := holding(self.caches(), removed_names)) is not None:
                raise Conflict(_kept_by(cache, name, principal))
        return tuple([gone for name in names for gone in await self.images.remove(name, force=force)])

    async def _shown(
        self,
        kind: ImageWorkKind,
        name: str,
        steps: AsyncIterator[ImageStep],
        principal: Principal | None = None,
    ) -> AsyncIterator[ImageStep]:
        """The steps, with the latest of them in `going` until the last."""
        by = str(principal or "")
        work = ImageWork(kind=kind, name=name, step=ImageStep(text="it begins"), by=by)
        self._going.append(work)
        try:
            async for work.step in steps:
                yield work.step
        finally:
            self._going = [item for item in self._going if item is not work]

    async def _wanted(self) -> Mapping[str, list[Job]]:
        """The jobs that are not over, by each full name that their images may have."""
        jobs: dict[str, list[Job]] = {}
        for job in await self.store.active():
            for image in {pool.image for pool in job.spec.pools if pool.image}:
                for name in parse(image).places if refusal(image) is None else ():
                    jobs.setdefault(name, []).append(job)
        return jobs


def _is_open(image: Image, principal: Principal) -> bool:
    """One without a name is for those who see all: it may have lost a name of any project."""
    return principal.sees_all or any(is_seen(name, principal) for name in (*image.names, *image.digests))


def _absent(name: str) -> NotFound:
    return NotFound(f"There is no image {name} here.")


def _kept_by(cache: ImageCache, name: str, principal: Principal) -> str:
    if not principal.sees(cache.project):
        return f"{name} is kept by an image cache of another project."
    return (
        f"{name} is kept by image cache {cache.id}: delete that first (trainshed images cache rm "
        f"{cache.id}), or use force, and the cache brings it back within the hour."
    )


def _wanting(names: tuple[str, ...], wanted: Mapping[str, list[Job]]) -> list[Job]:
    return list({job.id: job for name in _full(names) for job in wanted.get(name, ())}.values())


def _full(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(map(canonical, names))


def _checked(field: str, name: str) -> str:
    if sentence := refusal(name):
        raise Invalid((Violation(field, sentence),))
    return name
