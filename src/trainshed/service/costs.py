"""Use case of costs: what jobs used and what that cost, in groups, up to this moment.

`api/costs.py` calls it, and `control/budgets.py`. What is closed comes from the store's sums by day, what
runs is added up to now. It writes nothing. A report is kept for a moment, so that it is added up once; one
with further pages is kept by its time as well, so that its pages belong together.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import islice

from trainshed.core.costs import (
    CostGroup,
    CostRow,
    CostSums,
    GroupBy,
    fold,
    kept_apart,
    ordered,
    shown,
    together,
)
from trainshed.core.day_use import NO_JOBS, DayUse, JobUses, UseField, UseQuery, open_uses
from trainshed.core.jobs.job import Job
from trainshed.core.ports import Clock, Store
from trainshed.core.prices import Prices

FRESH = timedelta(seconds=5)  # a report that is given to those who ask for its first page
KEPT = 4  # reports of first pages
PAGED = 8  # reports of later pages
TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class CostQuestion:
    project: str = "-"
    location: str = "-"
    job: str = ""
    since: date | None = None
    until: date | None = None  # the first day after
    by: GroupBy = GroupBy.JOB
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostReport:
    question: CostQuestion
    counted_at: datetime  # up to when running jobs are counted
    prices: Prices | None
    mistake: str  # why the file of prices as it is now is not used
    sums: CostSums
    groups: list[CostGroup]
    total: CostRow

    def rows(self, first: int, most: int) -> list[CostRow]:
        return list(islice(shown(self.sums, self.groups, first), most))


@dataclass(slots=True)
class CostService:
    store: Store
    clock: Clock
    prices: Callable[[], Prices | None] = lambda: None
    mistake: Callable[[], str] = lambda: ""  # in the file of prices
    _reports: dict[CostQuestion, CostReport] = field(default_factory=dict[CostQuestion, CostReport])
    # Those with further pages, by the time up to which they count; that asked for last stands last.
    _paged: dict[tuple[CostQuestion, datetime], CostReport] = field(
        default_factory=dict[tuple[CostQuestion, datetime], CostReport]
    )

    async def report(self, question: CostQuestion) -> CostReport:
        """The report, or the last one to this question where that is fresh."""
        prices, mistake = self.prices(), self.mistake()
        kept = self._reports.get(question)
        is_same = kept is not None and kept.prices is prices and kept.mistake == mistake
        if kept is not None and is_same and self.clock.now() - kept.counted_at <= FRESH:
            return kept
        report = await self._report(question)
        self._reports.pop(question, None)
        self._reports[question] = report
        for old in list(self._reports)[:-KEPT]:
            del self._reports[old]
        return report

    def keep(self, report: CostReport) -> None:
        """For its further pages."""
        at = report.question, report.counted_at
        self._paged.pop(at, None)
        self._paged[at] = report
        for old in list(self._paged)[:-PAGED]:
            del self._paged[old]

    def kept(self, question: CostQuestion, counted_at: datetime) -> CostReport | None:
        """The report of that moment; None where it is no longer kept."""
        report = self._paged.get((question, counted_at))
        if report is not None:
            self.keep(report)
        return report

    async def of_job(self, project: str, location: str, job: str) -> CostReport:
        """Of one job, from its submit on, by class of time; also of a deleted one."""
        question = CostQuestion(project=project, location=location, job=job, by=GroupBy.CLASS)
        return await self._report(question)

    async def spent(self, since: date, until: date) -> Mapping[str, Decimal]:
        """What each project spent from a day up to another, which does not count."""
        report = await self._report(CostQuestion(since=since, until=until, by=GroupBy.PROJECT))
        return {row.group.name: row.amount.cost for row in report.rows(0, len(report.groups))}

    async def this_month(self) -> tuple[DayUse, ...]:
        """What all jobs had in this month, as far as the ledger has counted it."""
        return await self.store.uses(UseQuery(since=month_of(self.clock.now())[0]))

    async def names(self, rows: list[CostRow]) -> Mapping[str, str]:
        """The display names of the jobs in the rows."""
        return await self.store.display_names([row.group.name for row in rows])

    async def _report(self, question: CostQuestion) -> CostReport:
        prices, now = self.prices(), self.clock.now()
        query = UseQuery(
            project=question.project,
            location=question.location,
            job=question.job,
            since=question.since,
            until=question.until,
            apart=kept_apart(question.by, prices),
            label=question.label,
        )
        of_jobs, uses = await self._uses(query, now)
        sums = await asyncio.to_thread(fold, uses, prices, question.by, of_jobs)
        return CostReport(
            question=question,
            counted_at=now,
            prices=prices,
            mistake=self.mistake(),
            sums=sums,
            groups=await asyncio.to_thread(ordered, sums, question.by),
            total=together(sums),
        )

    async def _uses(self, query: UseQuery, now: datetime) -> tuple[JobUses, list[DayUse]]:
        """What is closed and what is open, seen at the same moment: no time is in both, none in neither."""
        of_jobs, closed, jobs = NO_JOBS, (), await self._active(query)
        for _ in range(TRIES):
            if UseField.JOB in query.apart:
                of_jobs = await self.store.job_uses(query)
            else:
                closed = await self.store.uses(query)
            before, jobs = jobs, await self._active(query)
            if jobs.keys() == before.keys() and all(before[id].version == jobs[id].version for id in jobs):
                break
        running = list(closed)
        for job in jobs.values():
            label = job.labels.get(query.label, "")
            uses = (use for use in open_uses(job, now) if query.takes(use))
            running += (query.reduced(use._replace(label=label, user=job.submitter)) for use in uses)
        return of_jobs, running

    async def _active(self, query: UseQuery) -> dict[str, Job]:
        return {
            job.id: job
            for job in await self.store.active()
            if query.project in ("-", job.project) and query.job in ("", job.id)
        }


def month_of(at: datetime) -> tuple[date, date]:
    """The first day of its month in UTC, and of the next."""
    first = at.astimezone(UTC).date().replace(day=1)
    return first, (first + timedelta(days=31)).replace(day=1)
