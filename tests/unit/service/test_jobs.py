"""What people may do with jobs, and what they are told when they may not."""

import asyncio
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest

from tests.builders import T0, a_job, a_pool, running, seconds
from tests.contracts.code_store import SOME, Steps, keep, manifest
from trainshed.core.errors import AlreadyExists, Conflict, Invalid, NotFound
from trainshed.core.event import Event, Reason, Waiting
from trainshed.core.jobs.job import Job, JobSpec, JobState, Scheduling
from trainshed.core.ports import Clock
from trainshed.core.query import JobQuery
from trainshed.core.queue.persistent_resource import PersistentResource
from trainshed.service.code import CodeService
from trainshed.service.job_notifier import JobNotifier
from trainshed.service.jobs import JobRequest, JobService, new_id
from trainshed.service.reserved_shares import ReservedShares
from trainshed.testing.code import MemoryCodeStore
from trainshed.testing.store import MemoryStore

HERE = ("shed", "here")
KEPT = PersistentResource(id="kept", project=HERE[0], location=HERE[1], pools=(a_pool(),), created_at=T0)
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
class JobSetup:
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
        """As the loop would: a written state, and the notifier."""
        written = await self.store.write(job, replace(job.status, state=state))
        self.notifier.ring(written)
        return written


def a_request(**scheduling: object) -> JobRequest:
    plan = Scheduling(**scheduling)  # type: ignore[arg-type]
    return JobRequest(
        display_name="mine", spec=JobSpec(pools=(a_pool(),), scheduling=plan), labels={"a": "b"}
    )


async def test_a_submitted_job_is_kept_queued_with_a_reason_and_an_event():
    setup = JobSetup()
    job = await setup.jobs.submit(*HERE, a_request())
    assert job == await setup.store.get(*HERE, job.id)
    assert (job.status.state, job.created_at, job.labels) == (JobState.QUEUED, T0, {"a": "b"})
    assert job.status.waiting is not None
    assert job.status.waiting.reason is Reason.WAITS_FOR_ADMISSION
    assert job.status.waiting.remedy
    assert [e.reason for e in await setup.jobs.events(*HERE, job.id)] == [Reason.SUBMITTED]
    assert setup.told == ["scheduler"]


async def test_a_job_that_will_not_wait_for_ever_is_looked_at_by_the_loop_too():
    setup = JobSetup()
    job = await setup.jobs.submit(*HERE, a_request(max_wait=seconds(5)))
    assert setup.told == ["scheduler", job.id]


async def test_a_job_that_does_not_say_where_has_its_results_below_the_default():
    jobs = replace(JobSetup().jobs, default_output="gs://shelf/out")
    job = await jobs.submit(*HERE, a_request())
    assert job.spec.output == f"gs://shelf/out/{job.id}"
    said = replace(a_request(), spec=replace(a_request().spec, output="gs://mine/run"))
    assert (await jobs.submit(*HERE, said)).spec.output == "gs://mine/run"
    assert (await JobSetup().jobs.submit(*HERE, a_request())).spec.output == ""


async def test_the_same_idempotency_key_twice_is_one_job():
    setup = JobSetup()
    first = await setup.jobs.submit(*HERE, a_request(), "key")
    assert (await setup.jobs.submit(*HERE, a_request(), "key")).id == first.id
    assert (await setup.jobs.submit(*HERE, a_request(), "other")).id != first.id


async def test_a_job_that_was_acknowledged_is_answered_though_the_server_would_refuse_it_now():
    setup = JobSetup()
    shares = ReservedShares(lambda: None)
    shares.put(KEPT)
    request = replace(a_request(), spec=replace(a_request().spec, persistent_resource=KEPT.id))
    jobs = replace(setup.jobs, reserved=shares)
    first = await jobs.submit(*HERE, request, "key")
    shares.drop(KEPT)
    assert (await jobs.submit(*HERE, request, "key")).id == first.id
    with pytest.raises(AlreadyExists):
        await jobs.submit(*HERE, replace(request, display_name="another"), "key")
    with pytest.raises(Invalid):
        await jobs.submit(*HERE, request, "other")


async def test_the_same_key_is_the_same_job_though_its_output_is_a_default_or_that_has_changed_since():
    setup = JobSetup()
    for before, after in (("gs://shelf/out", "gs://shelf/out"), ("gs://shelf/out", "gs://shelf/new")):
        first = await replace(setup.jobs, default_output=before).submit(*HERE, a_request(), after)
        again = await replace(setup.jobs, default_output=after).submit(*HERE, a_request(), after)
        assert again.id == first.id


