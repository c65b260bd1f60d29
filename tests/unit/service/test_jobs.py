"""What people may do with jobs, and what they are told when they may not."""

import asyncio
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest

from tests.builders import T0, a_job, a_pool, running, seconds
from tests.contracts.code_store import SOME, Steps, keep, manifest
from trainshed.core.errors import AlreadyExists, Conflict, Invalid, NotFound
from trainshed.core.event import Event, Reason, Waiting
from trainshed.core.job import Job, JobSpec, JobState, Scheduling
from trainshed.core.ports import Clock
from trainshed.core.query import JobQuery
from trainshed.service.code import CodeService
from trainshed.service.job_notifier import JobNotifier
from trainshed.service.jobs import JobRequest, JobService, new_id
from trainshed.testing.code import MemoryCodeStore
from trainshed.testing.store import MemoryStore

HERE = ("shed", "here")
NO_PATIENCE, PATIENCE = timedelta(0), timedelta(seconds=60)


class StillClock:
    def now(self) -> datetime:
        return T0


class TickingClock:
    """A second later at each look."""

    def __init__(self) -> None:
        self._seconds = 0

    def now(self) -> datetime:
        self._seconds += 1
        return T0 + seconds(self._seconds)


@dataclass
class Desk:
    """The service over a store in memory, and whom it has told."""

    store: MemoryStore = field(default_factory=MemoryStore)
    notifier: JobNotifier = field(default_factory=JobNotifier)
    told: list[str] = field(default_factory=list[str])
    reasons: dict[str, Waiting] = field(default_factory=dict[str, Waiting])
    clock: Clock = field(default_factory=StillClock)

    @property
    def jobs(self) -> JobService:
        return JobService(
            store=self.store,
            clock=self.clock,
            notifier=self.notifier,
            hint_job=self.told.append,
            hint_scheduler=lambda: self.told.append("scheduler"),
            waiting_reason=self.reasons.get,
        )

    async def keep(self, job: Job) -> Job:
        return await self.store.insert(job, ())

    async def put(self, job: Job, state: JobState) -> Job:
        """As the loop would: a written state, and the bell."""
        written = await self.store.write(job, replace(job.status, state=state))
        self.notifier.ring(written)
        return written


def a_request(**scheduling: object) -> JobRequest:
    plan = Scheduling(**scheduling)  # type: ignore[arg-type]
    return JobRequest(
        display_name="mine", spec=JobSpec(pools=(a_pool(),), scheduling=plan), labels={"a": "b"}
    )


async def test_a_submitted_job_is_kept_queued_with_a_reason_and_an_event():
    desk = Desk()
    job = await desk.jobs.submit(*HERE, a_request())
    assert job == await desk.store.get(*HERE, job.id)
    assert (job.status.state, job.created_at, job.labels) == (JobState.QUEUED, T0, {"a": "b"})
    assert job.status.waiting is not None
    assert job.status.waiting.reason is Reason.WAITS_FOR_ADMISSION
    assert job.status.waiting.remedy
    assert [e.reason for e in await desk.jobs.events(*HERE, job.id)] == [Reason.SUBMITTED]
    assert desk.told == ["scheduler"]


async def test_a_job_that_will_not_wait_for_ever_is_looked_at_by_the_loop_too():
    desk = Desk()
    job = await desk.jobs.submit(*HERE, a_request(max_wait=seconds(5)))
    assert desk.told == ["scheduler", job.id]


async def test_a_job_that_does_not_say_where_has_its_results_below_the_default():
    jobs = replace(Desk().jobs, default_output="gs://shelf/out")
    job = await jobs.submit(*HERE, a_request())
    assert job.spec.output == f"gs://shelf/out/{job.id}"
    said = replace(a_request(), spec=replace(a_request().spec, output="gs://mine/run"))
    assert (await jobs.submit(*HERE, said)).spec.output == "gs://mine/run"
    assert (await Desk().jobs.submit(*HERE, a_request())).spec.output == ""


async def test_the_same_idempotency_key_twice_is_one_job():
    desk = Desk()
    first = await desk.jobs.submit(*HERE, a_request(), "key")
    assert (await desk.jobs.submit(*HERE, a_request(), "key")).id == first.id
    assert (await desk.jobs.submit(*HERE, a_request(), "other")).id != first.id


async def test_an_id_drawn_twice_is_drawn_again(monkeypatch: pytest.MonkeyPatch):
    drawn = iter(["1", "1", "2"])
    monkeypatch.setattr("trainshed.service.jobs.new_id", lambda: next(drawn))
    desk = Desk()
    assert [(await desk.jobs.submit(*HERE, a_request())).id for _ in range(2)] == ["1", "2"]


