"""Cloud Logging's entries:list over our logs: its filter language, both orders, pages."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from trainshed.api import gcloud
from trainshed.api.call import Call, Json
from trainshed.api.permitted import require
from trainshed.core.accounts.permission import Permission, Resource
from trainshed.core.errors import Invalid, Violation
from trainshed.core.event import Event
from trainshed.core.jobs.job import Job
from trainshed.core.logs import Line, LogQuery
from trainshed.core.ports import Clock
from trainshed.core.tuning.study import Study
from trainshed.service.log_windows import ProjectJobs
from trainshed.service.logs import LogRow, LogService
from trainshed.wire import log_bounds, log_filter, page
from trainshed.wire.log_entry import render_event_entry, render_line

MOST_TEXT = 8 * 1024 * 1024  # characters in one page: lines may be very long
MOST_TIME = 0.5  # seconds of reading for one page: limits a filter that matches nothing
BATCH = 500  # entries matched at a time


@dataclass(slots=True)
class LogHandlers:
    logs: LogService
    clock: Clock

    async def search(self, call: Call) -> Json:
        ask = _Ask.of(call)
        for project in ask.projects:
            require(call, Permission.LOGS_READ, Resource(project))
        streams = gcloud.streams_logs(call.user_agent)
        text = gcloud.without_upper_bound(ask.filter) if streams else ask.filter
        parsed = log_filter.parse(text)
        bounds = log_bounds.bounds(parsed)
        query = LogQuery(
            since_ns=bounds.since_ns,
            until_ns=bounds.until_ns,
            task=next(iter(bounds.tasks)) if bounds.tasks and len(bounds.tasks) == 1 else None,
            newest_first=ask.newest_first,
            after=bounds.after,
            limit=ask.size,
        )
        if ask.cursor is not None:
            at = (int(ask.cursor[0]), ask.cursor[1])
            query = replace(query, before=at) if ask.newest_first else replace(query, after=at)
        ids = sorted(bounds.jobs) if bounds.jobs is not None else None
        search = _Search(parsed, frozenset(ids or ()))
        name = ids[0] if streams and ids is not None and len(ids) == 1 else ""
        if name and (study := await self.logs.study_called(ask.projects, name)) is not None:
            return await self._wait_for_trials(study, query, search)
        jobs = await self.logs.jobs_of(ask.projects, ids, query.since_ns)
        if streams and not isinstance(jobs, ProjectJobs) and len(jobs) == 1:
            return await self._wait_for_entries(jobs[0], query, search)
        entries, last, more = await self._collect(jobs, query, search, ask.size)
        return call.pages.render("entries", entries, last if more else None, ask.fingerprint)

    async def _wait_for_entries(self, job: Job, query: LogQuery, search: "_Search") -> Json:
        """gcloud's stream-logs: answers with the entries that exist, else waits for new ones."""
        loop_until = self.clock.now().timestamp() + gcloud.HOLD
        while True:
            until_ns = gcloud.settled_ns()
            settled = replace(query, until_ns=until_ns)
            entries, last, more = await self._collect([job], settled, search, query.limit)
            if printed := gcloud.printed_already(entries, query):
                query = replace(query, after=printed)
            elif entries:
                return {"entries": entries}
            elif more and last is not None:
                query = replace(query, after=(int(last[0]), last[1]))
                continue
            left = loop_until - self.clock.now().timestamp()
            latest = await self.logs.fresh(job)
            if latest is None or (latest.is_final and self._is_settled(latest)):
                return {}
            if left <= 0:
                return {"entries": [render_event_entry(gcloud.still_running(latest, until_ns), job)]}
            await self.logs.news(latest, query, min(left, 1.0 if latest.is_final else left))
            await gcloud.settle()

    async def _wait_for_trials(self, study: Study, query: LogQuery, search: "_Search") -> Json:
        """The same for a study, whose jobs come and go: answers with entries of any of them."""
        loop_until = self.clock.now().timestamp() + gcloud.HOLD
        while True:
            until_ns = gcloud.settled_ns()
            since_ns = query.after[0] if query.after is not None else query.since_ns
            jobs = await self.logs.jobs_of_study(study, since_ns)
            settled = replace(query, until_ns=until_ns)
            entries, last, more = await self._collect(jobs, settled, search, query.limit)
            if printed := gcloud.printed_already(entries, query):
                query = replace(query, after=printed)
            elif entries:
                return {"entries": entries}
            elif more and last is not None:
                query = replace(query, after=(int(last[0]), last[1]))
                continue
            latest = await self.logs.study_called((study.project,), study.id)
            if latest is None or (latest.is_final and self._is_settled(latest)):
                return {}
            if self.clock.now().timestamp() >= loop_until:
                events = [(job, gcloud.still_running(job, until_ns)) for job in jobs[-1:]]
                return {"entries": [render_event_entry(event, job, study.id) for job, event in events]}
            await gcloud.settle()

    def _is_settled(self, job: Job | Study) -> bool:
        ended = job.status.ended_at or job.created_at
        return (self.clock.now() - ended).total_seconds() > 2 * gcloud.SETTLE_NS / 1e9

    async def _collect(
        self, jobs: Sequence[Job] | ProjectJobs, query: LogQuery, search: "_Search", size: int
    ) -> tuple[list[Json], tuple[str, str] | None, bool]:
        """One page of matching entries, the position of the last entry read, and whether more may follow."""
        entries: list[Json] = []
        last: tuple[str, str] | None = None
        size_so_far = 0
        until = asyncio.get_running_loop().time() + MOST_TIME
        async for batch in _batches(self.logs.merged(jobs, query), size):
            # A thread, so that the server answers others meanwhile.
            matching = await asyncio.to_thread(search.match, batch)
            for (_, row), entry in zip(batch, matching, strict=True):
                if len(entries) == size or size_so_far > MOST_TEXT:
                    return entries, last, True
                last = (str(row.at_ns), row.insert_id)
                if entry is not None:
                    entries.append(entry)
                    size_so_far += len(row.entry.text) if isinstance(row.entry, Line) else 0
            if asyncio.get_running_loop().time() > until:
                return entries, last, True
        return entries, last, False


