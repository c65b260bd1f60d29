"""Applies the lifecycle rules of a bucket: which objects are to be deleted now. Pure.

`control/lifecycle.py` calls it for every object and its versions. A rule only deletes, as a person would: in
a bucket with versioning a live object becomes an old version, and an old version is removed for good.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from trainshed.core.bucket import BucketInfo, ObjectInfo
from trainshed.core.bucket_rule import LifecycleRule


def applies(rule: LifecycleRule, info: ObjectInfo, newer: int, now: datetime) -> bool:
    """Whether every condition of the rule holds; `newer`: how many versions of the object came later."""
    noncurrent_at = info.noncurrent_at
    conditions = (
        rule.age is None or info.created_at + timedelta(days=rule.age) <= now,
        not rule.created_before or f"{info.created_at:%Y-%m-%d}" < rule.created_before,
        rule.is_live is None or rule.is_live == (noncurrent_at is None),
        rule.newer_versions is None or newer >= rule.newer_versions,
        rule.noncurrent_days is None
        or (noncurrent_at is not None and noncurrent_at + timedelta(days=rule.noncurrent_days) <= now),
        not rule.noncurrent_before
        or (noncurrent_at is not None and f"{noncurrent_at:%Y-%m-%d}" < rule.noncurrent_before),
        not rule.prefixes or info.name.startswith(rule.prefixes),
        not rule.suffixes or info.name.endswith(rule.suffixes),
    )
    return all(conditions)


def expired(bucket: BucketInfo, versions: Sequence[ObjectInfo], now: datetime) -> list[ObjectInfo]:
    """Which versions of one object are to be deleted; `versions` has them all, the oldest first."""
    last = len(versions) - 1
    return [
        info
        for number, info in enumerate(versions)
        if any(applies(rule, info, last - number, now) for rule in bucket.lifecycle)
    ]