async def test_ids_that_never_come_out_new_are_an_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("trainshed.service.jobs.new_id", lambda: "1")
    desk = Desk()
    await desk.jobs.submit(*HERE, a_request())
    with pytest.raises(AlreadyExists):
        await desk.jobs.submit(*HERE, a_request())


def test_an_id_has_nineteen_digits():
    assert new_id().isdigit()
    assert len(new_id()) == 19


async def test_a_waiting_job_is_shown_with_the_schedulers_latest_word():
    desk = Desk()
    job = await desk.keep(a_job())
    latest = Waiting(reason=Reason.WAITS_FOR_CAPACITY, message="Needs 4 CPUs.", remedy="Wait.")
    desk.reasons[job.id] = latest
    assert (await desk.jobs.get(*HERE, job.id)).status.waiting == latest
    page = await desk.jobs.find(JobQuery(project="shed"))
    assert page.jobs[0].status.waiting == latest


async def test_a_job_that_waits_no_more_is_not_shown_an_old_word():
    desk = Desk()
    job = await desk.keep(running(a_job()))
    desk.reasons[job.id] = Waiting(reason=Reason.WAITS_FOR_CAPACITY, message="old")
    assert (await desk.jobs.get(*HERE, job.id)).status.waiting is None


@pytest.mark.parametrize("state", [JobState.QUEUED, JobState.PENDING, JobState.RUNNING])
async def test_a_cancel_is_written_with_its_time_and_told_to_the_loop(state: JobState):
    desk = Desk()
    job = await desk.keep(replace(a_job(), status=replace(a_job().status, state=state)))
    await desk.jobs.cancel(*HERE, job.id)
    status = (await desk.jobs.get(*HERE, job.id)).status
    assert (status.state, status.cancel_asked_at) == (JobState.CANCELLING, T0)
    assert [e.reason for e in await desk.jobs.events(*HERE, job.id)] == [Reason.CANCEL_ASKED]
    assert desk.told == [job.id]


async def test_a_cancel_asked_twice_is_once():
    desk = Desk()
    job = await desk.keep(a_job())
    await desk.jobs.cancel(*HERE, job.id)
    version = (await desk.jobs.get(*HERE, job.id)).version
    await desk.jobs.cancel(*HERE, job.id)
    assert (await desk.jobs.get(*HERE, job.id)).version == version


@pytest.mark.parametrize("state", [JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED])
async def test_an_ended_job_cannot_be_cancelled_and_its_state_is_named(state: JobState):
    desk = Desk()
    job = await desk.put(await desk.keep(a_job()), state)
    with pytest.raises(Conflict, match=f"is in state {state}"):
        await desk.jobs.cancel(*HERE, job.id)


class BusyStore(MemoryStore):
    """Somebody else is always faster, so many times."""

    def __init__(self, races: int) -> None:
        super().__init__()
        self.races = races

    async def get(self, project: str, location: str, job: str) -> Job:
        found = await super().get(project, location, job)
        if self.races > 0:
            self.races -= 1
            await self.write(found, replace(found.status, attempt=found.status.attempt + 1))
        return found


async def test_a_cancel_that_loses_a_race_is_tried_again():
    desk = Desk(store=BusyStore(races=3))
    job = await desk.keep(a_job())
    await desk.jobs.cancel(*HERE, job.id)
    status = (await desk.jobs.get(*HERE, job.id)).status
    assert (status.state, status.attempt) == (JobState.CANCELLING, 3)


async def test_a_cancel_that_loses_every_race_says_so():
    desk = Desk(store=BusyStore(races=1000))
    job = await desk.keep(a_job())
    with pytest.raises(Conflict, match="try again"):
        await desk.jobs.cancel(*HERE, job.id)


async def test_a_running_job_cannot_be_deleted_and_its_state_is_named():
    desk = Desk()
    job = await desk.keep(running(a_job()))
    with pytest.raises(Conflict, match="is in state RUNNING; cancel it first"):
        await desk.jobs.delete(*HERE, job.id)


async def test_a_deleted_job_is_gone_its_operation_stays_and_the_loop_cleans_up():
    desk = Desk()
    job = await desk.put(await desk.keep(a_job()), JobState.SUCCEEDED)
    operation = await desk.jobs.delete(*HERE, job.id)
    assert operation.target == job.name
    assert await desk.jobs.operation(operation.name) == operation
    with pytest.raises(NotFound):
        await desk.jobs.get(*HERE, job.id)
    assert desk.told == [job.id]


