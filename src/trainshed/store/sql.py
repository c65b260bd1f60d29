"""SqlStore: implements `core.ports.Store` with SQL, on SQLite by default and PostgreSQL by URL.

One thread makes all writes, a few make all reads (`lanes`, `writer`). Jobs that are not final, and the few
that have just ended, are in memory as last committed (`known_jobs`): reading them needs no query. That is
sound because this server is the only writer; SQL checks the version all the same. Memory may still be wrong:
a connection was lost during a commit, or a database that crashed has lost its last commits. So jobs are read
again after a lost connection, and after each conflict that memory does not explain.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from trainshed.core.day_use import DayUse, JobUses, UseQuery
from trainshed.core.errors import Conflict, NotFound, Unavailable
from trainshed.core.event import Event
from trainshed.core.jobs.job import Job, JobState, Status
from trainshed.core.ledger import Interval, ResourceTime
from trainshed.core.model import Model, ModelPage, ModelQuery
from trainshed.core.ports import JobPage, Operation
from trainshed.core.query import JobQuery, QueryField
from trainshed.core.queue.persistent_resource import PersistentResource
from trainshed.core.supplies.image_cache import ImageCache
from trainshed.store import day_uses, image_caches, lists, models, persistent_resources, reads, writes
from trainshed.store.cache import Decoded, OriginReaders
from trainshed.store.connection import SqlConnection, SqlError
from trainshed.store.database import Database
from trainshed.store.known_jobs import KnownJobs
from trainshed.store.lanes import Readers
from trainshed.store.migrations import migrate
from trainshed.store.notices import SqlNoticeStore
from trainshed.store.postgres import PostgresDatabase
from trainshed.store.shortcut import Shortcut
from trainshed.store.sqlite import BUSY, SqliteDatabase
from trainshed.store.studies import SqlStudyStore
from trainshed.store.writer import Writer

READERS = 2  # so that a long listing does not delay a short query


class SqlStore:
    """`sqlite:///path/of/jobs.db`, `postgresql://user@host/name`."""

    def __init__(self, url: str, *, busy: timedelta = BUSY, origins: OriginReaders | None = None) -> None:
        self._database = open_database(url, busy)
        self._decoded = Decoded(origins=origins)
        self._known = KnownJobs(self._decoded)
        self._doubts = self._settled_doubts = 0  # how often memory may have become wrong; and was read again
        self._writer: Writer | None = None
        self._readers: Readers | None = None
        self._shortcut: Shortcut | None = None
        self.studies = SqlStudyStore(self._read, self._write)
        self.notices = SqlNoticeStore(self._read, self._write)

    async def start(self) -> None:
        """Claim and check the database, bring its schema up to date, read the active jobs."""
        loop = asyncio.get_running_loop()
        ready = False
        try:
            await asyncio.to_thread(self._prepare)
            self._writer = Writer(self._database, loop, self._doubt)
            self._readers = Readers("reader", self._database, loop, self._doubt, READERS)
            await self._reload()
            await self.notices.start()
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
            self._known.remember,
        )

    async def get(self, project: str, location: str, job: str) -> Job:
        result = await self.load(job)
        if result is None or project not in ("-", result.project) or location not in ("-", result.location):
            name = f"projects/{project}/locations/{location}/customJobs/{job}"
            raise NotFound(f"There is no job {name}.")
        return result

    async def load(self, job: str) -> Job | None:
        known = self._known.get(job)
        if known is not None and not self._is_doubtful:
            return known
        return await self._read(lambda connection: reads.job_by_id(connection, job, self._decoded))

    async def keyed(self, project: str, key: str) -> Job | None:
        return await self._read(lambda connection: reads.job_by_key(connection, project, key, self._decoded))

    async def find(self, query: JobQuery) -> JobPage:
        return await self._read(lambda connection: lists.page(connection, query, self._decoded))

    async def count(self, query: JobQuery) -> Mapping[JobState, int]:
        return await self._read(lambda connection: lists.count(connection, query))

    async def projects(self) -> Mapping[str, Mapping[JobState, int]]:
        return await self._read(lists.projects)

    async def recent_values(self, query: JobQuery, field: QueryField, most: int) -> Mapping[str, int]:
        return await self._read(lambda connection: lists.recent_values(connection, query, field, most))

    async def resource_times(self, jobs: Collection[str]) -> Mapping[str, ResourceTime]:
        return await self._read(lambda connection: lists.resource_times(connection, jobs))

    async def active(self) -> tuple[Job, ...]:
        await self.catch_up()
        return tuple(self._known.active.values())

    def on_commit(self, follow: Callable[[Job, bool], None]) -> None:
        self._known.follow(follow)

    async def catch_up(self) -> None:
        if self._is_doubtful:
            await self._reload()

    async def write(
        self, job: Job, status: Status, events: Sequence[Event] = (), *, flush: bool = True
    ) -> Job:
        queued = self.notices.wanted(job, status, events)

        def then(written: Job) -> None:
            self._known.remember(written)
            self.notices.tell(queued)

        return await self._change(
            job,
            lambda connection: writes.update_status(connection, job, status, events, queued),
            then if queued else self._known.remember,
            flush or bool(queued),
        )

    async def relabel(self, job: Job, labels: Mapping[str, str]) -> Job:
        return await self._change(
            job, lambda connection: writes.update_labels(connection, job, labels), self._known.remember
        )

    async def delete(self, job: Job, operation: Operation) -> None:
        await self._change(
            job,
            lambda connection: writes.delete_job(connection, job, operation),
            lambda _: self._known.forget(job),
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

    async def uses(self, query: UseQuery) -> tuple[DayUse, ...]:
        return await self._read(lambda connection: day_uses.uses(connection, query))

    async def job_uses(self, query: UseQuery) -> JobUses:
        return await self._read(lambda connection: day_uses.job_uses(connection, query))

    async def display_names(self, jobs: Collection[str]) -> Mapping[str, str]:
        return await self._read(lambda connection: day_uses.display_names(connection, jobs))

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

    async def insert_resource(self, resource: PersistentResource, operation: Operation) -> None:
        await self._write(lambda c: persistent_resources.keep(c, resource, operation), lambda _: None)

    async def resources(self) -> tuple[PersistentResource, ...]:
        return await self._read(persistent_resources.every)

    async def write_resource(self, resource: PersistentResource) -> None:
        await self._write(lambda c: persistent_resources.write(c, resource), lambda _: None)

    async def delete_resource(self, resource: PersistentResource, operation: Operation) -> None:
        await self._write(lambda c: persistent_resources.remove(c, resource, operation), lambda _: None)

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

    async def _change(
        self, job: Job, run: Callable[[SqlConnection], Any], then: Callable[[Any], None], flush: bool = True
    ) -> Any:
        """Make a write that is guarded by the job's version. If it is refused, memory has what is stored."""
        try:
            if not flush and self._shortcut is not None and (done := self._shortcut.take(run)) is not None:
                then(done)
                return done
            return await self._write(run, then, flush)
        except (Conflict, NotFound):
            known = self._known.get(job.id)
            if known is not None and known.version == job.version:  # else the caller had an older version
                await self._refresh(known)
            raise

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
        doubts, before = self._doubts, dict(self._known.active)

        def run(connection: SqlConnection) -> tuple[Job, ...]:
            active = reads.active(connection, self._decoded)
            ended = before.keys() - {job.id for job in active}
            return (*active, *reads.jobs_by_ids(connection, ended, self._decoded))

        def then(jobs: tuple[Job, ...]) -> None:
            self._known.replace(before, jobs)
            self._settled_doubts = doubts

        await self._write(run, then)

    async def _refresh(self, known: Job) -> None:
        """Read one job again, whose version in memory is not the stored one."""

        def run(connection: SqlConnection) -> tuple[Job, ...]:
            self._decoded.drop(known.id)
            stored = reads.job_by_id(connection, known.id, self._decoded)
            return () if stored is None else (stored,)

        await self._write(run, lambda jobs: self._known.replace({known.id: known}, jobs))

    @property
    def _is_doubtful(self) -> bool:
        """Whether memory may differ from the database: a commit or a connection was lost."""
        return self._doubts != self._settled_doubts

    def _doubt(self) -> None:
        self._doubts += 1
        self._known.forget_ended()


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
