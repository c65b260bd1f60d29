"""The log store: replicas write plain files, this side dates them, reads them, and keeps them within bounds.

Everything lives under one folder, HOME/<job>/…; nothing is kept elsewhere, and a restarted server needs
nothing but that folder: `sink` takes up a replica that still runs, finished jobs are opened when asked for.
The server never stands between a program and its file, so no flood, crash or full disk of ours can hold a
program up. Dating, the only thing done for every line, is a look at the file's size and 16 bytes appended.

It never loads a log into memory, never looks at finished jobs by itself, and never trusts a job's name:
one that could lead out of the folder is a job without output.
"""

import asyncio
import contextlib
import functools
import logging
import os
import re
import shutil
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from trainshed.core.errors import Invalid, Unavailable, Violation
from trainshed.core.log_lines import FindQuery, FindStep, LinePage, LineQuery, LineTotal
from trainshed.core.logs import Chunk, Line, LogQuery, OutputQuery
from trainshed.core.names import ReplicaName
from trainshed.core.ports import Sink
from trainshed.logs import merge
from trainshed.logs.chunks import ChunkReader
from trainshed.logs.file import LogFile, ReadableRange
from trainshed.logs.job import JobLog
from trainshed.logs.line_numbers import LineNumbers
from trainshed.logs.quota import Quota
from trainshed.logs.reserve import LEAST, DiskReserve
from trainshed.logs.watch import LogFileWatch

_log = logging.getLogger(__name__)
_SAFE = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,127}")
_SMALL = 16 * 1024  # bytes that are read at once rather than handed to a thread
_BATCH = 1024 * 1024  # characters given out at once, about: memory does not grow with the lines
_ROOM = 64 * 1024  # free bytes: a write of a program's whole buffer fails where there are fewer
COUNTED_AHEAD = 16 * 1024 * 1024  # new bytes of a live job after which its lines are counted
_READERS = 2  # threads of its own: however many read logs, they hold up nobody else's work in threads

GIB = 1024**3

T = TypeVar("T")


