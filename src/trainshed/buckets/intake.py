"""ObjectIntake: writes received bytes to a held file and sums them, in threads, a few MiB at a time.

While one batch is written and summed the next is received; never more than these two are in memory. Nobody
else sees the file before `sync` has returned and the index refers to it.
"""

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Executor
from typing import Any

from trainshed.buckets.sums import Sums
from trainshed.buckets.trouble import translated
from trainshed.disk.early_write import begin_writing

BATCH = 4 << 20
MARK = 64 << 20  # bytes after which an upload in pieces is made safe, also within one piece

_AT_ONCE = 1000  # chunks; the system takes 1024
_NOT_KEPT = "The object cannot be kept"


class ObjectIntake:
    """One file being written. Its own lock, because a cancelled caller does not stop a thread."""

    def __init__(self, path: str, sums: Sums, executor: Executor) -> None:
        self._path = path
        self.sums = sums
        self._executor = executor
        self._lock = threading.Lock()
        self._file = -1
        self._is_closed = False

    async def take(
        self, chunks: AsyncIterator[bytes], mark: Callable[[int], Awaitable[None]] | None = None
    ) -> None:
        """All chunks, on the disk. Where they break off, those that came are on the disk too."""
        loop = asyncio.get_running_loop()
        running: asyncio.Future[Any] | None = None
        marking: asyncio.Task[None] | None = None
        some: list[bytes] = []
        size, marked = 0, self.sums.size
        try:
            async for chunk in chunks:
                some.append(chunk)
                size += len(chunk)
                if size < BATCH:
                    continue
                if running is not None:
                    await running
                is_free = marking is None or marking.done()
                if mark is not None and is_free and self.sums.size - marked >= MARK:
                    if marking is not None:
                        await marking  # raises what went wrong
                    # Beside the writing of what comes next: nobody waits for the disk meanwhile.
                    marked = self.sums.size
                    marking = loop.create_task(self._mark(mark, marked))
                running = loop.run_in_executor(self._executor, self._write, some)
                if self.sums.makes_md5:
                    summing = loop.run_in_executor(self._executor, self.sums.feed_md5, some)
                    running = asyncio.gather(running, summing)
                some, size = [], 0
        finally:
            # Also if the stream breaks: an upload in pieces keeps what it received.
            try:
                if running is not None:
                    await asyncio.shield(running)
                await asyncio.shield(loop.run_in_executor(self._executor, self._end, some))
            finally:
                if marking is not None:
                    await asyncio.shield(marking)

    async def _mark(self, mark: Callable[[int], Awaitable[None]], size: int) -> None:
        """Tell `mark` that the first bytes are safe, once they are."""
        await asyncio.get_running_loop().run_in_executor(self._executor, self._sync)
        await mark(size)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            if self._file >= 0:
                os.close(self._file)
                self._file = -1

    def _end(self, some: list[bytes]) -> None:
        self._write(some, is_last=True)
        self.sums.feed_md5(some)
        self._sync()
        self.close()

    def _write(self, some: list[bytes], is_last: bool = False) -> None:
        with self._lock, translated(_NOT_KEPT):
            if self._is_closed:
                return
            if self._file < 0:
                # Its owner may write: later pieces come, and the overlay of a view asks for that.
                self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
                # What lies behind the known end was never acknowledged.
                os.ftruncate(self._file, self.sums.size)
                os.lseek(self._file, self.sums.size, os.SEEK_SET)
            at = self.sums.size
            for first in range(0, len(some), _AT_ONCE):
                at += _write_all(self._file, some[first : first + _AT_ONCE])
            if not is_last:
                # Start writing to the disk now, not only at the final sync. Where it fails, that does it all.
                begin_writing(self._file, self.sums.size, at - self.sums.size)
        self.sums.feed(some)

    def _sync(self) -> None:
        with translated(_NOT_KEPT):
            with self._lock:
                if self._file < 0:
                    return
                file = os.dup(self._file)  # without the lock: the next bytes are written meanwhile
            try:
                os.fsync(file)
            finally:
                os.close(file)


def _write_all(file: int, chunks: list[bytes]) -> int:
    """In one call where the system takes them all: every call is a wait for the interpreter."""
    size = sum(map(len, chunks))
    written = os.writev(file, chunks)
    if written < size:
        left = memoryview(b"".join(chunks))[written:]
        while left:
            left = left[os.write(file, left) :]
    return size


def summed(path: str, size: int, *, with_md5: bool) -> Sums:
    """The sums of a file's first bytes: of an upload begun by an earlier process."""
    sums = Sums(with_md5=with_md5)
    with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
        while sums.size < size and (chunk := file.read(min(BATCH, size - sums.size))):
            sums.feed((chunk,))
            sums.feed_md5((chunk,))
    return sums
