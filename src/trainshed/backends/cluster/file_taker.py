"""FileTaker: writes what comes from a pod into drafts, and puts each file in its place once it is whole.

`file_exchange.py` calls it in a thread, with a few pieces at a time. A file that was changed while it was
read is left out, but for one that only grew: what was there of it is as good as any moment of it.
"""

import os
from collections.abc import Callable, Iterable

from trainshed.backends.cluster.pod_files import Fetched, PodEntry, Refused
from trainshed.disk.regular_file import open_regular


class FileTaker:
    def __init__(self, drafts: str, put: Callable[[str, PodEntry], None]) -> None:
        """`put` gets the path of a draft that is whole."""
        self._drafts, self._put = drafts, put
        self._count = 0
        self._begun: PodEntry | None = None
        self._file = -1
        self._size = 0
        self.taken: list[PodEntry] = []  # as each was when it was taken
        self.is_torn = False  # one changed while it was read
        self.refused: list[Refused] = []

    def take(self, items: Iterable[Fetched]) -> None:
        for item in items:
            if isinstance(item, bytes):
                self._write(item)
            elif isinstance(item, Refused):
                self.refused.append(item)
            elif self._begun is None:
                self._begin(item)
            else:
                self._end(self._begun, item)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _begin(self, entry: PodEntry) -> None:
        self._count += 1
        self._begun, self._size = entry, 0
        self._file = open_regular(self._draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)

    @property
    def _draft(self) -> str:
        return f"{self._drafts}/{self._count}"

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        self._size += len(view)
        while view:
            view = view[os.write(self._file, view) :]

    def _end(self, before: PodEntry, after: PodEntry) -> None:
        self.close()
        self._begun = None
        inode, *_ = before.stamp
        has_grown = after.stamp[0] == inode and after.size > before.size == self._size
        if has_grown or (before.is_same(after) and self._size == before.size):
            self._put(self._draft, before)
            self.taken.append(before)
        else:
            self.is_torn = True
            os.unlink(self._draft)  # noqa: PTH108
