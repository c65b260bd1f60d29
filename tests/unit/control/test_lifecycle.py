"""Rules of buckets: which versions they delete, and that nothing else goes."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from trainshed.control.lifecycle import EVERY, LifecycleSweeper
from trainshed.core.bucket import BucketInfo, ObjectDraft, ObjectQuery
from trainshed.core.bucket_rule import LifecycleRule
from trainshed.testing.bucket import MemoryBucket, MemoryBuckets

AT = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Days:
    """A clock that moves by days."""

    def __init__(self) -> None:
        self.at = AT

    def now(self) -> datetime:
        return self.at

    def wait(self, days: int) -> None:
        self.at += timedelta(days=days)


@pytest.fixture
def clock() -> Days:
    return Days()


async def chunks() -> AsyncIterator[bytes]:
    yield b"x"


async def made(
    clock: Days, *rules: LifecycleRule, versioning: bool = True
) -> tuple[MemoryBuckets, MemoryBucket]:
    buckets = MemoryBuckets(clock)
    info = BucketInfo(name="shed", project="p1", location="US", created_at=AT, updated_at=AT)
    await buckets.create(replace(info, versioning=versioning, lifecycle=rules))
    return buckets, buckets.open("shed")


async def put(bucket: MemoryBucket, *names: str) -> None:
    for name in names:
        await bucket.put(ObjectDraft(name=name), chunks())


async def left(bucket: MemoryBucket) -> list[tuple[str, bool]]:
    listing = await bucket.find(ObjectQuery(versions=True))
    return [(one.name, one.noncurrent_at is None) for one in listing.items]


async def test_an_object_that_is_old_enough_goes_and_a_younger_one_stays(clock: Days) -> None:
    buckets, bucket = await made(clock, LifecycleRule(age=30), versioning=False)
    await put(bucket, "old")
    clock.wait(29)
    await put(bucket, "new")
    sweeper = LifecycleSweeper(buckets, clock)
    assert await sweeper.look() == clock.now() + EVERY
    assert await left(bucket) == [("new", True), ("old", True)]
    clock.wait(1)
    await sweeper.look()
    assert await left(bucket) == [("new", True)]


async def test_where_versions_are_kept_a_rule_makes_a_live_object_an_old_version(clock: Days) -> None:
    buckets, bucket = await made(clock, LifecycleRule(age=1, is_live=True))
    await put(bucket, "x")
    clock.wait(1)
    for _ in range(2):
        await LifecycleSweeper(buckets, clock).look()
        assert await left(bucket) == [("x", False)]


async def test_old_versions_go_some_days_after_they_were_replaced(clock: Days) -> None:
    buckets, bucket = await made(clock, LifecycleRule(noncurrent_days=7))
    await put(bucket, "x")
    clock.wait(100)
    await put(bucket, "x")
    clock.wait(6)
    await LifecycleSweeper(buckets, clock).look()
    assert await left(bucket) == [("x", False), ("x", True)]
    clock.wait(1)
    await LifecycleSweeper(buckets, clock).look()
    assert await left(bucket) == [("x", True)]


async def test_only_so_many_versions_are_kept(clock: Days) -> None:
    buckets, bucket = await made(clock, LifecycleRule(newer_versions=2, is_live=False))
    await put(bucket, "a", "x", "x", "x", "x", "y")
    await LifecycleSweeper(buckets, clock).look()
    assert await left(bucket) == [
        ("a", True),
        ("x", False),
        ("x", True),
        ("y", True),
    ]


@pytest.mark.parametrize(
    ("rule", "gone"),
    [
        (LifecycleRule(prefixes=("tmp/",), suffixes=(".log", ".txt")), {"tmp/a.log"}),
        (LifecycleRule(created_before="2026-01-02", prefixes=("tmp/",)), {"tmp/a.log", "tmp/b"}),
        (LifecycleRule(created_before="2026-01-01"), set[str]()),
        (LifecycleRule(noncurrent_before="2030-01-01"), set[str]()),
        (LifecycleRule(noncurrent_days=0), set[str]()),
    ],
)
async def test_every_condition_of_a_rule_must_hold(clock: Days, rule: LifecycleRule, gone: set[str]) -> None:
    buckets, bucket = await made(clock, rule, versioning=False)
    names = {"tmp/a.log", "tmp/b", "keep.log"}
    await put(bucket, *names)
    clock.wait(5)
    await LifecycleSweeper(buckets, clock).look()
    assert {name for name, _ in await left(bucket)} == names - gone


async def test_a_bucket_without_rules_is_left_alone(clock: Days) -> None:
    buckets, bucket = await made(clock)
    await put(bucket, "x", "x")
    clock.wait(1000)
    await LifecycleSweeper(buckets, clock).look()
    assert len(await left(bucket)) == 2
