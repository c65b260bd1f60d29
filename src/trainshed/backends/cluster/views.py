"""Views of buckets for pods: folders of the server, which pods are brought and from which they are stored.

The backend calls it before a run starts. A view is laid out as for programs of this machine, and changed only
by what is fetched from pods (file_exchange.py). Its files are the buckets' own, by a second name: nothing
here writes into one, it is replaced. All that a job names is brought, and of the rest only a little.
"""

import asyncio
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from trainshed.backends.machine.mounts import NO_BUCKETS, Mounts
from trainshed.core.view import LaidOutView, View, ViewSource

MOST_UNNAMED = 256 << 20  # bytes of what a job does not name that its pods are brought


class PodViews(Mounts):
    def __init__(
        self, jobs: Path, trash: Path, hint: Callable[[str], None], source: ViewSource | None = None
    ) -> None:
        super().__init__(jobs, trash, hint, None if source is None else BoundedSource(source))

    async def show(self, job: str, view: View, *, is_shared: bool) -> tuple[str, str]:
        """The folder for /gcs of a run that is about to start, and a note; empty where nobody has buckets."""
        if self._source is None:
            return "", "" if view.lazy else NO_BUCKETS
        if view.lazy:  # nothing reports what a pod opens; what it names, it names by other means
            view = replace(view, lazy=False, named={})
        folder, note = await self.folder(job, view, self._source, shared=is_shared, copies=False, plain=True)
        return str(folder / "plain"), note


@dataclass(frozen=True, slots=True)
class BoundedSource:
    """A ViewSource that lays out little of what a job does not name."""

    source: ViewSource
    most: int = MOST_UNNAMED

    async def lay_out(self, view: View, folder: str, *, copies: bool, others: bool = True) -> LaidOutView:
        laid = await self.source.lay_out(view, folder, copies=copies, others=True)
        cut = await asyncio.to_thread(self._cut, view, folder, laid.buckets)
        partial = tuple(dict.fromkeys((*laid.partial, *cut)))
        return replace(laid, partial=partial)

    def _cut(self, view: View, folder: str, buckets: tuple[str, ...]) -> list[str]:
        """Take away what is too much; the buckets of which something is missing now."""
        unnamed = {bucket: list(_unnamed(view, folder, bucket)) for bucket in buckets}
        sizes = {bucket: sum(size for _, size in files) for bucket, files in unnamed.items()}
        room, cut = self.most, list[str]()
        for bucket in sorted(buckets, key=lambda name: sizes[name]):
            room -= sizes[bucket]
            if room < 0 and unnamed[bucket]:
                cut.append(bucket)
                for path, _ in unnamed[bucket]:
                    os.unlink(path)  # noqa: PTH108
        return cut


def _unnamed(view: View, folder: str, bucket: str) -> Iterator[tuple[str, int]]:
    named = view.named.get(bucket, ())
    if "" in named:
        return
    top = f"{folder}/{bucket}"
    for place, _, names in os.walk(top):
        for name in names:
            path = f"{place}/{name}"
            inner = path[len(top) + 1 :]
            if not any(inner == item or inner.startswith(f"{item}/") for item in named):
                yield path, os.lstat(path).st_size
