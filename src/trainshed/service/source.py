"""Python packages from buckets: keeps the promises of `PackageSource` over any `Buckets`.

`runtimes/packages.py` calls it. The scheme of an address selects the buckets; the job's project decides
whether it may read them. It follows no redirect and opens no connection itself.
"""

import asyncio
import errno
import hashlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from trainshed.core.bucket import DiskFull, ObjectInfo
from trainshed.core.bucket_port import Bucket, Buckets
from trainshed.core.errors import Exhausted, Forbidden, Invalid, Unavailable, Violation
from trainshed.core.supplies.package import split
from trainshed.core.supplies.source_port import Fetched, SourceFacts

_TOGETHER = 1 << 20  # bytes hashed and written at once, in a thread


@dataclass(frozen=True, slots=True)
class BucketSource:
    buckets: Mapping[str, Buckets]  # by scheme

    async def look(self, uri: str, project: str) -> SourceFacts:
        bucket, name = await self._open(uri, project)
        return _facts(await bucket.get(name))

    async def fetch(self, uri: str, project: str, into: str, most: int) -> Fetched:
        file = Path(into)
        bucket, name = await self._open(uri, project)
        reading = await bucket.read(name)
        facts = _facts(reading.info)
        if facts.size > most:
            raise Exhausted(f"{uri} has {facts.size} bytes; at most {most} are fetched.")
        try:
            size, sha256 = await _written(reading.chunks, file, most)
        except BaseException as error:
            await asyncio.to_thread(file.unlink, missing_ok=True)
            if isinstance(error, OSError):
                full = error.errno in (errno.ENOSPC, errno.EDQUOT)
                raise (DiskFull if full else Unavailable)(f"It could not be kept: {error}.") from error
            raise
        return Fetched(size=size, sha256=sha256, mark=facts.mark)

    async def _open(self, uri: str, project: str) -> tuple[Bucket, str]:
        scheme, bucket, name = split(uri)
        buckets = self.buckets.get(scheme)
        if buckets is None:
            sentence = f"This server reads no {scheme}:// buckets: copy {uri} into one of its gs:// buckets."
            raise Invalid((Violation("packageUris", sentence),))
        if not (await buckets.get(bucket)).is_open_to(project):
            raise Forbidden(f"The bucket {bucket} belongs to another project than {project}.")
        return buckets.open(bucket), name


def _facts(info: ObjectInfo) -> SourceFacts:
    return SourceFacts(size=info.size, mark=str(info.generation))


async def _written(chunks: AsyncIterator[bytes], into: Path, most: int) -> tuple[int, str]:
    digest, size, buffer = hashlib.sha256(), 0, bytearray()
    with into.open("wb", buffering=0) as file:

        def take(piece: bytes) -> None:
            digest.update(piece)
            file.write(piece)

        async for chunk in chunks:
            size += len(chunk)
            if size > most:
                raise Exhausted(f"More than {most} bytes came.")
            buffer += chunk
            if len(buffer) >= _TOGETHER:
                await asyncio.to_thread(take, bytes(buffer))
                buffer.clear()
        take(bytes(buffer))
    return size, digest.hexdigest()
