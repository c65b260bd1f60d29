"""A store in memory that keeps the promises of `core.ports.Store`, but for surviving the process.

For tests of what lies above the store. It evaluates conditions on its own, so it is also the second
opinion the SQL translation is compared with. It never touches a file.
"""

import asyncio
import operator
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from trainshed.core.day_use import DayUse, JobUses, UseQuery, added_up, day_uses
from trainshed.core.errors import AlreadyExists, Conflict, NotFound
from trainshed.core.event import Event
from trainshed.core.jobs.job import Job, JobSpec, JobState, Status
from trainshed.core.ledger import Interval, ResourceTime, account, resource_time
from trainshed.core.model import Model, ModelPage, ModelQuery, model_of
from trainshed.core.notice import notices_of
from trainshed.core.ports import JobPage, Operation
from trainshed.core.query import NEWEST_FIRST, Compare, JobQuery, Operator, QueryField
from trainshed.core.queue.persistent_resource import PersistentResource
from trainshed.core.supplies.image_cache import ImageCache
from trainshed.testing.match import is_asked, matches, place, stored_time, value_of
from trainshed.testing.notices import MemoryNoticeStore


class MemoryStore:
    """All in dictionaries. Every call yields to the event loop once, as a real store would, so races show."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._events: dict[str, list[Event]] = {}
        self._intervals: dict[tuple[str, str, str], list[Interval]] = {}  # by project, location and job
        self._uses: Counter[DayUse] = Counter()  # the time of each, whose own is 0
        self._gone: dict[str, Job] = {}  # deleted jobs
        self._operations: dict[str, Operation] = {}
        self._keys: dict[tuple[str, str], str] = {}
        self._models: dict[str, Model] = {}  # by full name
        self._caches: dict[str, ImageCache] = {}  # by full name
        self._resources: dict[str, PersistentResource] = {}  # by full name
        self._followers: list[Callable[[Job, bool], None]] = []
        self.notices = MemoryNoticeStore()

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
        if result is None or project not in ("-", result.project) or location not in ("-", result.location):
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
        order = query.order
        places = {place(job, order.field): job for job in self._asked_jobs(query)}
        after = operator.lt if order.is_descending else operator.gt
        there = sorted(
            (at for at in places if query.cursor is None or after(at, query.cursor)),
            reverse=order.is_descending,
        )
        shown = there[: query.limit]
        more = len(there) > query.limit and bool(shown)
        return JobPage(jobs=tuple(places[at] for at in shown), next_cursor=shown[-1] if more else None)

    async def count(self, query: JobQuery) -> Mapping[JobState, int]:
        await asyncio.sleep(0)
        return _per_state(self._asked_jobs(query))

    async def projects(self) -> Mapping[str, Mapping[JobState, int]]:
        await asyncio.sleep(0)
        names = sorted({job.project for job in self._jobs.values()})
        return {name: _per_state(self._asked_jobs(JobQuery(project=name))) for name in names}

    async def recent_values(self, query: JobQuery, field: QueryField, most: int) -> Mapping[str, int]:
        counted: Counter[str] = Counter()
        for job in (await self.find(replace(query, limit=most, order=NEWEST_FIRST, cursor=None))).jobs:
            if field is QueryField.LABEL:
                counted.update(list(job.labels))
                counted.update(f"{key}={value}" for key, value in job.labels.items())
            elif value := value_of(job, Compare(field, Operator.EQ, "")):
                counted[value] += 1
        return counted

    async def resource_times(self, jobs: Collection[str]) -> Mapping[str, ResourceTime]:
        await asyncio.sleep(0)
        return {
            job: resource_time(closed)
            for (_, _, job), closed in self._intervals.items()
            if job in jobs and any(interval.node for interval in closed)
        }

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
        for use in day_uses(job, status, closed):
            self._uses[use._replace(micros=0)] += use.micros
        self._append(job.id, events)
        self._settle(new)
        self.notices.keep(notices_of(current, status, events) if self.notices.channels else ())
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
        self._gone[job.id] = self._jobs.pop(job.id)
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

    async def uses(self, query: UseQuery) -> tuple[DayUse, ...]:
        await asyncio.sleep(0)
        sums: Counter[DayUse] = Counter()
        for use, micros in self._uses.items():
            if query.takes(use):
                job = self._jobs.get(use.job) or self._gone.get(use.job)
                label, user = (job.labels.get(query.label, ""), job.submitter) if job else ("", "")
                sums[query.reduced(use._replace(label=label, user=user))] += micros
        return added_up(sums)

    async def job_uses(self, query: UseQuery) -> JobUses:
        uses = await self.uses(query)
        kinds = {number: use._replace(job="", micros=0) for number, use in enumerate(uses)}
        rows = [(number, use.job, use.micros) for number, use in enumerate(uses)]
        return JobUses(kinds=kinds, rows=rows)

    async def display_names(self, jobs: Collection[str]) -> Mapping[str, str]:
        await asyncio.sleep(0)
        return {id: job.display_name for id, job in (self._gone | self._jobs).items() if id in jobs}

    async def counts(self) -> Mapping[JobState, int]:
        await asyncio.sleep(0)
        return _per_state(self._jobs.values())

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
            (stored_time(model.created_at), model.id): model
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

    async def insert_resource(self, resource: PersistentResource, operation: Operation) -> None:
        await asyncio.sleep(0)
        if resource.name in self._resources:
            raise AlreadyExists(f"There is a persistent resource {resource.name} already.")
        self._resources[resource.name] = resource
        self._operations[operation.name] = operation

    async def resources(self) -> tuple[PersistentResource, ...]:
        await asyncio.sleep(0)
        return tuple(sorted(self._resources.values(), key=lambda item: (item.created_at, item.id)))

    async def write_resource(self, resource: PersistentResource) -> None:
        await self._check_resource(resource)
        self._resources[resource.name] = resource

    async def delete_resource(self, resource: PersistentResource, operation: Operation) -> None:
        await self._check_resource(resource)
        del self._resources[resource.name]
        self._operations[operation.name] = operation

    async def _check_resource(self, resource: PersistentResource) -> None:
        await asyncio.sleep(0)
        if resource.name not in self._resources:
            raise NotFound(f"There is no persistent resource {resource.name}.")

    async def delete_model(self, model: Model, operation: Operation) -> None:
        await self.model(model.project, model.location, model.id)
        del self._models[model.name]
        self._operations[operation.name] = operation

    def _asked_jobs(self, query: JobQuery) -> list[Job]:
        return [job for job in self._jobs.values() if is_asked(job, query)]

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


def _per_state(jobs: Iterable[Job]) -> Mapping[JobState, int]:
    result = dict.fromkeys(JobState, 0)
    for job in jobs:
        result[job.status.state] += 1
    return result


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
