"""The store on SQL: every promise of `core.ports.Store`, on SQLite by default and PostgreSQL by URL.

All writes go through one thread, all reads through a few (`lanes`, `writer`). The jobs that are not final,
and the few that have just ended, are kept in memory as last committed, so that the loop and those who waited
read them for nothing; this is sound because this server is the only writer, and the version is checked in SQL
all the same. Other finished jobs are read when asked for and never pile up.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from trainshed.core.errors import NotFound, Unavailable
from trainshed.core.event import Event
from trainshed.core.image_cache import ImageCache
from trainshed.core.job import Job, JobState, Status
from trainshed.core.ledger import Interval
from trainshed.core.model import Model, ModelPage, ModelQuery
from trainshed.core.ports import JobPage, Operation
from trainshed.core.query import JobQuery
from trainshed.store import image_caches, models, reads, writes
from trainshed.store.cache import Decoded
from trainshed.store.database import Database
from trainshed.store.lanes import Readers
from trainshed.store.migrations import migrate
from trainshed.store.postgres import PostgresDatabase
from trainshed.store.shortcut import Shortcut
from trainshed.store.sqlite import BUSY, SqliteDatabase
from trainshed.store.writer import Writer

JUST_ENDED = 400_000  # roughly bytes
READERS = 2  # one long listing does not hold up a short question


class SqlStore:
    """`sqlite:///path/of/jobs.db`, `postgresql://user@host/name`."""

    def __init__(
        self,
        url: str,
        *,
        busy: timedelta = BUSY,
        on_commit: Callable[[Job, bool], None] = lambda _job, _is_deleted: None,
    ) -> None:
        """`on_commit` is told of every job written, and if it is deleted."""
        self._database = open_database(url, busy)
        self._decoded = Decoded()
        self._active: dict[str, Job] = {}
        self._ended = Decoded(JUST_ENDED)  # the last ones: those who waited for them ask now
        self._on_commit = on_commit
        self._followers: list[Callable[[str, Job | None], None]] = []
        self._doubtful = False  # a commit failed half-way: memory may be behind the database
        self._writer: Writer | None = None
        self._readers: Readers | None = None
        self._shortcut: Shortcut | None = None

    async def start(self) -> None:
        """Claim and check the database, bring its schema up to date, read the active jobs."""
        loop = asyncio.get_running_loop()
        ready = False
        try:
            await asyncio.to_thread(self._prepare)
            self._writer = Writer(self._database, loop, self._doubt)
            self._readers = Readers("reader", self._database, loop, READERS)
            await self._reload()
            quick = await asyncio.to_thread(self._database.connect_without_waiting)
            self._shortcut = None if quick is None else Shortcut(quick)
            ready = True
        finally:
            if not ready:
                await self.close()

    async def close(self) -> None:
        """Finish what was begun and let go of the database. May be called more than once."""
        if self._shortcut is not None:
            self._shortcut.close()
            self._shortcut = None
        # The writer last: whoever closes last folds the log back into the file, and readers may not write.
        for lane in (self._readers, self._writer):
            if lane is not None:
                await lane.close()
        self._writer = self._readers = None
        await asyncio.to_thread(self._database.release)

    async def insert(self, job: Job, events: Sequence[Event], idempotency_key: str = "") -> Job:
        new = replace(job, version=1)
        return await self._write(
            lambda connection: writes.insert_job(connection, new, events, idempotency_key, self._decoded),
            self._remember,
        )

    async def get(self, project: str, location: str, job: str) -> Job:
        result = await self.load(job)
        if result is None or result.project != project or location not in ("-", result.location):
            name = f"projects/{project}/locations/{location}/customJobs/{job}"
            raise NotFound(f"There is no job {name}.")
        return result

    async def load(self, job: str) -> Job | None:
        known = self._active.get(job) or self._ended.latest(job)
        if known is not None and not self._doubtful:
            return known
        return await self._read(lambda connection: reads.job_by_id(connection, job, self._decoded))

    async def keyed(self, project: str, key: str) -> Job | None:
        return await self._read(lambda connection: reads.job_by_key(connection, project, key, self._decoded))

    async def find(self, query: JobQuery) -> JobPage:
        return await self._read(lambda connection: reads.page(connection, query, self._decoded))

    async def count(self, query: JobQuery) -> int:
        return await self._read(lambda connection: reads.count(connection, query))

    async def active(self) -> tuple[Job, ...]:
        await self.catch_up()
        return tuple(self._active.values())

    def on_change(self, follow: Callable[[str, Job | None], None]) -> None:
        self._followers.append(follow)
        for job in self._active.values():
            follow(job.id, job)

    async def catch_up(self) -> None:
        if self._doubtful:
            await self._reload()

    async def write(
        self, job: Job, status: Status, events: Sequence[Event] = (), *, flush: bool = True
    ) -> Job:
        def run(connection: Connection) -> Job:
            return writes.update_status(connection, job, status, events)

        if not flush and self._shortcut is not None and (done := self._shortcut.take(run)) is not None:
            self._remember(done)
            return done
        return await self._write(run, self._remember, flush)

    async def relabel(self, job: Job, labels: Mapping[str, str]) -> Job:
        return await self._write(
            lambda connection: writes.update_labels(connection, job, labels), self._remember
        )

    async def delete(self, job: Job, operation: Operation) -> None:
        await self._write(
            lambda connection: writes.delete_job(connection, job, operation), lambda _: self._forget(job)
        )

    async def operation(self, name: str) -> Operation:
        found = await self._read(lambda connection: reads.operation_by_name(connection, name))
        if found is None:
            raise NotFound(f"There is no operation {name}.")
        return found

    async def operations(self, project: str, limit: int, after: str = "") -> tuple[Operation, ...]:
        return await self._read(lambda connection: reads.operations_of(connection, project, limit, after))

    async def deleted(self, among: frozenset[str]) -> frozenset[str]:
        return await self._read(lambda connection: reads.deleted(connection, among)) if among else among

    async def events(self, job: str, after: int = 0, limit: int = 1000) -> tuple[Event, ...]:
        return await self._read(lambda connection: reads.events_of(connection, job, after, limit))

    async def intervals(self, project: str, location: str, job: str) -> tuple[Interval, ...]:
        return await self._read(lambda connection: reads.intervals_of(connection, project, location, job))

    async def counts(self) -> Mapping[JobState, int]:
        return await self._read(reads.counts)

    async def codes(self) -> frozenset[str]:
        return await self._read(reads.codes)

    async def model(self, project: str, location: str, model: str) -> Model:
        found = await self._read(lambda connection: models.by_name(connection, project, location, model))
        if found is None:
            raise NotFound(f"There is no model projects/{project}/locations/{location}/models/{model}.")
        return found

    async def models(self, query: ModelQuery) -> ModelPage:
        return await self._read(lambda connection: models.page(connection, query))

    async def delete_model(self, model: Model, operation: Operation) -> None:
        await self._write(lambda connection: models.remove(connection, model, operation), lambda _: None)

    async def insert_cache(self, cache: ImageCache) -> None:
        await self._write(lambda connection: image_caches.keep(connection, cache), lambda _: None)

    async def cache(self, project: str, location: str, cache: str) -> ImageCache:
        found = await self._read(lambda c: image_caches.by_name(c, project, location, cache))
        if found is None:
            name = f"projects/{project}/locations/{location}/imageCaches/{cache}"
            raise NotFound(f"There is no image cache {name}.")
        return found

    async def caches(self) -> tuple[ImageCache, ...]:
        return await self._read(image_caches.every)

    async def write_cache(self, cache: ImageCache) -> None:
        await self._write(lambda connection: image_caches.write(connection, cache), lambda _: None)

    async def delete_cache(self, cache: ImageCache) -> None:
        await self._write(lambda connection: image_caches.remove(connection, cache), lambda _: None)

    async def _read(self, run: Callable[[Connection], Any]) -> Any:
        if self._readers is None:
            raise Unavailable("The store is not open.")
        return await self._readers.ask(run)

    async def _write(
        self, run: Callable[[Connection], Any], then: Callable[[Any], None], flush: bool = True
    ) -> Any:
        if self._writer is None:
            raise Unavailable("The store is not open.")
        return await self._writer.ask(run, then, flush=flush)

    def _prepare(self) -> None:
        self._database.claim()
        try:
            connection = self._database.connect(writing=True)
            try:
                migrate(connection, self._database.begin, self._database.where)
            finally:
                connection.close()
        except DBAPIError as error:
            raise self._database.explain(error) from error
        self._database.created()

    async def _reload(self) -> None:
        """Read the active jobs anew, in line with the writes, so that no later one is overwritten."""
        await self._write(lambda connection: reads.active(connection, self._decoded), self._replace)

    def _replace(self, active: tuple[Job, ...]) -> None:
        for id in self._active.keys() - {job.id for job in active}:
            del self._active[id]
            self._tell(id, None)
        for job in active:
            self._remember(job)
        self._doubtful = False

    def _remember(self, job: Job) -> None:
        known = self._active.get(job.id) or self._ended.latest(job.id)
        if known is not None and known.version > job.version:
            return  # read by the writer before a shortcut's write, told after it
        if job.is_final:
            self._active.pop(job.id, None)
            self._ended.put(job)
            self._decoded.put(job)
            self._tell(job.id, None)
        else:
            self._active[job.id] = job
            self._tell(job.id, job)
        self._on_commit(job, False)

    def _tell(self, id: str, job: Job | None) -> None:
        for follow in self._followers:
            follow(id, job)

    def _forget(self, job: Job) -> None:
        self._active.pop(job.id, None)
        self._ended.drop(job.id)
        self._decoded.drop(job.id)
        self._on_commit(job, True)

    def _doubt(self) -> None:
        self._doubtful = True


def open_database(url: str, busy: timedelta = BUSY) -> Database:
    """The database a URL names. Nothing is opened yet."""
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise Unavailable(
            "The store's URL cannot be read; it should look like sqlite:///path/jobs.db or postgresql://user@host/name."
        ) from error
    match parsed.get_backend_name():
        case "sqlite":
            if not parsed.database or parsed.database == ":memory:":
                raise Unavailable(
                    "A store in memory would lose jobs: name a file, as in sqlite:///path/jobs.db."
                )
            return SqliteDatabase(Path(parsed.database), busy)
        case "postgresql":
            return PostgresDatabase(parsed)
        case other:
            raise Unavailable(
                f"No store speaks {other}: use sqlite:///path/jobs.db or postgresql://user@host/name."
            )
