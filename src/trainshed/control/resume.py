"""Finds what a job has committed, and of that the checkpoint it resumes from: the newest that is unchanged.

`outputs.py` calls it, and `api/results.py` by way of the assembly. It asks the bucket and remembers nothing.
What has no manifest does not count, and a bucket of another project is as one that is not there.
"""

import asyncio
from contextlib import suppress

from trainshed.core.bucket import ObjectInfo, ObjectQuery
from trainshed.core.bucket_port import Bucket, Buckets
from trainshed.core.errors import NotFound, TrainshedError
from trainshed.core.outputs import (
    MANIFEST,
    NEWEST,
    CommittedOutputs,
    CommittedUnit,
    checkpoints_of,
    model_folder,
    named_in,
)
from trainshed.core.view import SCHEME

MOST_MANIFEST = 64 << 20  # bytes: a million files


async def committed_outputs(buckets: Buckets, project: str, output: str) -> CommittedOutputs:
    """What is complete at the output of a project's job, by its manifests.

    TrainshedError where the project has no such bucket.
    """
    checkpoints, model = checkpoints_of(output), model_folder(output)
    if checkpoints is None or model is None:
        return CommittedOutputs()
    bucket = await _opened(buckets, project, checkpoints[0])
    manifests = await _manifests(bucket, checkpoints[1])
    manifest = await _get(bucket, model[1] + MANIFEST)
    return CommittedOutputs(
        model=_unit(manifest) if manifest else None, checkpoints=tuple(_unit(item) for item in manifests)
    )


def _unit(manifest: ObjectInfo) -> CommittedUnit:
    folder = manifest.name.removesuffix(MANIFEST)
    return CommittedUnit(uri=f"{SCHEME}{manifest.bucket}/{folder}", stored_at=manifest.updated_at)


async def newest_checkpoint(buckets: Buckets, project: str, output: str) -> str:
    """The address of the checkpoint, with a slash at its end; "" if there is none."""
    place = checkpoints_of(output)
    if place is None:
        return ""
    try:
        bucket = await _opened(buckets, project, place[0])
        for manifest in await _manifests(bucket, place[1]):
            folder = manifest.name.removesuffix(MANIFEST)
            if await _is_whole(bucket, manifest, folder):
                return f"{SCHEME}{place[0]}/{folder}"
    except TrainshedError:
        pass  # the bucket cannot be asked now: the job starts over, as without a checkpoint
    return ""


async def _opened(buckets: Buckets, project: str, name: str) -> Bucket:
    """The bucket, if the project may use it. The refusal does not say whether others have it."""
    with suppress(NotFound):
        if (await buckets.get(name)).is_open_to(project):
            return buckets.open(name)
    raise NotFound(f"Project '{project}' has no bucket {name[:80]}.")


async def _manifests(bucket: Bucket, prefix: str) -> list[ObjectInfo]:
    """The newest first."""
    folders, after = [prefix], ""
    while True:
        listing = await bucket.find(ObjectQuery(prefix=prefix, delimiter="/", after=after))
        folders += listing.prefixes
        if not (after := listing.next_after):
            break
    infos = await asyncio.gather(*(_get(bucket, folder + MANIFEST) for folder in folders))
    manifests = [item for item in infos if item is not None]
    return sorted(manifests, key=_age, reverse=True)


def _age(manifest: ObjectInfo) -> int:
    """The age of its files: a manifest may be rewritten long after them."""
    newest = manifest.attributes.metadata.get(NEWEST, "")
    return int(newest) if newest.isdecimal() else manifest.generation


async def _get(bucket: Bucket, name: str) -> ObjectInfo | None:
    try:
        return await bucket.get(name)
    except TrainshedError:
        return None


async def _is_whole(bucket: Bucket, manifest: ObjectInfo, folder: str) -> bool:
    """Whether all files that the manifest names are there, unchanged."""
    if manifest.size > MOST_MANIFEST:
        return False
    reading = await bucket.read(manifest.name)
    try:
        named = named_in(b"".join([chunk async for chunk in reading.chunks]))
    except ValueError:
        return False
    after = ""
    while True:
        listing = await bucket.find(ObjectQuery(prefix=folder, after=after))
        for item in listing.items:
            if named.get(item.name[len(folder) :]) == (item.size, item.crc32c):
                del named[item.name[len(folder) :]]
        if not (after := listing.next_after):
            return not named
