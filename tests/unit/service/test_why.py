"""Why and when, over a store and a backend: the world as the scheduler sees it, unchanged by looking."""

import threading
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from tests.builders import T0, a_job, a_node, a_pool, admitted, at, running
from tests.shares import a_share, a_tree
from trainshed.core.errors import NotFound
from trainshed.core.event import Reason
from trainshed.core.jobs.job import Job, JobSpec, JobState
from trainshed.core.queue.admit import in_turn
from trainshed.core.queue.fleet import Fit
from trainshed.core.queue.machine import Catalogue
from trainshed.core.queue.snapshot import is_waiting
from trainshed.service.jobs import JobRequest
from trainshed.service.results_check import ResultsCheck
from trainshed.service.why import WhyService
from trainshed.testing.backend import FakeBackend, FakeMachine
from trainshed.testing.bucket import MemoryBuckets
from trainshed.testing.store import MemoryStore

HERE = ("shed", "here")


class StillClock:
    def now(self) -> datetime:
        return T0


async def a_why(*jobs: Job, cpus: float = 1) -> WhyService:
    store = MemoryStore()
    for job in jobs:
        await store.insert(job, ())
    machine = FakeMachine(nodes=(a_node(cpus=cpus),))
    return WhyService(store, FakeBackend(machine), StillClock(), Fit.SHRINK, Catalogue())


def a_request() -> JobRequest:
    return JobRequest(display_name="new", spec=JobSpec(pools=(a_pool(),)))


def ended(job: Job, length: float) -> Job:
    status = replace(job.status, state=JobState.SUCCEEDED, ended_at=at(length))
    return replace(job, id=f"{job.id}-{length}", created_at=at(-length), status=status)


HOLDER = running(a_job(id="h"))


async def test_a_waiting_job_is_told_who_holds_what_it_needs():
    why = await a_why(HOLDER, a_job())
    job, told = await why.explain(*HERE, "1")
    assert job.id == "1"
    assert told.ground.reason is Reason.WAITS_FOR_CAPACITY
    assert [(c.field, c.job) for c in told.changes] == [("cancel", "h")]
    assert (told.position, told.queue) == (1, 1)


async def test_a_job_whose_results_have_no_place_is_told_so_until_it_is_over():
    waits = a_job(output="gs://none-yet/x")
    why = await a_why(HOLDER, waits, replace(ended(waits, 3), id="over"))
    why.landing = ResultsCheck(MemoryBuckets(StillClock()))
    _, told = await why.explain(*HERE, "1")
    assert Reason.NO_BUCKET in [one.reason for one in told.ground.grounds]
    _, told = await why.explain(*HERE, "over")
    assert not told.ground.grounds


async def test_the_past_of_the_running_ones_tells_when():
    why = await a_why(HOLDER, ended(HOLDER, 70), ended(HOLDER, 90), a_job())
    _, told = await why.explain(*HERE, "1")
    assert told.eta is not None
    assert (told.eta.earliest, told.eta.likely) == (at(45), at(90))


async def test_who_came_lately_is_taken_to_come_again():
    last_week = replace(ended(HOLDER, 70), id="old", created_at=at(-7 * 86400))
    never_ran = replace(a_job(id="c"), status=replace(a_job().status, state=JobState.CANCELLED))
    why = await a_why(HOLDER, ended(HOLDER, 70), last_week, never_ran, a_job())
    _, told = await why.explain(*HERE, "1")
    assert told.eta is not None
    assert "3 jobs were submitted in the last 1 d" in told.eta.basis


async def test_the_past_of_the_same_program_under_another_name_will_do():
    why = await a_why(HOLDER, replace(ended(HOLDER, 70), display_name="earlier"), a_job())
    _, told = await why.explain(*HERE, "1")
    assert told.eta is not None
    assert told.eta.likely == at(70)


async def test_the_past_of_another_project_is_nobodys_business():
    why = await a_why(HOLDER, replace(ended(HOLDER, 70), project="other"), a_job())
    _, told = await why.explain(*HERE, "1")
    assert told.eta is not None
    assert told.eta.likely is None


async def test_a_job_before_it_is_submitted_is_told_the_same_and_not_kept():
    why = await a_why(HOLDER, a_job())
    before = await why.store.active()
    job, told = await why.foresee(*HERE, a_request())
    assert (job.display_name, told.position, told.queue) == ("new", 2, 2)
    assert told.ground.reason is Reason.WAITS_BEHIND_OTHERS
    assert await why.store.active() == before


async def test_where_there_is_room_it_would_start_now():
    _, told = await (await a_why(cpus=4)).foresee(*HERE, a_request())
    assert told.starts_now
    assert told.eta is not None
    assert told.eta.latest == T0


async def test_a_job_that_runs_says_so():
    _, told = await (await a_why(HOLDER)).explain(*HERE, "h")
    assert (told.state, told.ground.reason, told.position) == (JobState.RUNNING, Reason.RUNNING, None)


async def test_an_unknown_job_is_not_found():
    with pytest.raises(NotFound):
        await (await a_why()).explain(*HERE, "7")


async def test_a_long_queue_is_put_in_order_in_a_thread(monkeypatch: pytest.MonkeyPatch):
    threads: list[threading.Thread] = []

    def watched(*args: Any) -> list[Job]:
        threads.append(threading.current_thread())
        return in_turn(*args)

    monkeypatch.setattr("trainshed.service.why.in_turn", watched)
    why = await a_why(HOLDER, a_job())
    why.shares = lambda: a_tree(a_share("shed", 1))
    await why.explain(*HERE, "1")
    assert threads and threading.main_thread() not in threads


def test_only_a_queued_job_without_an_admission_waits():
    assert is_waiting(a_job())
    assert not is_waiting(admitted(a_job()))
