"""A store in memory that keeps the promises of `core.ports.Store`, but for surviving the process.

For tests of what lies above the store. It evaluates conditions on its own, so it is also the second
opinion the SQL translation is compared with. It never touches a file.
"""

import asyncio
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import assert_never

from trainshed.core import query
from trainshed.core.errors import AlreadyExists, Conflict, NotFound
from trainshed.core.event import Event
from trainshed.core.image_cache import ImageCache
from trainshed.core.job import Job, JobSpec, JobState, Status
from trainshed.core.ledger import Interval, account
from trainshed.core.model import Model, ModelPage, ModelQuery, model_of
from trainshed.core.ports import JobPage, Operation
from trainshed.core.query import Compare, Condition, JobQuery, Operator, QueryField, is_like


class MemoryStore:
    """All in dictionaries. Every call yields to the event loop once, as a real store would, so races show."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._events: dict[str, list[Event]] = {}
        self._intervals: dict[tuple[str, str, str], list[Interval]] = {}  # by project, location and job
        self._operations: dict[str, Operation] = {}
        self._keys: dict[tuple[str, str], str] = {}
        self._models: dict[str, Model] = {}  # by full name
        self._caches: dict[str, ImageCache] = {}  # by full name
        self._followers: list[Callable[[Job, bool], None]] = []

    async def start(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close: what was kept stays, for a test that starts a second server on it."""

    async def insert(self, job: Job, events: Sequence[Event], idempotency_key: str = "") -> Job:
        await asyncio.sleep(0)
        if idempotency_key:
            earlier = self._jobs.get(self._keys.get((job.project, idempotency_key), ""))
            if earlier is not None:
                if (earlier.display_name, earlier.spec) == (job.display_name, job.spec):
                    return earlier
                raise AlreadyExists(
                    f"The idempotency key {idempotency_key!r} was used before, for job {earlier.id}."
                )
        if job.id in self._jobs:
            raise AlreadyExists(f"A job with the id {job.id} exists already.")
        if (model := model_of(job)) is not None:
            if model.name in self._models:
                raise AlreadyExists(f"There is a model {model.name} already.")
            self._models[model.name] = model
        if idempotency_key:
            self._keys[job.project, idempotency_key] = job.id
        self._jobs[job.id] = new = replace(job, version=1)
        self._append(job.id, events)
        self._tell(new)
        return new

    async def get(self, project: str, location: str, job: str) -> Job:
        result = await self.load(job)
        if result is None or result.project != project or location not in ("-", result.location):
            raise NotFound(f"There is no job projects/{project}/locations/{location}/customJobs/{job}.")
        return result

    async def load(self, job: str) -> Job | None:
        await asyncio.sleep(0)
        return self._jobs.get(job)

    async def keyed(self, project: str, key: str) -> Job | None:
        await asyncio.sleep(0)
        return self._jobs.get(self._keys.get((project, key), ""))

    async def find(self, query: JobQuery) -> JobPage:
        await asyncio.sleep(0)
        jobs = sorted((job for job in self._jobs.values() if _asked(job, query)), key=place)
        if not query.oldest_first:
            jobs.reverse()
        if query.cursor is not None:
            start = query.cursor
            after = operator.gt if query.oldest_first else operator.lt
            jobs = [job for job in jobs if after(place(job), start)]
        page = tuple(jobs[: query.limit])
        more = len(jobs) > query.limit and bool(page)
        return JobPage(jobs=page, next_cursor=place(page[-1]) if more else None)

    async def count(self, query: JobQuery) -> int:
        await asyncio.sleep(0)
        return sum(_asked(job, query) for job in self._jobs.values())

    async def active(self) -> tuple[Job, ...]:
        await asyncio.sleep(0)
        return tuple(job for job in self._jobs.values() if not job.is_final)

    def on_commit(self, follow: Callable[[Job, bool], None]) -> None:
        self._followers.append(follow)
        for job in self._jobs.values():
            if not job.is_final:
                follow(job, False)

    async def catch_up(self) -> None:
        """Nothing to do: followers are called at once."""

    async def write(
        self, job: Job, status: Status, events: Sequence[Event] = (), *, flush: bool = True
    ) -> Job:
        await asyncio.sleep(0)
        current = self._jobs.get(job.id)
        if current is None or current.version != job.version:
            raise Conflict(f"Job {job.id} has changed meanwhile.")
        status, closed = account(current, status, status.updated_at or job.created_at)
        self._jobs[job.id] = new = replace(current, status=status, version=job.version + 1)
        self._intervals.setdefault((job.project, job.location, job.id), []).extend(closed)
        self._append(job.id, events)
        self._settle(new)
        self._tell(new)
        return new

    async def relabel(self, job: Job, labels: Mapping[str, str]) -> Job:
        await asyncio.sleep(0)
        current = self._jobs.get(job.id)
        if current is None or current.version != job.version:
            raise Conflict(f"Job {job.id} has changed meanwhile.")
        self._jobs[job.id] = new = replace(current, labels=dict(labels), version=job.version + 1)
        self._tell(new)
        return new

    async def delete(self, job: Job, operation: Operation) -> None:
        await asyncio.sleep(0)
        if not job.is_final:
            raise Conflict(f"Job {job.id} is {job.status.state.value}; only an ended job can be deleted.")
        current = self._jobs.get(job.id)
        if current is None:
            raise NotFound(f"There is no job {job.name}.")
        if current.version != job.version:
            raise Conflict(f"Job {job.id} has changed meanwhile.")
        if operation.name in self._operations:
            raise AlreadyExists(f"An operation {operation.name} exists already.")
        del self._jobs[job.id]
        self._events.pop(job.id, None)
        self._keys = {key: kept for key, kept in self._keys.items() if kept != job.id}
        self._operations[operation.name] = operation
        self._tell(current, is_deleted=True)

    async def operation(self, name: str) -> Operation:
        await asyncio.sleep(0)
        result = self._operations.get(name)
        if result is None:
            raise NotFound(f"There is no operation {name}.")
        return result

    async def operations(self, project: str, limit: int, after: str = "") -> tuple[Operation, ...]:
        await asyncio.sleep(0)
        names = sorted(n for n in self._operations if n.startswith(f"projects/{project}/") and n > after)
        return tuple(self._operations[name] for name in names[:limit])

    async def deleted(self, among: frozenset[str]) -> frozenset[str]:
        await asyncio.sleep(0)
        deletes = (done for done in self._operations.values() if done.kind == "delete")
        return among.intersection(done.target.rpartition("/")[2] for done in deletes)

    async def events(self, job: str, after: int = 0, limit: int = 1000) -> tuple[Event, ...]:
        await asyncio.sleep(0)
        return tuple(event for event in self._events.get(job, ()) if event.sequence > after)[:limit]

    async def intervals(self, project: str, location: str, job: str) -> tuple[Interval, ...]:
        await asyncio.sleep(0)
        closed = self._intervals.get((project, location, job), ())
        return tuple(sorted(closed, key=lambda interval: (interval.key, interval.from_at, interval.to_at)))

    async def counts(self) -> Mapping[JobState, int]:
        await asyncio.sleep(0)
        result = dict.fromkeys(JobState, 0)
        for job in self._jobs.values():
            result[job.status.state] += 1
        return result

    async def codes(self) -> frozenset[str]:
        await asyncio.sleep(0)
        return frozenset(job.spec.code for job in self._jobs.values() if job.spec.code)

    async def model(self, project: str, location: str, model: str) -> Model:
        await asyncio.sleep(0)
        name = f"projects/{project}/locations/{location}/models/{model}"
        result = self._models.get(name)
        if result is None or result.created_at is None:
            raise NotFound(f"There is no model {name}.")
        return result

    async def models(self, query: ModelQuery) -> ModelPage:
        """As jobs are found: a model answers the same questions as far as it can."""
        await asyncio.sleep(0)
        there = {
            (_time(model.created_at), model.id): model
            for model in self._models.values()
            if model.created_at is not None
            and model.project == query.project
            and query.location in ("-", model.location)
            and (query.where is None or matches(_as_job(model, model.created_at), query.where))
        }
        places = sorted((at for at in there if not query.cursor or at < query.cursor), reverse=True)
        more = len(places) > query.limit
        places = places[: query.limit]
        return ModelPage(
            models=tuple(there[at] for at in places), next_cursor=places[-1] if more and places else None
        )

    async def insert_cache(self, cache: ImageCache) -> None:
        await asyncio.sleep(0)
        if cache.name in self._caches:
            raise AlreadyExists(f"There is an image cache {cache.name} already.")
        self._caches[cache.name] = cache

    async def cache(self, project: str, location: str, cache: str) -> ImageCache:
        await asyncio.sleep(0)
        name = f"projects/{project}/locations/{location}/imageCaches/{cache}"
        if name not in self._caches:
            raise NotFound(f"There is no image cache {name}.")
        return self._caches[name]

    async def caches(self) -> tuple[ImageCache, ...]:
        await asyncio.sleep(0)
        return tuple(sorted(self._caches.values(), key=lambda cache: (cache.created_at, cache.id)))

    async def write_cache(self, cache: ImageCache) -> None:
        await self.cache(cache.project, cache.location, cache.id)
        self._caches[cache.name] = cache

    async def delete_cache(self, cache: ImageCache) -> None:
        await self.cache(cache.project, cache.location, cache.id)
        del self._caches[cache.name]

    async def delete_model(self, model: Model, operation: Operation) -> None:
        await self.model(model.project, model.location, model.id)
        del self._models[model.name]
        self._operations[operation.name] = operation

    def _tell(self, job: Job, *, is_deleted: bool = False) -> None:
        for follow in self._followers:
            follow(job, is_deleted)

    def _settle(self, job: Job) -> None:
        model = model_of(job)
        if model is None or not job.is_final or self._models.get(model.name) != model:
            return
        if job.status.state is JobState.SUCCEEDED:
            ended_at = job.status.ended_at or job.created_at
            self._models[model.name] = replace(model, created_at=ended_at)
        else:
            del self._models[model.name]

    def _append(self, job: str, events: Sequence[Event]) -> None:
        kept = self._events.setdefault(job, [])
        for event in events:
            kept.append(replace(event, sequence=len(kept) + 1))


