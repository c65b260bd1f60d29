"""An ImageCache: images that are pulled before a job needs them, and kept. Pure.

The cache keeper (`control/image_caches.py`) pulls the images, the collector (`control/image_collector.py`)
does not remove them, and the cache is deleted when its retention is over. Nothing here calls an engine or a
clock.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from trainshed.core.supplies.image import canonical, refusal

MOST_IMAGES = 20
LONGEST_RETENTION = 36_500  # days


class CacheState(StrEnum):
    CREATING = "CREATING"
    READY = "READY"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageCache:
    id: str
    project: str
    location: str
    images: tuple[str, ...]
    created_at: datetime
    room: int = 0  # GiB asked for; shown, not enforced
    retention_days: int = 0  # 0: until somebody deletes it
    state: CacheState = CacheState.CREATING
    percent: int = 0
    reason: str = ""  # what it waits for, or why it failed
    size: int = 0  # bytes, once it is ready
    updated_at: datetime | None = None

    @property
    def name(self) -> str:
        return f"projects/{self.project}/locations/{self.location}/imageCaches/{self.id}"

    @property
    def expires_at(self) -> datetime | None:
        return self.created_at + timedelta(days=self.retention_days) if self.retention_days else None

    def is_over(self, now: datetime) -> bool:
        return self.expires_at is not None and self.expires_at <= now

    def asks_the_same(self, other: "ImageCache") -> bool:
        return (self.images, self.room, self.retention_days) == (
            other.images,
            other.room,
            other.retention_days,
        )


class ImageCacheStore(Protocol):
    """Remembers image caches, in the same place as jobs.

    1. a name is taken once in a project and location: AlreadyExists.
    2. what is written is there after the next start; NotFound where the cache was deleted meanwhile.
    """

    async def insert_cache(self, cache: ImageCache) -> None: ...

    async def cache(self, project: str, location: str, cache: str) -> ImageCache: ...

    async def caches(self) -> tuple[ImageCache, ...]:
        """All there are, oldest first."""
        ...

    async def write_cache(self, cache: ImageCache) -> None: ...

    async def delete_cache(self, cache: ImageCache) -> None: ...


def best(caches: Iterable[ImageCache], project: str, images: Iterable[str]) -> ImageCache | None:
    """The ready cache of the project that has the most of these images; None where none has any.

    Of equal ones, that with the fewest other images, then the newest.
    """
    wanted = _names(images)
    ranked: list[tuple[int, int, datetime, ImageCache]] = []
    for cache in caches:
        if cache.project == project and cache.state is CacheState.READY:
            has = _names(cache.images)
            if shared := len(wanted & has):
                ranked.append((shared, -len(has - wanted), cache.created_at, cache))
    return max(ranked, key=lambda row: row[:3], default=(0, 0, None, None))[3]


def _names(images: Iterable[str]) -> frozenset[str]:
    return frozenset(canonical(image) for image in images if refusal(image) is None)


def held(caches: Iterable[ImageCache]) -> frozenset[str]:
    """The canonical names of all images that caches keep."""
    return frozenset(name for cache in caches for name in _names(cache.images))


def holding(caches: Iterable[ImageCache], images: Iterable[str]) -> ImageCache | None:
    """A cache that keeps any of the images."""
    names = _names(images)
    return next((cache for cache in caches if names & _names(cache.images)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PulledImage:
    """An image that this server pulled or built."""

    id: str
    names: tuple[str, ...]  # canonical
    size: int
    used_at: datetime  # when a job last started with it, or when it was pulled


def to_collect(
    images: Iterable[PulledImage],
    wanted: frozenset[str],
    now: datetime,
    retention: timedelta | None,
    lacking: int,
) -> tuple[PulledImage, ...]:
    """The images to remove: those unused for the retention, then the least recently used.

    `wanted` are the names that jobs and caches need; `lacking` is how many bytes have to be freed.
    """
    going: list[PulledImage] = []
    for image in sorted(images, key=lambda image: (image.used_at, image.id)):
        if wanted & set(image.names):
            continue
        is_old = retention is not None and now - image.used_at >= retention
        if is_old or lacking > 0:
            going.append(image)
            lacking -= image.size
    return tuple(going)
