"""A home with a bucket of many objects, as a server would have left it: much quicker than to upload them."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from trainshed.buckets.store import DiskBuckets
from trainshed.core.bucket import BucketInfo, ObjectDraft
from trainshed.testing.backend import RealClock


def keep_objects(home: Path, bucket: str, names: Iterable[str], project: str = "p1") -> None:
    """Objects of one byte. For a home on which no server runs."""
    home.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(1) as thread:  # a test of a page has a loop of its own in this one
        thread.submit(lambda: asyncio.run(_keep(home, bucket, names, project))).result()


async def _keep(home: Path, bucket: str, names: Iterable[str], project: str) -> None:
    now = datetime.now(UTC)
    buckets = DiskBuckets(home / "buckets", RealClock())
    await buckets.start()
    await buckets.create(
        BucketInfo(name=bucket, project=project, location="US", created_at=now, updated_at=now)
    )
    objects = buckets.open(bucket)
    await asyncio.gather(*(objects.put(ObjectDraft(name=name), _byte()) for name in names))
    await buckets.close()


async def _byte() -> AsyncIterator[bytes]:
    yield b"x"
