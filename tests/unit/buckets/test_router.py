"""Buckets on the disk and elsewhere under one roof, told apart by their names."""

import pytest

from tests.contracts.bucket import Steps, content, info, put
from trainshed.buckets.router import RoutedBuckets
from trainshed.core.bucket import ObjectDraft
from trainshed.core.errors import AlreadyExists
from trainshed.service.storage import CopySource, StorageService
from trainshed.testing.bucket import MemoryBuckets


@pytest.fixture
async def routed() -> RoutedBuckets:
    near, far = MemoryBuckets(Steps()), MemoryBuckets(Steps())
    for name in ("near", "both"):
        await near.create(info(name))
    for name in ("far", "both"):
        await far.create(info(name))
    return RoutedBuckets(near, far, frozenset(far.infos))


async def test_all_are_told_once_and_a_name_of_the_settings_wins(routed: RoutedBuckets) -> None:
    assert [one.name for one in await routed.all()] == ["both", "far", "near"]
    with pytest.raises(AlreadyExists, match="kept elsewhere"):
        await routed.create(info("far"))
    await routed.create(info("new"))
    assert (await routed.get("new")).name == "new"


async def test_a_copy_between_the_two_carries_bytes_and_sums(routed: RoutedBuckets) -> None:
    await put(routed.open("near"), "x", b"123456789")
    assert not routed.together("near", "far")
    assert routed.together("far", "both")
    storage = StorageService(routed, Steps())
    made = await storage.copy(
        "far", ObjectDraft(name="y"), CopySource(bucket="near", name="x"), lambda old: old
    )
    assert (made.bucket, made.size) == ("far", 9)
    assert await content(routed.open("far"), "y") == b"123456789"
