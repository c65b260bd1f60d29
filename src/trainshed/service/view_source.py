"""Views of buckets that are not on this server's disk: fetches what a job names below /gcs or /s3.

Implements `core.view.ViewSource` over the one of the disk (`backing.py` puts them together). Only paths that
the job names are fetched. Where they are too many objects, or more than the disk has room for, nothing is
fetched and the view says so. A job that names no such bucket costs nothing here.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

from trainshed.core.bucket import ObjectInfo, ObjectQuery
from trainshed.core.bucket_port import Bucket, Buckets
from trainshed.core.errors import Invalid, NotFound, TrainshedError, Unavailable
from trainshed.core.view import MOST, LaidOutView, View, ViewSource

AT_ONCE = 8  # objects fetched at the same time
RESERVE = 1 << 30  # bytes of the disk that stay free
LONGEST_PART = 255


class FetchingViewSource:
    def __init__(self, disk: ViewSource, buckets: Buckets, most: int = MOST) -> None:
        self._disk, self._buckets, self._most = disk, buckets, most

    async def lay_out(self, view: View, folder: str, *, copies: bool, others: bool = True) -> LaidOutView:
        laid = await self._disk.lay_out(view, folder, copies=copies, others=others)
        for name in laid.missing:
            if name in view.by_path and await self._is_here(name, view.project):
                laid = await self._fetch(laid, self._buckets.open(name), view.named[name], Path(folder))
        return laid

    async def _is_here(self, bucket: str, project: str) -> bool:
        try:
            return (await self._buckets.get(bucket)).is_open_to(project)
        except (NotFound, Invalid):
            return False

    async def _fetch(
        self, laid: LaidOutView, bucket: Bucket, paths: Sequence[str], folder: Path
    ) -> LaidOutView:
        objects = [item async for item in self._listed(bucket, paths)]
        wanted = [item for item in objects if _is_path(item.name)]
        free = (await asyncio.to_thread(shutil.disk_usage, folder)).free
        small = len(objects) <= self._most and sum(item.size for item in wanted) + RESERVE <= free
        await asyncio.to_thread(Path(folder, bucket.name).mkdir, exist_ok=True)
        left_out = len(objects) - len(wanted)
        if small:
            left_out += await self._save_all(bucket, wanted, folder / bucket.name)
        return replace(
            laid,
            buckets=(*laid.buckets, bucket.name),
            missing=tuple(name for name in laid.missing if name != bucket.name),
            unfetched=laid.unfetched if small else (*laid.unfetched, bucket.name),
            unpathable=laid.unpathable + left_out,
        )

    async def _listed(self, bucket: Bucket, paths: Sequence[str]) -> AsyncIterator[ObjectInfo]:
        """The objects at or below these paths, each once; it stops soon after `most`."""
        tops = [""] if "" in paths else [p for p in paths if not any(p.startswith(f"{q}/") for q in paths)]
        count = 0
        for top in tops:
            query: ObjectQuery | None = ObjectQuery(prefix=top)
            while query is not None and count <= self._most:
                page = await bucket.find(query)
                for item in page.items:
                    if not top or item.name == top or item.name.startswith(f"{top}/"):
                        count += 1
                        yield item
                query = replace(query, after=page.next_after) if page.next_after else None

    async def _save_all(self, bucket: Bucket, objects: Sequence[ObjectInfo], folder: Path) -> int:
        """Save the objects. Returns how many cannot be files because another object is in their place."""
        waiting, left_out, trouble = list(reversed(objects)), 0, list[TrainshedError]()

        async def work() -> None:
            nonlocal left_out
            while waiting and not trouble:
                info = waiting.pop()
                try:
                    await _save(bucket, info.name, folder / info.name)
                except (FileExistsError, NotADirectoryError, IsADirectoryError):
                    left_out += 1
                except NotFound:
                    continue  # deleted meanwhile
                except TrainshedError as error:
                    trouble.append(error)
                except OSError as error:
                    trouble.append(Unavailable(f"{bucket.name}/{info.name} cannot be laid out: {error}."))

        async with asyncio.TaskGroup() as group:
            for _ in range(min(AT_ONCE, len(objects))):
                group.create_task(work())
        if trouble:
            raise trouble[0]
        return left_out


async def _save(bucket: Bucket, name: str, path: Path) -> None:
    if name.endswith("/"):
        await asyncio.to_thread(path.mkdir, parents=True, exist_ok=True)
        return
    await asyncio.to_thread(path.parent.mkdir, parents=True, exist_ok=True)
    reading = await bucket.read(name)
    file = await asyncio.to_thread(path.open, "xb")
    try:
        async for chunk in reading.chunks:
            await asyncio.to_thread(file.write, chunk)
    finally:
        await asyncio.to_thread(file.close)


def _is_path(name: str) -> bool:
    parts = name.removesuffix("/").split("/")
    return "\0" not in name and all(
        part not in ("", ".", "..") and len(part.encode()) <= LONGEST_PART for part in parts
    )