async def test_an_id_drawn_twice_is_drawn_again(monkeypatch: pytest.MonkeyPatch):
    drawn = iter(["1", "1", "2"])
    monkeypatch.setattr("trainshed.service.jobs.new_id", lambda: next(drawn))
    setup = JobSetup()
    assert [(await setup.jobs.submit(*HERE, a_request())).id for _ in range(2)] == ["1", "2"]


async def test_ids_that_never_come_out_new_are_an_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("trainshed.service.jobs.new_id", lambda: "1")
    setup = JobSetup()
    await setup.jobs.submit(*HERE, a_request())
    with pytest.raises(AlreadyExists):
        await setup.jobs.submit(*HERE, a_request())


def test_an_id_has_nineteen_digits():
    assert new_id().isdigit()
    assert len(new_id()) == 19


async def test_a_waiting_job_is_shown_with_the_schedulers_latest_word():
    setup = JobSetup()
    job = await setup.keep(a_job())
    latest = Waiting(reason=Reason.WAITS_FOR_CAPACITY, message="Needs 4 CPUs.", remedy="Wait.")
    setup.reasons[job.id] = latest
    assert (await setup.jobs.get(*HERE, job.id)).status.waiting == latest
    page = await setup.jobs.find(JobQuery(project="shed"))
    assert page.jobs[0].status.waiting == latest


async def test_a_job_that_waits_no_more_is_not_shown_an_old_word():
    setup = JobSetup()
    job = await setup.keep(running(a_job()))
    setup.reasons[job.id] = Waiting(reason=Reason.WAITS_FOR_CAPACITY, message="old")
    assert (await setup.jobs.get(*HERE, job.id)).status.waiting is None


@pytest.mark.parametrize("state", [JobState.QUEUED, JobState.PENDING, JobState.RUNNING])
async def test_a_cancel_is_written_with_its_time_and_told_to_the_loop(state: JobState):
    setup = JobSetup()
    job = await setup.keep(replace(a_job(), status=replace(a_job().status, state=state)))
    await setup.jobs.cancel(*HERE, job.id)
    status = (await setup.jobs.get(*HERE, job.id)).status
    assert (status.state, status.cancel_asked_at) == (JobState.CANCELLING, T0)
    assert [e.reason for e in await setup.jobs.events(*HERE, job.id)] == [Reason.CANCEL_ASKED]
    assert setup.told == [job.id]


async def test_a_cancel_asked_twice_is_once():
    setup = JobSetup()
    job = await setup.keep(a_job())
    await setup.jobs.cancel(*HERE, job.id)
    version = (await setup.jobs.get(*HERE, job.id)).version
    await setup.jobs.cancel(*HERE, job.id)
    assert (await setup.jobs.get(*HERE, job.id)).version == version


@pytest.mark.parametrize("state", [JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED])
async def test_an_ended_job_cannot_be_cancelled_and_its_state_is_named(state: JobState):
    setup = JobSetup()
    job = await setup.put(await setup.keep(a_job()), state)
    with pytest.raises(Conflict, match=f"is in state {state}"):
        await setup.jobs.cancel(*HERE, job.id)


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
    setup = JobSetup(store=BusyStore(races=3))
    job = await setup.keep(a_job())
    await setup.jobs.cancel(*HERE, job.id)
    status = (await setup.jobs.get(*HERE, job.id)).status
    assert (status.state, status.attempt) == (JobState.CANCELLING, 3)


async def test_a_cancel_that_loses_every_race_says_so():
    setup = JobSetup(store=BusyStore(races=1000))
    job = await setup.keep(a_job())
    with pytest.raises(Conflict, match="try again"):
        await setup.jobs.cancel(*HERE, job.id)


async def test_a_running_job_cannot_be_deleted_and_its_state_is_named():
    setup = JobSetup()
    job = await setup.keep(running(a_job()))
    with pytest.raises(Conflict, match="is in state RUNNING; cancel it first"):
        await setup.jobs.delete(*HERE, job.id)


async def test_a_deleted_job_is_gone_its_operation_stays_and_the_loop_cleans_up():
    setup = JobSetup()
    job = await setup.put(await setup.keep(a_job()), JobState.SUCCEEDED)
    operation = await setup.jobs.delete(*HERE, job.id)
    assert operation.target == job.name
    assert await setup.jobs.operation(operation.name) == operation
    with pytest.raises(NotFound):
        await setup.jobs.get(*HERE, job.id)
    assert setup.told == [job.id]