def place(job: Job) -> tuple[str, str]:
    """Where a job stands in the order of pages."""
    return _time(job.created_at), job.id


def matches(job: Job, condition: Condition) -> bool:
    """Whether a job meets a condition. What it does not have equals nothing."""
    match condition:
        case query.AllOf(parts):
            return all(matches(job, part) for part in parts)
        case query.AnyOf(parts):
            return any(matches(job, part) for part in parts)
        case query.NotOf(part):
            return not matches(job, part)
        case Compare():
            return _compare(job, condition)
    assert_never(condition)


def _as_job(model: Model, created_at: datetime) -> Job:
    """A job of the model's name, age and labels, of which a condition can be asked."""
    return Job(
        id=model.id,
        project=model.project,
        location=model.location,
        display_name=model.display_name,
        labels=model.labels,
        created_at=created_at,
        spec=JobSpec(pools=()),
    )


def _asked(job: Job, query: JobQuery) -> bool:
    if query.kind and job.kind != query.kind:
        return False
    if query.owner and job.owner != query.owner:
        return False
    if job.project != query.project or query.location not in ("-", job.location):
        return False
    return query.where is None or matches(job, query.where)


def _compare(job: Job, wanted: Compare) -> bool:
    actual = _value(job, wanted)
    value = _time(wanted.value) if isinstance(wanted.value, datetime) else wanted.value
    if actual is None:
        return wanted.op is Operator.NE
    match wanted.op:
        case Operator.EQ:
            return actual == value
        case Operator.NE:
            return actual != value
        case Operator.LT:
            return actual < value
        case Operator.LE:
            return actual <= value
        case Operator.GT:
            return actual > value
        case Operator.GE:
            return actual >= value
        case Operator.LIKE:
            return is_like(actual, value)
    assert_never(wanted.op)


def _value(job: Job, wanted: Compare) -> str | None:
    match wanted.field:
        case QueryField.DISPLAY_NAME:
            return job.display_name
        case QueryField.STATE:
            return job.status.state.value
        case QueryField.CREATED:
            return _time(job.created_at)
        case QueryField.UPDATED:
            return _time(job.status.updated_at or job.created_at)
        case QueryField.STARTED:
            return _time(job.status.started_at) if job.status.started_at else None
        case QueryField.ENDED:
            return _time(job.status.ended_at) if job.status.ended_at else None
        case QueryField.ID:
            return job.id
        case QueryField.LABEL:
            return job.labels.get(wanted.label)
    assert_never(wanted.field)


def _time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