async def test_a_delete_that_loses_a_race_is_tried_again():
    store = BusyStore(races=0)
    desk = Desk(store=store)
    job = await desk.put(await desk.keep(a_job()), JobState.SUCCEEDED)
    store.races = 3
    await desk.jobs.delete(*HERE, job.id)
    with pytest.raises(NotFound):
        await desk.jobs.get(*HERE, job.id)


async def test_who_waits_is_woken_by_the_end_and_not_by_less():
    desk = Desk()
    job = await desk.keep(a_job())
    waiter = asyncio.create_task(desk.jobs.wait(*HERE, job.id, PATIENCE))
    await asyncio.sleep(0.01)
    job = await desk.put(job, JobState.RUNNING)
    await asyncio.sleep(0.01)
    assert not waiter.done()
    await desk.put(job, JobState.SUCCEEDED)
    assert (await waiter).status.state is JobState.SUCCEEDED


async def test_who_waits_for_an_ended_job_waits_no_time():
    desk = Desk()
    job = await desk.put(await desk.keep(a_job()), JobState.FAILED)
    assert (await desk.jobs.wait(*HERE, job.id, PATIENCE)).status.state is JobState.FAILED


async def test_patience_that_is_over_gives_the_job_as_it_is():
    desk = Desk()
    job = await desk.keep(a_job())
    assert (await desk.jobs.wait(*HERE, job.id, NO_PATIENCE)).status.state is JobState.QUEUED


async def test_an_end_between_looking_and_listening_is_not_missed():
    class EndsWhileRead(MemoryStore):
        async def get(self, project: str, location: str, job: str) -> Job:
            found = await super().get(project, location, job)
            if not found.is_final:
                await desk.put(found, JobState.SUCCEEDED)
            return found

    desk = Desk(store=EndsWhileRead())
    job = await desk.keep(a_job())
    assert (await desk.jobs.wait(*HERE, job.id, PATIENCE)).is_final


async def test_who_waits_for_a_job_that_is_deleted_is_told_it_is_gone():
    desk = Desk()
    job = await desk.keep(a_job())
    waiter = asyncio.create_task(desk.jobs.wait(*HERE, job.id, PATIENCE))
    await asyncio.sleep(0.01)
    ended = await desk.store.write(job, replace(job.status, state=JobState.SUCCEEDED))
    await desk.jobs.delete(*HERE, ended.id)
    with pytest.raises(NotFound):
        await waiter


async def test_events_of_an_unknown_job_are_not_found():
    with pytest.raises(NotFound):
        await Desk().jobs.events(*HERE, "7")


def test_a_bell_forgets_who_no_longer_listens():
    notifier = JobNotifier()
    with notifier.listen("1") as first, notifier.listen("1") as second:
        notifier.ring(a_job(id="1"))
        notifier.ring(a_job(id="2"))
        assert (first.is_set(), second.is_set()) == (True, True)
    with notifier.listen("1") as third:
        assert not third.is_set()


async def test_every_event_of_a_job_is_shown_in_order():
    desk = Desk()
    events = [Event(at=T0, reason=Reason.RUNNING, message=str(n)) for n in range(3)]
    await desk.store.insert(a_job(), events)
    assert [e.message for e in await desk.jobs.events(*HERE, "1")] == ["0", "1", "2"]


async def test_a_job_may_name_only_a_folder_that_is_kept_and_holds_it_from_then_on():
    clock = Steps()
    folders = MemoryCodeStore(clock)
    desk = Desk()
    jobs = replace(desk.jobs, code=CodeService(folders))
    request = a_request()
    named = replace(request, spec=replace(request.spec, code=manifest(SOME).id))
    with pytest.raises(Invalid) as caught:
        await jobs.submit(*HERE, named)
    [violation] = caught.value.violations
    assert violation.field == "job_spec.code"
    assert "Submit the folder again, or upload it first" in violation.description
    assert not await desk.store.active()

    await keep(folders, SOME)
    await folders.tidy(frozenset())  # seen unused, and a day goes by
    clock.wait(hours=25)
    assert (await jobs.submit(*HERE, named)).spec.code == manifest(SOME).id
    assert await folders.tidy(frozenset()) == 0


async def test_a_server_that_keeps_no_folders_refuses_jobs_that_name_one():
    request = a_request()
    with pytest.raises(Invalid, match="not kept"):
        await Desk().jobs.submit(*HERE, replace(request, spec=replace(request.spec, code="0" * 64)))
