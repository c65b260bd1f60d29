"""Reports of costs: what is kept for their pages, and what is counted of jobs that run."""

from datetime import datetime, timedelta

import pytest

from tests.builders import T0
from tests.contracts.ledger_store import admitted, over, waiting_job
from trainshed.core.costs import GroupBy
from trainshed.service.costs import FRESH, PAGED, CostQuestion, CostService
from trainshed.testing.store import MemoryStore


class SetClock:
    def __init__(self) -> None:
        self.at = T0 + timedelta(days=1)

    def now(self) -> datetime:
        return self.at


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


async def test_a_later_page_is_of_the_same_report_however_long_that_took(clock: SetClock):
    service = CostService(MemoryStore(), clock)
    first = await service.report(CostQuestion())
    clock.at += FRESH
    assert await service.report(CostQuestion()) is first
    clock.at += timedelta(seconds=60)
    assert await service.report(CostQuestion(), PAGED) is first
    assert await service.report(CostQuestion()) is not first


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