class FileLogStore:
    """`on_drop(job, why, bytes)` is called once per job, when the first part of its output had to go."""

    def __init__(
        self,
        home: Path,
        quota: int = GIB,
        wall: Callable[[], int] = time.time_ns,
        on_drop: Callable[[str, str, int], None] | None = None,
    ) -> None:
        self._home = home
        self._quota = Quota(quota, str(home))
        self._reserve = DiskReserve(home)
        self._wall = wall
        self._on_drop = on_drop
        self._live: dict[str, JobLog] = {}
        self._watch: LogFileWatch | None = None
        self._opening = asyncio.Lock()
        self._dropping: dict[str, asyncio.Task[None]] = {}
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="log-reader")
        self._numbers = LineNumbers(self._readers)

    async def start(self) -> None:
        self._home.mkdir(parents=True, exist_ok=True)
        self._watch = LogFileWatch(self._look)
        for log in self._live.values():
            for file in log.files.values():
                self._watch.add(log, file)

    async def close(self) -> None:
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        await self._numbers.close()
        for task in list(self._dropping.values()):
            await task
        for log in self._live.values():
            log.end()
        self._live.clear()

    def sink(self, name: ReplicaName) -> Sink:
        if not _SAFE.fullmatch(name.job):
            raise Invalid((Violation("job", f"{name.job!r} cannot be the name of a folder of logs."),))
        log = self._live.get(name.job)
        if log is None:
            log = self._live[name.job] = JobLog(self._home / name.job)
        try:
            if not log.files:
                log.begin()
                log.stamp(log.files.values(), self._wall())  # what was printed while no server ran
            stdout, stderr = log.open(name)
        except OSError as error:
            raise Unavailable(f"The log files of {name} cannot be made: {error.strerror}.") from error
        if self._watch is not None:
            self._watch.add(log, stdout)
            self._watch.add(log, stderr)
        return Sink(stdout=stdout.path, stderr=stderr.path)

    async def read(self, job: str, query: LogQuery) -> tuple[Line, ...]:
        log = await self._dated(job)
        if log is None:
            return ()
        size = sum(view.end for view in merge.candidates(log.views(), query))
        return await self._read(log, query, size, _BATCH)

    async def follow(self, job: str, query: LogQuery) -> AsyncIterator[tuple[Line, ...]]:
        """Here query.limit is the most lines of one batch. Waits for a job that has printed nothing yet."""
        query = replace(query, newest_first=False)
        seen = 0
        async with contextlib.aclosing(self._changes(job)) as changes:
            async for log in changes:
                dated, is_full = log.dated, True
                while is_full:
                    lines = await self._read(log, query, dated - seen, _BATCH)
                    if lines:
                        query = replace(query, after=(lines[-1].at_ns, lines[-1].insert_id))
                        yield lines
                    is_full = len(lines) == query.limit or merge.size(lines) >= _BATCH
                seen = dated

    async def lines(self, job: str, query: LineQuery) -> LinePage:
        log = await self._dated(job)
        if log is None:
            return LinePage((), 1, LineTotal(0, 0, 0))
        return await self._numbers.page(log, query)

    async def find(self, job: str, query: FindQuery) -> AsyncGenerator[FindStep]:
        log = await self._dated(job)
        if log is not None:
            async with contextlib.aclosing(self._numbers.find(log, query)) as steps:
                async for step in steps:
                    yield step

    async def _dated(self, job: str) -> JobLog | None:
        """The log with all dated that is there now."""
        log = self._numbers.log(job) or await self._open(job)
        if log is not None and not log.is_finished:
            self._look(log, log.files.values())
        return log

    async def growth(self, job: str) -> AsyncGenerator[None]:
        async with contextlib.aclosing(self._changes(job, hurry=False)) as changes:
            async for _ in changes:
                yield

    async def _changes(self, job: str, *, hurry: bool = True) -> AsyncGenerator[JobLog]:
        """The log at once, and again whenever it has changed, until it is finished.

        Who hurries has the files looked at more often, which costs time while they grow.
        """
        if not _SAFE.fullmatch(job):
            return
        log = await self._open(job)
        if log is None:
            log = self._live.setdefault(job, JobLog(self._home / job))
        log.followers += hurry
        log.watchers += not hurry
        if self._watch is not None and hurry:
            self._watch.hurry()
        try:
            is_finished = False
            while not is_finished:
                changes, is_finished = log.changes, log.is_finished
                yield log
                if not is_finished:
                    await log.changed(changes)
        finally:
            log.followers -= hurry
            log.watchers -= not hurry
            if not (log.followers or log.watchers or log.files) and self._live.get(job) is log:
                del self._live[job]  # nobody asks any more for a job that has not begun

    async def output(self, job: str, query: OutputQuery, *, follow: bool) -> AsyncIterator[tuple[Chunk, ...]]:
        """Without follow, what there is now; with it also waits for a job that has printed nothing yet."""
        reader = ChunkReader(query)
        if not follow:
            log = await self._dated(job)
            views = log.views() if log is not None else []
            while chunks := await self._chunks(reader, views, _SMALL + 1):
                yield chunks
            return
        async with contextlib.aclosing(self._changes(job)) as changes:
            seen = 0
            async for log in changes:
                dated, views = log.dated, log.views()
                while chunks := await self._chunks(reader, views, dated - seen):
                    yield chunks
                seen = dated

    async def finish(self, job: str) -> None:
        if not _SAFE.fullmatch(job):
            return
        log = await self._open(job)
        if log is None:
            log = self._live.get(job) or JobLog(self._home / job)
        if log.is_finished:
            return
        log.close(self._wall())
        await self._within_quota(log)
        self._forget(log)
        try:
            log.finish()
        except OSError as error:
            log.end()
            raise Unavailable(f"The log of job {job} cannot be finished: {error.strerror}.") from error

    async def remove(self, job: str) -> None:
        if not _SAFE.fullmatch(job):
            return
        if log := self._live.get(job):
            await self._within_quota(log)
            self._forget(log)
            log.end()
        try:
            await asyncio.to_thread(shutil.rmtree, self._home / job)
        except FileNotFoundError:
            return
        except OSError as error:
            raise Unavailable(f"The log of job {job} cannot be removed: {error.strerror}.") from error

    async def jobs(self) -> frozenset[str]:
        try:
            return frozenset(await asyncio.to_thread(os.listdir, self._home))
        except OSError as error:
            raise Unavailable(f"The folder of logs cannot be read: {error.strerror}.") from error

    def has_room(self) -> bool:
        free = self._reserve.free()
        return free is None or free >= _ROOM

    def _forget(self, log: JobLog) -> None:
        self._live.pop(log.job, None)
        if self._watch is not None:
            self._watch.discard(log)

    async def _open(self, job: str) -> JobLog | None:
        """The one JobLog of a live job, or a fresh one of a finished job."""
        if log := self._live.get(job):
            return log
        if not _SAFE.fullmatch(job) or not (self._home / job).exists():
            return None
        async with self._opening:
            # One at a time: two might date the same bytes twice.
            loaded = await asyncio.to_thread(self._load, job)
            if log := self._live.get(job):
                return log
            if loaded is not None and not loaded.is_finished:
                self._live[job] = loaded
                self._look(loaded, loaded.files.values())  # what was printed while no server ran
            return loaded

    def _load(self, job: str) -> JobLog | None:
        loaded = JobLog.load(self._home / job)
        if loaded is not None and loaded.is_finished:
            loaded.close(self._wall())
        return loaded

    async def _read(self, log: JobLog, query: LogQuery, size: int, most: int) -> tuple[Line, ...]:
        return await self._intact(log.views(), size, lambda views: merge.read(views, query, most))

    async def _chunks(self, reader: ChunkReader, views: list[ReadableRange], size: int) -> tuple[Chunk, ...]:
        return await self._intact(views, size, reader.read)

    async def _intact(
        self,
        views: list[ReadableRange],
        size: int,
        read: Callable[[list[ReadableRange]], tuple[T, ...]],
    ) -> tuple[T, ...]:
        """What is read of the views, without those of files that the job has removed or replaced."""

        async def read_all(some: list[ReadableRange]) -> tuple[T, ...]:
            if size <= _SMALL:
                return read(some)
            return await asyncio.get_running_loop().run_in_executor(self._readers, read, some)

        try:
            return await read_all(views)
        except OSError:
            intact = [view for view in views if view.file.is_intact()]
        try:
            return await read_all(intact)
        except OSError as error:
            raise Unavailable(f"The output of the job cannot be read: {error.strerror}.") from error

    def _look(self, log: JobLog, files: Iterable[LogFile]) -> set[str]:
        grown = log.stamp(files, self._wall())
        if grown and log.dated - log.count_begun > COUNTED_AHEAD:
            log.count_begun = log.dated
            self._numbers.count_ahead(log)
        if grown and log.job not in self._dropping:
            if self._quota.is_over(log.kept):
                self._drop_in_background(log, self._within_quota(log))
            elif log.kept > LEAST and (missing := self._reserve.missing()):
                self._drop_in_background(log, self._make_room(log, missing))
        return grown

    def _drop_in_background(self, log: JobLog, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._dropping[log.job] = task
        task.add_done_callback(lambda _: self._dropping.pop(log.job, None))

    async def _within_quota(self, log: JobLog) -> None:
        running = self._dropping.get(log.job)
        if running is not None and running is not asyncio.current_task():
            await running
        if self._quota.is_over(log.kept):
            await self._drop(log, "The job is over its log quota", self._quota.enforce)

    async def _make_room(self, log: JobLog, missing: int) -> None:
        drop = functools.partial(self._quota.make_room, need=missing)
        await self._drop(log, "The disk under the logs is almost full", drop)

    async def _drop(self, log: JobLog, why: str, drop: Callable[[list[LogFile]], int]) -> None:
        files = list(log.files.values())
        first = not any(file.drop and file.drop.quota for file in files)
        try:
            dropped = await asyncio.to_thread(drop, files)
        except OSError as error:
            _log.warning("%s, and the log of job %s cannot be cut: %s", why, log.job, error)
            return
        if dropped and first:
            _log.warning("%s: the middle of the log of job %s is dropped.", why, log.job)
            if self._on_drop is not None:
                self._on_drop(log.job, why, dropped)