async def _batches(
    rows: AsyncIterator[tuple[Job, LogRow]], first: int
) -> AsyncIterator[list[tuple[Job, LogRow]]]:
    """The rows in lists that grow: a page that is soon full reads little, one that is not few lists."""
    most = min(first, BATCH)
    batch: list[tuple[Job, LogRow]] = []
    async for row in rows:
        batch.append(row)
        if len(batch) >= most:
            yield batch
            batch, most = [], min(most * 8, BATCH)
    if batch:
        yield batch


@dataclass(frozen=True, slots=True)
class _Search:
    """A filter, and the ids that it names: the job of a trial appears under that of its study."""

    parsed: log_filter.Filter
    ids: frozenset[str]

    def match(self, batch: list[tuple[Job, LogRow]]) -> list[Json | None]:
        """For each row its entry, or None where the filter does not match it."""
        entries = (self._render(job, row) for job, row in batch)
        return [entry if log_filter.matches(self.parsed, entry) else None for entry in entries]

    def _render(self, job: Job, row: LogRow) -> Json:
        is_trial = job.owner is not None and job.owner.id in self.ids and job.id not in self.ids
        called = job.owner.id if is_trial and job.owner is not None else ""
        if isinstance(row.entry, Event):
            return render_event_entry(row.entry, job, called)
        return render_line(row.entry, job, called)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ask:
    projects: tuple[str, ...]
    filter: str
    newest_first: bool
    size: int
    cursor: tuple[str, str] | None
    fingerprint: str

    @classmethod
    def of(cls, call: Call) -> "_Ask":
        body = call.body
        unknown = set(body) - {"resourceNames", "projectIds", "filter", "orderBy", "pageSize", "pageToken"}
        if unknown:
            raise Invalid(tuple(Violation(name, f"Unknown name '{name}'.") for name in sorted(unknown)))
        order = _text(body, "orderBy") or "timestamp asc"
        if order not in ("timestamp asc", "timestamp desc", "timestamp"):
            raise Invalid(
                (Violation("orderBy", f"'{order}' is neither 'timestamp asc' nor 'timestamp desc'."),)
            )
        fingerprint = f"{_text(body, 'filter')}&{order}"
        return cls(
            projects=_projects(body),
            filter=_text(body, "filter"),
            newest_first=order.endswith("desc"),
            size=page.parse_size(body.get("pageSize")),
            cursor=call.pages.decode(_text(body, "pageToken"), fingerprint),
            fingerprint=fingerprint,
        )


def _text(body: Mapping[str, object], name: str) -> str:
    value = body.get(name) or ""
    if not isinstance(value, str):
        raise Invalid((Violation(name, f"{name} must be a string."),))
    return value


def _projects(body: Mapping[str, object]) -> tuple[str, ...]:
    projects = _texts(body, "projectIds")
    for name in _texts(body, "resourceNames"):
        parts = name.split("/")
        if len(parts) < 2 or parts[0] != "projects" or not parts[1]:
            raise Invalid((Violation("resourceNames", f"'{name}' is not of the form projects/PROJECT."),))
        projects.append(parts[1])
    if not projects:
        raise Invalid((Violation("resourceNames", "names no project: give projects/PROJECT."),))
    return tuple(dict.fromkeys(projects))


def _texts(body: Mapping[str, object], name: str) -> list[str]:
    value = body.get(name) or ()
    items = cast("list[object]", value) if isinstance(value, list | tuple) else [None]
    if not all(isinstance(item, str) for item in items):
        raise Invalid((Violation(name, f"{name} must be a list of strings."),))
    return [str(item) for item in items]
