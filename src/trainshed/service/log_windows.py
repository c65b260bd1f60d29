"""Divides a search for entries of whole projects into windows of time, with the jobs of each.

`LogService.merged` calls it. A job has entries between its creation and its end only. So a search that goes
through time needs no more jobs at once than lived at one time, however many there are. A window with many
jobs is made shorter, one with few makes the next longer. The windows cover the asked time exactly, without
overlap, in the order of the query. It reads jobs and never an entry.
"""

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from trainshed.core.jobs.job import Job
from trainshed.core.logs import LogQuery
from trainshed.core.ports import Store
from trainshed.core.query import OLDEST_FIRST, AllOf, Compare, JobQuery, NotOf, Operator, QueryField

MOST_OPEN = 100  # jobs of a window, unless more of them live at one time
PAGE = 500  # jobs read at a time
_SECOND = 1_000_000_000
_SLACK = 600 * _SECOND  # a line may be dated by another clock than its job
# A window shorter than the slack has as many jobs as a longer one.
_FIRST_WIDTH, _SHORTEST, _LONGEST = 3600 * _SECOND, _SLACK, 10 * 365 * 86400 * _SECOND
_EVER = 253_000_000_000 * _SECOND  # the year 9987
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ProjectJobs:
    """All jobs of these projects."""

    projects: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LogWindow:
    """A part of a query, and the jobs that can have entries in it."""

    query: LogQuery
    jobs: tuple[Job, ...]


async def log_windows(store: Store, scope: ProjectJobs, query: LogQuery) -> AsyncIterator[LogWindow]:
    """The windows of the query in its order; those without jobs are left out."""
    first = await _first(store, scope)
    low, high, now_ns = max(first, _low(query)), _high(query), time.time_ns()
    width = _FIRST_WIDTH
    while low < high:
        begin, end = _next(low, high, width, now_ns, query.newest_first)
        most = MOST_OPEN
        jobs = await _alive(store, scope, begin, end, most + 1)
        if len(jobs) > most:
            # Those that live at one moment are there however short the window is.
            most = max(most, 2 * len(await _alive(store, scope, begin, begin)))
            jobs = await _alive(store, scope, begin, end, most + 1)
        if len(jobs) > most and width > _SHORTEST:
            width = max(width // 4, _SHORTEST)
            continue
        if len(jobs) > most:
            jobs = await _alive(store, scope, begin, end)
        if jobs:
            yield LogWindow(replace(query, since_ns=begin, until_ns=end), jobs)
        if 2 * len(jobs) <= most:
            width = min(_LONGEST, width * 4)
        low, high = (low, begin) if query.newest_first else (end, high)


def _next(low: int, high: int, width: int, now_ns: int, newest_first: bool) -> tuple[int, int]:
    """The next window; that of the present has the future too, since a clock may have been set back."""
    if newest_first:
        return max(low, min(high, now_ns) - width), high
    end = low + width
    return low, high if end > now_ns else min(high, end)


def _low(query: LogQuery) -> int:
    return max(query.since_ns or 0, query.after[0] if query.after else 0)


def _high(query: LogQuery) -> int:
    return min(
        _EVER if query.until_ns is None else query.until_ns, query.before[0] + 1 if query.before else _EVER
    )


async def _first(store: Store, scope: ProjectJobs) -> int:
    """When the first entry can be; the end of time where there are no jobs."""
    times = [
        job.created_at
        for project in scope.projects
        for job in (await store.find(JobQuery(project=project, limit=1, order=OLDEST_FIRST))).jobs
    ]
    return max(0, (min(times) - _EPOCH) // timedelta(microseconds=1) * 1000 - _SLACK) if times else _EVER


async def _alive(
    store: Store, scope: ProjectJobs, begin: int, end: int, most: int | None = None
) -> tuple[Job, ...]:
    """The jobs created before the end and not ended before the beginning, `most` of them at most."""
    where = AllOf(
        (
            Compare(QueryField.CREATED, Operator.LT, _moment(end + _SLACK)),
            NotOf(Compare(QueryField.ENDED, Operator.LT, _moment(begin - _SLACK))),
        )
    )
    jobs: list[Job] = []
    for project in scope.projects:
        query: JobQuery | None = JobQuery(project=project, where=where, limit=min(PAGE, most or PAGE))
        while query is not None and (most is None or len(jobs) < most):
            page = await store.find(query)
            jobs += page.jobs
            query = replace(query, cursor=page.next_cursor) if page.next_cursor else None
    return tuple(jobs)


def _moment(at_ns: int) -> datetime:
    return _EPOCH + timedelta(microseconds=max(0, at_ns) // 1000)
