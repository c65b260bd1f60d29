"""Reports of costs: what is kept for their pages, and what is counted of jobs that run."""

from datetime import datetime, timedelta

import pytest

from tests.builders import T0
from tests.contracts.ledger_store import admitted, over, waiting_job
from trainshed.core.costs import GroupBy
from trainshed.service.costs import FRESH, PAGED, CostQuestion, CostReport, CostService
from trainshed.testing.store import MemoryStore


class SetClock:
    def __init__(self) -> None:
        self.at = T0 + timedelta(days=1)

    def now(self) -> datetime:
        return self.at


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


async def test_a_later_page_is_of_the_same_report_whoever_else_asked_meanwhile(clock: SetClock):
    service = CostService(MemoryStore(), clock)
    first = await service.report(CostQuestion())
    service.keep(first)
    clock.at += FRESH
    assert await service.report(CostQuestion()) is first
    clock.at += timedelta(hours=1)
    second = await service.report(CostQuestion())
    assert second is not first
    assert service.kept(CostQuestion(), first.counted_at) is first
    assert service.kept(CostQuestion(), second.counted_at) is None
    assert service.kept(CostQuestion(by=GroupBy.DAY), first.counted_at) is None


async def test_of_many_reports_those_are_kept_whose_pages_were_asked_for_last(clock: SetClock):
    service = CostService(MemoryStore(), clock)
    reports: list[CostReport] = []
    for _ in range(PAGED + 1):
        clock.at += timedelta(seconds=6)
        reports.append(await service.report(CostQuestion()))
        service.keep(reports[-1])
        service.kept(CostQuestion(), reports[0].counted_at)
    kept = [service.kept(CostQuestion(), report.counted_at) for report in reports]
    assert kept == [reports[0], None, *reports[2:]]


async def test_what_runs_is_counted_to_now_and_once_when_it_is_over(clock: SetClock):
    store = MemoryStore()
    service = CostService(store, clock)
    job = await store.insert(waiting_job(), ())
    job = await store.write(job, admitted(job))
    begun = job.status.admitted_at
    assert begun is not None and job.status.admission is not None
    clock.at = begun + timedelta(hours=2)
    (place,) = job.status.admission.placements
    running = await service.of_job("-", "-", job.id)
    assert running.total.amount.cpu == 2 * int(place.cpus)
    await store.write(job, over(job, 3601))  # a second after its submit it was admitted
    ended = await service.report(CostQuestion(by=GroupBy.JOB))
    assert ended.total.amount.cpu == int(place.cpus)
