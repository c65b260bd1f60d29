"""SqlStore: implements `core.ports.Store` with SQL, on SQLite by default and PostgreSQL by URL.

One thread makes all writes, a few make all reads (`lanes`, `writer`). Jobs that are not final, and the few
that have just ended, are kept in memory as last committed, so that reading them needs no query. That is sound
because this server is the only writer; SQL checks the version all the same. Other finished jobs are read when
asked for and are not kept.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from trainshed.core.errors import NotFound, Unavailable
from trainshed.core.event import Event
from trainshed.core.image_cache import ImageCache
from trainshed.core.job import Job, JobState, Status
from trainshed.core.ledger import Interval
from trainshed.core.model import Model, ModelPage, ModelQuery
from trainshed.core.ports import JobPage, Operation
from trainshed.core.query import JobQuery
from trainshed.store import image_caches, models, reads, writes
from trainshed.store.cache import Decoded, OriginReaders
from trainshed.store.connection import SqlConnection, SqlError
from trainshed.store.database import Database
from trainshed.store.lanes import Readers
from trainshed.store.migrations import migrate
from trainshed.store.postgres import PostgresDatabase
from trainshed.store.shortcut import Shortcut
from trainshed.store.sqlite import BUSY, SqliteDatabase
from trainshed.store.writer import Writer

JUST_ENDED = 400_000  # roughly bytes
READERS = 2  # so that a long listing does not delay a short query


class SqlStore:
    """`sqlite:///path/of/jobs.db`, `postgresql://user@host/name`."""

    def __init__(self, url: str, *, busy: timedelta = BUSY, origins: OriginReaders | None = None) -> None:
        self._database = open_database(url, busy)
        self._decoded = Decoded(origins=origins)
        self._active: dict[str, Job] = {}
        self._ended = Decoded(JUST_ENDED)  # the last ones: whoever waited for them reads them now
        self._followers: list[Callable[[Job, bool], None]] = []
        self._doubtful = False  # a commit has failed, but may have happened: memory may be outdated
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
        """Finish the queued work and release the database. May be called more than once."""
        if self._shortcut is not None:
            self._shortcut.close()
            self._shortcut = None
        # The writer last: the last connection to close checkpoints the log, and readers may not write.
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

    def on_commit(self, follow: Callable[[Job, bool], None]) -> None:
        self._followers.append(follow)
        for job in self._active.values():
            follow(job, False)

    async def catch_up(self) -> None:
        if self._doubtful:
            await self._reload()

    async def write(
        self, job: Job, status: Status, events: Sequence[Event] = (), *, flush: bool = True
    ) -> Job:
        def run(connection: SqlConnection) -> Job:
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
        operation = await self._read(lambda connection: reads.operation_by_name(connection, name))
        if operation is None:
            raise NotFound(f"There is no operation {name}.")
        return operation

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
        stored = await self._read(lambda connection: models.by_name(connection, project, location, model))
        if stored is None:
            raise NotFound(f"There is no model projects/{project}/locations/{location}/models/{model}.")
        return stored

    async def models(self, query: ModelQuery) -> ModelPage:
        return await self._read(lambda connection: models.page(connection, query))

    async def delete_model(self, model: Model, operation: Operation) -> None:
        await self._write(lambda connection: models.remove(connection, model, operation), lambda _: None)

    async def insert_cache(self, cache: ImageCache) -> None:
        await self._write(lambda connection: image_caches.keep(connection, cache), lambda _: None)

    async def cache(self, project: str, location: str, cache: str) -> ImageCache:
        stored = await self._read(lambda c: image_caches.by_name(c, project, location, cache))
        if stored is None:
            name = f"projects/{project}/locations/{location}/imageCaches/{cache}"
            raise NotFound(f"There is no image cache {name}.")
        return stored

    async def caches(self) -> tuple[ImageCache, ...]:
        return await self._read(image_caches.every)

    async def write_cache(self, cache: ImageCache) -> None:
        await self._write(lambda connection: image_caches.write(connection, cache), lambda _: None)

    async def delete_cache(self, cache: ImageCache) -> None:
        await self._write(lambda connection: image_caches.remove(connection, cache), lambda _: None)

    async def _read(self, run: Callable[[SqlConnection], Any]) -> Any:
        if self._readers is None:
            raise Unavailable("The store is not open.")
        return await self._readers.ask(run)

    async def _write(
        self, run: Callable[[SqlConnection], Any], then: Callable[[Any], None], flush: bool = True
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
        except SqlError as error:
            raise self._database.explain(error) from error
        self._database.created()

    async def _reload(self) -> None:
        """Read the active jobs again, and those that were. Queued as a write: no later write is undone."""

        def run(connection: SqlConnection) -> tuple[Job, ...]:
            active = reads.active(connection, self._decoded)
            ended = set(self._active) - {
                job.id for job in active
            }  # in one step: the loop's thread changes it
            rows = (reads.job_by_id(connection, id, self._decoded) for id in ended)
            return (*active, *(job for job in rows if job is not None))

        await self._write(run, self._replace)

    def _replace(self, jobs: tuple[Job, ...]) -> None:
        for id in self._active.keys() - {job.id for job in jobs}:
            self._forget(self._active[id])
        for job in jobs:
            self._remember(job)
        self._doubtful = False

    def _remember(self, job: Job) -> None:
        known = self._active.get(job.id) or self._ended.latest(job.id)
        if known is not None and known.version > job.version:
            return  # the writer read it before a shortcut's write, and this is called after that
        if job.is_final:
            self._active.pop(job.id, None)
            self._ended.put(job)
            self._decoded.put(job)
        else:
            self._active[job.id] = job
        self._tell(job, is_deleted=False)

    def _tell(self, job: Job, *, is_deleted: bool) -> None:
        for follow in self._followers:
            follow(job, is_deleted)

    def _forget(self, job: Job) -> None:
        self._active.pop(job.id, None)
        self._ended.drop(job.id)
        self._decoded.drop(job.id)
        self._tell(job, is_deleted=True)

    def _doubt(self) -> None:
        self._doubtful = True


def open_database(url: str, busy: timedelta = BUSY) -> Database:
    """The database a URL names. Nothing is opened yet."""
    scheme, separator, place = url.partition("://")
    if not separator:
        raise Unavailable(
            "The store's URL cannot be read; it should look like sqlite:///path/jobs.db or postgresql://user@host/name."
        )
    match scheme.partition("+")[0]:  # a driver may be named: there is one for each
        case "sqlite":
            path = place.removeprefix("/").partition("?")[0]
            if not path or path == ":memory:":
                raise Unavailable(
                    "A store in memory would lose jobs: name a file, as in sqlite:///path/jobs.db."
                )
            return SqliteDatabase(Path(path), busy)
        case "postgresql":
            return PostgresDatabase(f"postgresql://{place}")
        case other:
            raise Unavailable(
                f"No store speaks {other}: use sqlite:///path/jobs.db or postgresql://user@host/name."
            )