async def test_a_delete_that_loses_a_race_is_tried_again():
    store = BusyStore(races=0)
    setup = JobSetup(store=store)
    job = await setup.put(await setup.keep(a_job()), JobState.SUCCEEDED)
    store.races = 3
    await setup.jobs.delete(*HERE, job.id)
    with pytest.raises(NotFound):
        await setup.jobs.get(*HERE, job.id)


async def test_who_waits_is_woken_by_the_end_and_not_by_less():
    setup = JobSetup()
    job = await setup.keep(a_job())
    waiter = asyncio.create_task(setup.jobs.wait(*HERE, job.id, PATIENCE))
    await asyncio.sleep(0.01)
    job = await setup.put(job, JobState.RUNNING)
    await asyncio.sleep(0.01)
    assert not waiter.done()
    await setup.put(job, JobState.SUCCEEDED)
    assert (await waiter).status.state is JobState.SUCCEEDED


async def test_who_waits_for_an_ended_job_waits_no_time():
    setup = JobSetup()
    job = await setup.put(await setup.keep(a_job()), JobState.FAILED)
    assert (await setup.jobs.wait(*HERE, job.id, PATIENCE)).status.state is JobState.FAILED


async def test_patience_that_is_over_gives_the_job_as_it_is():
    setup = JobSetup()
    job = await setup.keep(a_job())
    assert (await setup.jobs.wait(*HERE, job.id, NO_PATIENCE)).status.state is JobState.QUEUED


async def test_an_end_between_looking_and_listening_is_not_missed():
    class EndsWhileRead(MemoryStore):
        async def get(self, project: str, location: str, job: str) -> Job:
            found = await super().get(project, location, job)
            if not found.is_final:
                await setup.put(found, JobState.SUCCEEDED)
            return found

    setup = JobSetup(store=EndsWhileRead())
    job = await setup.keep(a_job())
    assert (await setup.jobs.wait(*HERE, job.id, PATIENCE)).is_final


async def test_who_waits_for_a_job_that_is_deleted_is_told_it_is_gone():
    setup = JobSetup()
    job = await setup.keep(a_job())
    waiter = asyncio.create_task(setup.jobs.wait(*HERE, job.id, PATIENCE))
    await asyncio.sleep(0.01)
    ended = await setup.store.write(job, replace(job.status, state=JobState.SUCCEEDED))
    await setup.jobs.delete(*HERE, ended.id)
    with pytest.raises(NotFound):
        await waiter


async def test_events_of_an_unknown_job_are_not_found():
    with pytest.raises(NotFound):
        await JobSetup().jobs.events(*HERE, "7")


def test_a_bell_forgets_who_no_longer_listens():
    notifier = JobNotifier()
    with notifier.listen("1") as first, notifier.listen("1") as second:
        notifier.ring(a_job(id="1"))
        notifier.ring(a_job(id="2"))
        assert (first.is_set(), second.is_set()) == (True, True)
    with notifier.listen("1") as third:
        assert not third.is_set()


async def test_every_event_of_a_job_is_shown_in_order():
    setup = JobSetup()
    events = [Event(at=T0, reason=Reason.RUNNING, message=str(n)) for n in range(3)]
    await setup.store.insert(a_job(), events)
    assert [e.message for e in await setup.jobs.events(*HERE, "1")] == ["0", "1", "2"]


async def test_a_job_may_name_only_a_folder_that_is_kept_and_holds_it_from_then_on():
    clock = Steps()
    folders = MemoryCodeStore(clock)
    setup = JobSetup()
    jobs = replace(setup.jobs, code=CodeService(folders))
    request = a_request()
    named = replace(request, spec=replace(request.spec, code=manifest(SOME).id))
    with pytest.raises(Invalid) as caught:
        await jobs.submit(*HERE, named)
    [violation] = caught.value.violations
    assert violation.field == "job_spec.code"
    assert "Submit the folder again, or upload it first" in violation.description
    assert not await setup.store.active()

    await keep(folders, SOME)
    await folders.tidy(frozenset())  # seen unused, and a day goes by
    clock.wait(hours=25)
    assert (await jobs.submit(*HERE, named)).spec.code == manifest(SOME).id
    assert await folders.tidy(frozenset()) == 0


async def test_a_server_that_keeps_no_folders_refuses_jobs_that_name_one():
    request = a_request()
    with pytest.raises(Invalid, match="not kept"):
        await JobSetup().jobs.submit(*HERE, replace(request, spec=replace(request.spec, code="0" * 64)))
