"""What every bucket on the disk shares: the folders, the index's readers, the index writer, and the threads.

A row and its file do not change in one step. So `opened` asks the index again after it has opened a file, and
starts over if another object has taken the place meanwhile.
"""

import asyncio
import base64
import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import ParamSpec, TypeVar

from trainshed.buckets import index, versions
from trainshed.buckets.index import StoredObject
from trainshed.buckets.index_writer import Effect, IndexWriter
from trainshed.buckets.sums import BLOCK, new_md5
from trainshed.buckets.trouble import translated
from trainshed.core.bucket import ALWAYS, DamagedObject, Precondition
from trainshed.core.errors import NotFound, TrainshedError
from trainshed.core.ports import Clock
from trainshed.disk.regular_file import open_regular

THREADS = 16  # most of the time they wait for the disk
UPLOADS_KEPT = timedelta(days=7)

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Disk:
    def __init__(self, root: Path, clock: Clock) -> None:
        self.root = root
        self.clock = clock
        self._own = root / ".trainshed"  # no bucket can be called so
        self._held = self._own / "held"
        self._index = self._own / "index.db"
        self.writer = IndexWriter(self._index, self._held, root)
        self.late = LaterMd5(self)
        self.executor = ThreadPoolExecutor(THREADS, "buckets")
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []

    async def start(self) -> None:
        def open_all() -> None:
            with translated(f"The buckets in {self.root} cannot be opened"):
                for folder in (self.root, self._own, self._held):
                    folder.mkdir(0o700, parents=True, exist_ok=True)
                self.writer.mend(self.clock.now() - UPLOADS_KEPT)
                self.writer.start()

        await self.run(open_all)
        for kept in await self.look(index.without_md5):
            self.late.add(kept)

    async def close(self) -> None:
        await self.late.close()
        await asyncio.to_thread(self.writer.close)
        await asyncio.to_thread(self.executor.shutdown, cancel_futures=True)
        while self._connections:
            self._connections.pop().close()

    async def run(self, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.executor, lambda: work(*args, **kwargs))

    async def look(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Ask the index something, in a thread."""

        def asked() -> _T:
            with translated("The buckets cannot be read"):
                return work(self._db())

        return await self.run(asked)

    def get(
        self, db: sqlite3.Connection, bucket: str, name: str, generation: int | None = None
    ) -> StoredObject:
        kept = index.get(db, bucket, name)
        if generation is not None and (kept is None or kept.info.generation != generation):
            kept = versions.get(db, bucket, name, generation)
        if kept is None:
            if not index.has_bucket(db, bucket):
                raise no_bucket(bucket)
            raise NotFound(f"No such object: {bucket}/{name}" + (f"#{generation}" if generation else ""))
        return kept

    def opened(
        self,
        bucket: str,
        name: str,
        generation: int | None = None,
        precondition: Precondition = ALWAYS,
    ) -> tuple[StoredObject, int, bytes]:
        """The object, its open file, and the sums of its blocks. For threads."""
        with translated("The object cannot be read"):
            while True:
                kept = self.get(self._db(), bucket, name, generation)
                precondition.check(kept.info)
                file = self._open(kept)
                sums = index.sums(self._db(), kept.file) if kept.info.size > BLOCK else b""
                if self._is_current(kept, generation):
                    if file is None:
                        raise DamagedObject(
                            f"gs://{bucket}/{name} is damaged on the server's disk: its file is gone. "
                            "Upload it again, or delete it."
                        )
                    return kept, file, sums
                if file is not None:
                    os.close(file)

    def _is_current(self, kept: StoredObject, generation: int | None) -> bool:
        try:
            current = self.get(self._db(), kept.info.bucket, kept.info.name, generation)
        except NotFound:
            return False
        return (current.file, current.place) == (kept.file, kept.place)

    def open_file(self, kept: StoredObject) -> int | None:
        return self._open(kept)

    def by_file(self, file: str) -> StoredObject | None:
        return index.by_file(self._db(), file)

    def _open(self, kept: StoredObject) -> int | None:
        # Held first: what is there is surely this object's, while a place may hold the one before it.
        paths = [self.writer.held_path(kept.file)]
        if kept.place is not None:
            paths.append(self.writer.placed(kept.info.bucket, kept.place))
        for path in paths:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                return open_regular(path)
        return None

    def _db(self) -> sqlite3.Connection:
        db: sqlite3.Connection | None = getattr(self._local, "db", None)
        if db is None:
            db = self._local.db = index.connect(self._index)
            self._connections.append(db)
        return db


class LaterMd5:
    """Makes the MD5 of large objects after their upload was answered: one after the other, in a thread."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._waiting: list[StoredObject] = []
        self._task: asyncio.Task[None] | None = None
        self._ending = threading.Event()
        # A thread that gives way to all others: nobody waits for it.
        self._executor = ThreadPoolExecutor(1, "buckets-md5", initializer=_give_way)

    def add(self, kept: StoredObject) -> None:
        self._waiting.append(kept)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        self._ending.set()
        if self._task is not None:
            await self._task
        await asyncio.to_thread(self._executor.shutdown)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting and not self._ending.is_set():
            kept = self._waiting.pop(0)
            with contextlib.suppress(TrainshedError):  # it stays without until the next start
                if md5 := await loop.run_in_executor(self._executor, self._made, kept):
                    await self._keep(kept, md5)

    def _made(self, kept: StoredObject) -> str:
        with translated("The object cannot be read"):
            file = self._disk.open_file(kept)
            if file is None:
                return ""
            sums = new_md5()
            with open(file, "rb", buffering=0) as bytes_of_it:
                while chunk := bytes_of_it.read(BLOCK):
                    sums.update(chunk)
                    if self._ending.is_set():
                        return ""
        return base64.b64encode(sums.digest()).decode()

    async def _keep(self, kept: StoredObject, md5: str) -> None:
        def change(db: sqlite3.Connection) -> tuple[None, tuple[Effect, ...]]:
            # By the file: one that has taken its place meanwhile has another.
            index.set_md5(db, kept.file, md5)
            return None, ()

        await self._disk.writer.write(change)


def _give_way() -> None:
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)


def no_bucket(name: str) -> NotFound:
    return NotFound(f"The specified bucket does not exist: {name[:80]}.")
