"""Use cases of logs: the lines of a job, and its events among them as lines of the service itself.

`api/log_entries.py`, `api/log_lines.py`, `api/custom_jobs.py`, `api/output.py` and `api/watch.py` call it.
Lines and events have one total order, (at_ns, insert_id). Logs are read in chunks, so memory does not grow
with their size. It never writes.
"""

import asyncio
import heapq
import math
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from trainshed.core.event import Event
from trainshed.core.jobs.job import Job
from trainshed.core.jobs.task_names import task_meant
from trainshed.core.log_port import LogStore
from trainshed.core.logs import Chunk, Line, LogQuery, OutputQuery, event_insert_id
from trainshed.core.ports import Store
from trainshed.core.tuning.study import Study
from trainshed.service.job_notifier import JobNotifier
from trainshed.service.log_windows import ProjectJobs, log_windows
from trainshed.service.trial_logs import TrialLogs

SERVICE_TASK = "service"
CHUNK = 1000  # lines read at a time
AT_ONCE = 50  # jobs whose first rows are read side by side
LEAST_CHUNK = 32  # ... of one of very many jobs that are read together
MOST_LINES = 100_000  # read at once where only their number matters; the store may return fewer

Entry: TypeAlias = Line | Event


@dataclass(frozen=True, slots=True)
class LogRow:
    """An entry with its place in the total order."""

    at_ns: int
    insert_id: str
    entry: Entry

    @property
    def place(self) -> tuple[int, str]:
        return self.at_ns, self.insert_id


@dataclass(slots=True)
class _Head:
    """The next row of a job. The least of several is the first to be given."""

    job: Job
    row: LogRow
    feed: AsyncIterator[LogRow]
    newest_first: bool

    def __lt__(self, other: "_Head") -> bool:
        return self.row.place > other.row.place if self.newest_first else self.row.place < other.row.place


