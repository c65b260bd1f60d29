"""A store in memory that keeps the promises of `core.ports.Store`, but for surviving the process.

For tests of what lies above the store. It evaluates conditions on its own, so it is also the second
opinion the SQL translation is compared with. It never touches a file.
"""

import asyncio
import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import assert_never

from trainshed.core import query
from trainshed.core.errors import AlreadyExists, Conflict, NotFound
from trainshed.core.event import Event
from trainshed.core.job import Job, JobState, Status
from trainshed.core.ports import Operation, Page
from trainshed.core.query import Compare, Condition, Field, JobQuery, Op


class MemoryStore:
    """All in dictionaries. Every call gives way once, as a real store would, so races show."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._events: dict[str, list[Event]] = {}
        self._operations: dict[str, Operation] = {}
        self._keys: dict[tuple[str, str], str] = {}

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
        if idempotency_key:
            self._keys[job.project, idempotency_key] = job.id
        self._jobs[job.id] = new = replace(job, version=1)
        self._append(job.id, events)
        return new

    async def get(self, project: str, location: str, job: str) -> Job:
        found = await self.load(job)
        if found is None or (found.project, found.location) != (project, location):
            raise NotFound(f"There is no job projects/{project}/locations/{location}/customJobs/{job}.")
        return found

    async def load(self, job: str) -> Job | None:
        await asyncio.sleep(0)
        return self._jobs.get(job)

    async def find(self, query: JobQuery) -> Page:
        await asyncio.sleep(0)
        found = sorted((job for job in self._jobs.values() if _asked(job, query)), key=place)
        if not query.oldest_first:
            found.reverse()
        if query.cursor is not None:
            start = query.cursor
            after = operator.gt if query.oldest_first else operator.lt
            found = [job for job in found if after(place(job), start)]
        page = tuple(found[: query.limit])
        more = len(found) > query.limit and bool(page)
        return Page(jobs=page, next_cursor=place(page[-1]) if more else None)

    async def active(self) -> tuple[Job, ...]:
        await asyncio.sleep(0)
        return tuple(job for job in self._jobs.values() if not job.is_final)

    async def write(
        self, job: Job, status: Status, events: Sequence[Event] = (), *, flush: bool = True
    ) -> Job:
        await asyncio.sleep(0)
        current = self._jobs.get(job.id)
        if current is None or current.version != job.version:
            raise Conflict(f"Job {job.id} has changed meanwhile.")
        self._jobs[job.id] = new = replace(current, status=status, version=job.version + 1)
        self._append(job.id, events)
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

    async def operation(self, name: str) -> Operation:
        await asyncio.sleep(0)
        found = self._operations.get(name)
        if found is None:
            raise NotFound(f"There is no operation {name}.")
        return found

    async def deleted(self, among: frozenset[str]) -> frozenset[str]:
        await asyncio.sleep(0)
        deletes = (done for done in self._operations.values() if done.kind == "delete")
        return among.intersection(done.target.rpartition("/")[2] for done in deletes)

    async def events(self, job: str, after: int = 0, limit: int = 1000) -> tuple[Event, ...]:
        await asyncio.sleep(0)
        return tuple(event for event in self._events.get(job, ()) if event.sequence > after)[:limit]

    async def counts(self) -> Mapping[JobState, int]:
        await asyncio.sleep(0)
        found = dict.fromkeys(JobState, 0)
        for job in self._jobs.values():
            found[job.status.state] += 1
        return found

    async def codes(self) -> frozenset[str]:
        await asyncio.sleep(0)
        return frozenset(job.spec.code for job in self._jobs.values() if job.spec.code)

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
        case query.All(parts):
            return all(matches(job, part) for part in parts)
        case query.Any(parts):
            return any(matches(job, part) for part in parts)
        case query.Not(part):
            return not matches(job, part)
        case Compare():
            return _compare(job, condition)
    assert_never(condition)


def _asked(job: Job, query: JobQuery) -> bool:
    if job.project != query.project or query.location not in ("-", job.location):
        return False
    return query.where is None or matches(job, query.where)


def _compare(job: Job, wanted: Compare) -> bool:
    found = _value(job, wanted)
    value = _time(wanted.value) if isinstance(wanted.value, datetime) else wanted.value
    if found is None:
        return wanted.op is Op.NE
    match wanted.op:
        case Op.EQ:
            return found == value
        case Op.NE:
            return found != value
        case Op.LT:
            return found < value
        case Op.LE:
            return found <= value
        case Op.GT:
            return found > value
        case Op.GE:
            return found >= value
        case Op.LIKE:
            pattern = ".*".join(re.escape(piece) for piece in value.split("*"))
            return re.fullmatch(pattern, found, re.DOTALL) is not None
    assert_never(wanted.op)


def _value(job: Job, wanted: Compare) -> str | None:
    match wanted.field:
        case Field.DISPLAY_NAME:
            return job.display_name
        case Field.STATE:
            return job.status.state.value
        case Field.CREATED:
            return _time(job.created_at)
        case Field.UPDATED:
            return _time(job.status.updated_at or job.created_at)
        case Field.STARTED:
            return _time(job.status.started_at) if job.status.started_at else None
        case Field.ENDED:
            return _time(job.status.ended_at) if job.status.ended_at else None
        case Field.ID:
            return job.id
        case Field.LABEL:
            return job.labels.get(wanted.label)
    assert_never(wanted.field)


def _time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
