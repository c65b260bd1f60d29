"""What every store promises of image caches (`core.supplies.image_cache.ImageCacheStore`): inherit it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.contracts.store_values import T0
from trainshed.core.errors import AlreadyExists, NotFound
from trainshed.core.supplies.image_cache import CacheState, ImageCache, ImageCacheStore


def a_cache(name: str = "digits", **changes: object) -> ImageCache:
    asked = ImageCache(
        id=name,
        project="p",
        location="us-central1",
        images=("127.0.0.1:5000/größe:1", "b:2"),
        created_at=T0,
        room=20,
        retention_days=7,
    )
    return replace(asked, **changes)


class ImageCacheStoreContract:
    async def test_what_is_kept_is_found_as_it_was(self, store: ImageCacheStore) -> None:
        cache = a_cache(state=CacheState.READY, percent=100, size=5 << 30, reason="x", updated_at=T0)
        await store.insert_cache(cache)
        assert await store.cache("p", "us-central1", "digits") == cache
        assert await store.caches() == (cache,)

    async def test_a_name_is_taken_once_in_a_project_and_location(self, store: ImageCacheStore) -> None:
        await store.insert_cache(a_cache())
        with pytest.raises(AlreadyExists, match="imageCaches/digits"):
            await store.insert_cache(a_cache(images=("other:1",)))
        await store.insert_cache(a_cache(location="europe-west4"))
        await store.insert_cache(a_cache(project="q"))
        assert len(await store.caches()) == 3
        assert (await store.cache("p", "us-central1", "digits")).images == a_cache().images

    async def test_a_write_changes_the_one_that_is_meant(self, store: ImageCacheStore) -> None:
        await store.insert_cache(a_cache())
        await store.insert_cache(a_cache("other"))
        done = a_cache(state=CacheState.FAILED, reason="no such image", created_at=T0 + timedelta(hours=1))
        await store.write_cache(done)
        assert await store.cache("p", "us-central1", "digits") == done
        assert await store.cache("p", "us-central1", "other") == a_cache("other")

    async def test_they_come_oldest_first(self, store: ImageCacheStore) -> None:
        for number in (2, 0, 1):
            await store.insert_cache(a_cache(f"c{number}", created_at=T0 + timedelta(minutes=number)))
        assert [cache.id for cache in await store.caches()] == ["c0", "c1", "c2"]

    async def test_what_is_not_there_is_neither_found_written_nor_deleted(
        self, store: ImageCacheStore
    ) -> None:
        await store.insert_cache(a_cache())
        await store.delete_cache(a_cache())
        assert await store.caches() == ()
        with pytest.raises(NotFound):
            await store.cache("p", "us-central1", "digits")
        with pytest.raises(NotFound):
            await store.write_cache(a_cache())
        with pytest.raises(NotFound):
            await store.delete_cache(a_cache())