@dataclass(slots=True)
class LogService:
    store: Store
    lines: LogStore
    notifier: JobNotifier
    name_keys: tuple[Callable[[str], str], ...] = ()  # each gives the key of a job from a name of its own
    trials: TrialLogs | None = None  # None: there are no studies

    def follow(self, job: Job, query: LogQuery) -> AsyncIterator[tuple[Line, ...]]:
        return self.lines.follow(job.id, query)

    def output(self, job: Job, query: OutputQuery, *, follow: bool) -> AsyncIterator[tuple[Chunk, ...]]:
        return self.lines.output(job.id, query, follow=follow)

    async def pages(self, job: Job, query: LogQuery, last: int | None) -> AsyncIterator[tuple[Line, ...]]:
        """All lines in chunks, oldest first; with `last`, only that many of the newest."""
        query = replace(query, limit=CHUNK)
        left: float = math.inf
        if last is not None:
            lines, count = await self._start_of_last(job, query, last)
            if not lines:
                return
            yield lines
            query = replace(query, after=(lines[-1].at_ns, lines[-1].insert_id))
            left = count - len(lines)
        while left > 0 and (lines := await self.lines.read(job.id, query)):
            yield lines if len(lines) <= left else lines[: int(left)]
            left -= len(lines)
            query = replace(query, after=(lines[-1].at_ns, lines[-1].insert_id))

    async def _start_of_last(self, job: Job, query: LogQuery, last: int) -> tuple[tuple[Line, ...], int]:
        """The first chunk of the last lines, oldest first, and how many there are in all."""
        count = 0
        start: tuple[Line, ...] = ()
        query = replace(query, newest_first=True)
        while count < last:
            query = replace(query, limit=min(MOST_LINES, last - count))
            if not (lines := await self.lines.read(job.id, query)):
                break
            start = lines
            count += len(lines)
            query = replace(query, before=(lines[-1].at_ns, lines[-1].insert_id))
        return tuple(reversed(start)), count

    async def fresh(self, job: Job) -> Job | None:
        return await self.store.load(job.id)

    async def jobs_of(
        self, projects: Sequence[str], ids: Sequence[str] | None, since_ns: int | None = None
    ) -> tuple[Job, ...] | ProjectJobs:
        """The jobs to search: those named, or all of the projects.

        A study's name stands for the jobs of its trials, without those that have no lines since that time.
        """
        if ids is None:
            return ProjectJobs(tuple(projects))
        jobs: list[Job] = []
        for project in projects:
            for name in ids:
                job = await self._called(project, name)
                if job is not None and job.project == project:
                    jobs.append(job)
                elif (study := await self.study_called((project,), name)) is not None:
                    jobs += await self.jobs_of_study(study, since_ns)
        return tuple(jobs)

    async def study_called(self, projects: Sequence[str], name: str) -> Study | None:
        if self.trials is None or not name.isprintable():
            return None
        studies = [await self.trials.study(project, name) for project in projects]
        return next((study for study in studies if study is not None), None)

    async def jobs_of_study(self, study: Study, since_ns: int | None) -> tuple[Job, ...]:
        return await self.trials.jobs_of(study, since_ns) if self.trials is not None else ()

    async def _called(self, project: str, job: str) -> Job | None:
        """The job by its id, or by a name of its own, which is never a number."""
        if not job.isprintable():
            return None  # not every database accepts a lone surrogate or a NUL in a query
        result = await self.store.load(job)
        for key_of in self.name_keys:
            result = result or await self.store.keyed(project, key_of(job))
        return result

    async def merged(
        self, jobs: Sequence[Job] | ProjectJobs, query: LogQuery
    ) -> AsyncIterator[tuple[Job, LogRow]]:
        """Lines and events of several jobs in one total order."""
        if isinstance(jobs, ProjectJobs):
            async for window in log_windows(self.store, jobs, query):
                async for row in self._merged(window.jobs, window.query):
                    yield row
        else:
            async for row in self._merged(jobs, query):
                yield row

    async def _merged(self, jobs: Sequence[Job], query: LogQuery) -> AsyncIterator[tuple[Job, LogRow]]:
        chunk = max(LEAST_CHUNK, CHUNK // max(1, len(jobs)))  # what is read ahead is kept for each of them
        heads: list[_Head] = []
        for start in range(0, len(jobs), AT_ONCE):
            some = [(job, self._rows(job, query, chunk)) for job in jobs[start : start + AT_ONCE]]
            rows = await asyncio.gather(*(anext(feed, None) for _, feed in some))
            heads += [
                _Head(job, row, feed, query.newest_first)
                for (job, feed), row in zip(some, rows, strict=True)
                if row is not None
            ]
        heapq.heapify(heads)
        while heads:
            head = heads[0]
            yield head.job, head.row
            row = await anext(head.feed, None)
            if row is None:
                heapq.heappop(heads)
            else:
                head.row = row
                heapq.heapreplace(heads, head)

    async def _rows(self, job: Job, query: LogQuery, chunk: int) -> AsyncIterator[LogRow]:
        if query.task is not None:
            query = replace(query, task=task_meant(job, query.task))
        events = [e for e in await self._events(job, query) if _within(e, query)]
        events.sort(key=lambda row: row.place, reverse=query.newest_first)
        async for line in self._lines(job, query, chunk):
            row = LogRow(line.at_ns, line.insert_id, line)
            while events and (events[0].place < row.place) is not query.newest_first:
                yield events.pop(0)
            yield row
        for event in events:
            yield event

    async def _events(self, job: Job, query: LogQuery) -> list[LogRow]:
        if query.task not in (None, SERVICE_TASK):
            return []
        rows: list[LogRow] = []
        last, is_more = 0, True
        while is_more:
            events = await self.store.events(job.id, after=last, limit=CHUNK)
            rows += [event_row(job, event) for event in events]
            last, is_more = events[-1].sequence if events else 0, len(events) == CHUNK
        return rows

    async def _lines(self, job: Job, query: LogQuery, chunk: int) -> AsyncIterator[Line]:
        if query.task == SERVICE_TASK:
            return
        query = replace(query, limit=min(chunk, query.limit))
        while lines := await self.lines.read(job.id, query):
            for line in lines:
                yield line
            at = (lines[-1].at_ns, lines[-1].insert_id)
            query = replace(query, before=at) if query.newest_first else replace(query, after=at)
            # A search with a small limit that goes on needs larger chunks, or it reads line by line.
            query = replace(query, limit=min(chunk, query.limit * 8))

    async def news(self, job: Job, query: LogQuery, patience: float) -> None:
        """Wait until there may be something new to read, `patience` seconds at most."""
        waits = [asyncio.create_task(self._line(job, query))]
        if not job.is_final:
            waits.append(asyncio.create_task(self._moved(job)))
        try:
            await asyncio.wait(waits, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waits:
                task.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    async def _line(self, job: Job, query: LogQuery) -> None:
        forward = replace(query, newest_first=False, until_ns=None, limit=1)
        async for _ in self.lines.follow(job.id, forward):
            return

    async def _moved(self, job: Job) -> None:
        """Wait for a change of the job: most changes come with an event, which is an entry too."""
        with self.notifier.listen(job.id) as event:
            now = await self.store.load(job.id)
            if now is not None and now.version == job.version:
                await event.wait()


def event_row(job: Job, event: Event) -> LogRow:
    at_ns = int(event.at.timestamp()) * 1_000_000_000 + event.at.microsecond * 1000
    return LogRow(at_ns, event_insert_id(job.id, event), event)


def _within(row: LogRow, query: LogQuery) -> bool:
    return (
        (query.since_ns is None or row.at_ns >= query.since_ns)
        and (query.until_ns is None or row.at_ns < query.until_ns)
        and (query.after is None or row.place > query.after)
        and (query.before is None or row.place < query.before)
    )
