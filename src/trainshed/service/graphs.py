"""Use cases of graphs: what a job used and reported over a range, and many jobs beside each other.

`api/graphs.py` calls it. It reads the store and the metric store and changes nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from trainshed.core.columns import (
    NO_COLUMNS,
    ColumnQuery,
    Columns,
    ReportedColumns,
    named,
    narrowed,
    reported,
    used,
    with_gaps,
)
from trainshed.core.comparison import MOST_JOBS, Comparison, ComparisonRequest, compare
from trainshed.core.event import Event, Reason
from trainshed.core.graphs import GraphRange, JobGraphs
from trainshed.core.jobs.job import Job
from trainshed.core.metrics import VALUE
from trainshed.core.ports import Clock, MetricStore, Store
from trainshed.core.query import AnyOf, Compare, Condition, JobQuery, Operator, QueryField

MOST_MARKS = 1000
LAST_READING = timedelta(seconds=5)  # the last reading of a replica comes up to so long after its end
_AT_ONCE = 100  # jobs in one query of the store
_UNMARKED = frozenset(
    {
        Reason.SUBMITTED,
        Reason.NO_BUCKET,
        Reason.LEFT_OUT,
        Reason.SHRUNK,
        Reason.NO_GPUS,
        Reason.SUBSTITUTED,
        Reason.INSTALLED,
        Reason.IMAGE_CACHED,
        Reason.PREPARING,
        Reason.OUTPUTS_ELSEWHERE,
        Reason.STACKS,
        Reason.LOG_DROPPED,
    }
)


@dataclass(slots=True)
class GraphService:
    store: Store
    metrics: MetricStore
    clock: Clock
    settle: Callable[[str], Awaitable[None]]  # returns once all samples of an ended job are recorded

    async def graphs(self, job: Job, asked: GraphRange) -> JobGraphs:
        if job.is_final:
            await self.settle(job.id)
        events = await self.store.events(job.id, limit=MOST_MARKS)
        whole_since, whole_until = _begin(job, events), self._end(job)
        since, until = asked.since or whole_since, asked.until or whole_until
        query = ColumnQuery(since=since.timestamp(), until=until.timestamp(), points=asked.points)
        columns = (await self.metrics.columns({job.id: query})).get(job.id, NO_COLUMNS)
        usage, reports = await asyncio.to_thread(_narrowed, columns, asked.points)
        return JobGraphs(
            since=since,
            until=until,
            whole_since=whole_since,
            whole_until=whole_until,
            usage=usage,
            reports=reports,
            marks=tuple(e for e in events if e.reason not in _UNMARKED and since <= e.at <= until),
        )

    async def compare(self, jobs: Sequence[Job], asked: ComparisonRequest) -> Comparison:
        queries = {
            job.id: ColumnQuery(
                since=job.created_at.timestamp(),
                until=self._end(job).timestamp(),
                points=2 * asked.points,
                names=_reported_names(asked.metrics),
            )
            for job in jobs
        }
        columns = await self.metrics.columns(queries)
        return await asyncio.to_thread(compare, jobs, columns, asked)

    async def jobs_named(self, names: Sequence[tuple[str, str, str]]) -> tuple[Job, ...]:
        """The jobs of these projects, locations and ids, in that order; without those that are not there."""
        stored: dict[tuple[str, str, str], Job] = {}
        for project in dict.fromkeys(project for project, _, _ in names):
            identities = [identity for owner, _, identity in names if owner == project]
            for begin in range(0, len(identities), _AT_ONCE):
                some = identities[begin : begin + _AT_ONCE]
                where = AnyOf(tuple(Compare(QueryField.ID, Operator.EQ, identity) for identity in some))
                page = await self.store.find(JobQuery(project=project, where=where, limit=len(some)))
                stored |= {(job.project, job.location, job.id): job for job in page.jobs}
        return tuple(stored[name] for name in dict.fromkeys(names) if name in stored)

    async def jobs_like(
        self, project: str, location: str, where: Condition | None
    ) -> tuple[tuple[Job, ...], bool]:
        """The newest jobs for which the condition holds, and whether there are more."""
        page = await self.store.find(
            JobQuery(project=project, location=location, where=where, limit=MOST_JOBS)
        )
        return page.jobs, page.next_cursor is not None

    def _end(self, job: Job) -> datetime:
        ended = job.status.ended_at
        return self.clock.now() if ended is None else ended + LAST_READING


def _begin(job: Job, events: Iterable[Event]) -> datetime:
    admitted = (event.at for event in events if event.reason is Reason.ADMITTED)
    return next(admitted, job.status.started_at or job.created_at).astimezone(UTC)


def _narrowed(columns: Columns, points: int) -> tuple[Columns, tuple[ReportedColumns, ...]]:
    reports = tuple(named(narrowed(some, points)) for some in reported(columns))
    return with_gaps(narrowed(used(columns), points)), reports


def _reported_names(metrics: frozenset[str]) -> Callable[[str], bool]:
    def is_wanted(name: str) -> bool:
        if not name.startswith(VALUE):
            return name == "step"
        return not metrics or name.removeprefix(VALUE) in metrics

    return is_wanted
