"""Names that are used once, labels that can change, and what happens when two do it at the same time."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from tests.builders import T0, a_pool
from tests.unit.service.test_jobs import JobSetup
from trainshed.core.bucket import BucketInfo
from trainshed.core.errors import AlreadyExists, Conflict, Invalid, NotFound
from trainshed.core.event import Reason, Severity
from trainshed.core.jobs.job import Job, JobSpec, JobState
from trainshed.core.ports import Operation
from trainshed.core.query import JobQuery
from trainshed.dialects.ai_platform.origin import TrainingJobRecord
from trainshed.dialects.ai_platform.service import AiPlatformJobService
from trainshed.service.jobs import JobRequest
from trainshed.testing.bucket import MemoryBuckets
from trainshed.testing.store import MemoryStore


def wanted(name: str = "mine", key: str = "", **request: object) -> tuple[JobRequest, TrainingJobRecord]:
    asked = JobRequest(display_name=name, spec=JobSpec(pools=(a_pool(),)), **request)  # type: ignore[arg-type]
    return asked, TrainingJobRecord(job_id=name, training_input={"region": "mars"}, request=key)


def unchecked(job: Job) -> None:
    """Any labels may be replaced."""


@dataclass
class TrainingJobSetup:
    jobs_setup: JobSetup

    @property
    def legacy(self) -> AiPlatformJobService:
        return AiPlatformJobService(self.jobs_setup.jobs)

    async def create(self, name: str = "mine", key: str = "", project: str = "shed", **said: object) -> Job:
        return await self.legacy.create(project, "mars", *wanted(name, key, **said))


@pytest.fixture
def setup() -> TrainingJobSetup:
    return TrainingJobSetup(JobSetup())


async def test_a_job_is_found_by_its_name_in_its_project_only(setup: TrainingJobSetup) -> None:
    job = await setup.create()
    assert job.location == "mars"
    assert await setup.legacy.get("shed", "mine") == job
    with pytest.raises(NotFound, match="no job mine in project other"):
        await setup.legacy.get("other", "mine")


async def test_results_go_to_a_bucket_of_the_project_that_is_there(setup: TrainingJobSetup) -> None:
    buckets = MemoryBuckets(setup.jobs_setup.jobs.clock)
    for name, project in (("mine", "shed"), ("theirs", "other")):
        info = BucketInfo(name=name, project=project, location="US", created_at=T0, updated_at=T0)
        await buckets.create(info)
    legacy = AiPlatformJobService(setup.jobs_setup.jobs, buckets)
    for number, place in enumerate(("", "gs://mine/x", "s3://of-another-store/x", "/srv/x")):
        request, said = wanted(f"good_{number}")
        request = replace(request, spec=replace(request.spec, output=place))
        assert (await legacy.create("shed", "mars", request, said)).spec.output == place
    for place, told in (("gs://none/x", "bucket that is not there"), ("gs://theirs/x", "another project")):
        request, said = wanted("bad")
        request = replace(request, spec=replace(request.spec, output=place))
        with pytest.raises(Invalid) as refused:
            await legacy.create("shed", "mars", request, said)
        [violation] = refused.value.violations
        assert violation.field == "training_input.job_dir" and told in violation.description
        assert str(refused.value).startswith("training_input.job_dir is in ")
    with pytest.raises(NotFound):
        await legacy.get("shed", "bad")


async def test_a_name_is_used_once_even_for_the_same_request(setup: TrainingJobSetup) -> None:
    first = await setup.create()
    with pytest.raises(AlreadyExists, match="A job named mine exists already in project shed"):
        await setup.create()
    await setup.jobs_setup.put(first, JobState.SUCCEEDED)
    with pytest.raises(AlreadyExists, match="is SUCCEEDED"):
        await setup.create(labels={"another": "request"})
    assert (await setup.create(project="other")).id != first.id


async def test_of_many_who_want_a_name_at_once_one_gets_it(setup: TrainingJobSetup) -> None:
    done = await asyncio.gather(*(setup.create() for _ in range(20)), return_exceptions=True)
    assert sum(isinstance(one, Job) for one in done) == 1
    assert sum(isinstance(one, AlreadyExists) for one in done) == 19


async def test_a_request_repeated_with_its_key_is_the_same_job(setup: TrainingJobSetup) -> None:
    first = await setup.create(key="k")
    assert await setup.create(key="k") == first
    with pytest.raises(AlreadyExists):
        await setup.create(key="other")


async def test_what_will_not_be_done_is_a_warning_in_the_jobs_history(setup: TrainingJobSetup) -> None:
    job = await setup.create(remarks=("Nothing is tuned.",))
    submitted, remark = await setup.jobs_setup.store.events(job.id)
    assert submitted.reason is Reason.SUBMITTED
    assert (remark.reason, remark.severity, remark.message) == (
        Reason.LEFT_OUT,
        Severity.WARNING,
        "Nothing is tuned.",
    )


async def test_the_list_has_jobs_of_the_older_api_of_all_regions_and_no_others(
    setup: TrainingJobSetup,
) -> None:
    job = await setup.create()
    await setup.jobs_setup.jobs.submit("shed", "here", wanted("plain")[0])
    assert (await setup.legacy.find(JobQuery(project="shed"))).jobs == (job,)


async def test_cancel_asks_once_and_refuses_what_is_over_by_its_name(setup: TrainingJobSetup) -> None:
    job = await setup.create()
    await setup.legacy.cancel("shed", "mine")
    await setup.legacy.cancel("shed", "mine")
    asked = await setup.legacy.get("shed", "mine")
    assert asked.status.state is JobState.CANCELLING
    await setup.jobs_setup.put(asked, JobState.CANCELLED)
    with pytest.raises(Conflict, match="Job mine is in state CANCELLED"):
        await setup.legacy.cancel("shed", "mine")
    with pytest.raises(NotFound):
        await setup.legacy.cancel("shed", job.id)


class Moving(MemoryStore):
    """A store whose jobs move between somebody's look and their write, so many times."""

    moves = 0

    async def relabel(self, job: Job, labels: Mapping[str, str]) -> Job:
        if self.moves:
            self.moves -= 1
            now = await self.load(job.id)
            assert now is not None
            await self.write(now, replace(now.status, updated_at=T0 + timedelta(seconds=self.moves)))
        return await super().relabel(job, labels)


async def test_labels_change_as_a_whole_although_the_job_moves_meanwhile() -> None:
    store = Moving()
    setup = TrainingJobSetup(JobSetup(store=store))
    await setup.create(labels={"a": "b"})
    store.moves = 3
    changed = await setup.legacy.relabel("shed", "mine", {"c": "d"}, unchecked)
    assert changed.labels == {"c": "d"}
    assert await setup.legacy.get("shed", "mine") == changed
    assert changed.status.updated_at == T0


async def test_labels_of_a_job_that_never_stands_still_are_refused_in_the_end() -> None:
    store = Moving()
    setup = TrainingJobSetup(JobSetup(store=store))
    await setup.create()
    store.moves = 1000
    with pytest.raises(Conflict, match="too fast"):
        await setup.legacy.relabel("shed", "mine", {"c": "d"}, unchecked)


async def test_the_same_labels_again_change_nothing(setup: TrainingJobSetup) -> None:
    job = await setup.create(labels={"a": "b"})
    assert await setup.legacy.relabel("shed", "mine", {"a": "b"}, unchecked) == job


async def test_an_operation_is_found_by_its_id_alone(setup: TrainingJobSetup) -> None:
    job = await setup.create()
    done = await setup.jobs_setup.put(job, JobState.SUCCEEDED)
    operation = await setup.jobs_setup.jobs.delete("shed", "mars", done.id)
    identity = operation.name.rpartition("/")[2]
    assert await setup.legacy.operation("shed", identity) == operation
    assert await setup.legacy.operations("shed", 10) == (operation,)
    with pytest.raises(NotFound):
        await setup.legacy.operation("other", identity)
    assert isinstance(operation, Operation)
    assert (await setup.create()).id != job.id, "a name is free again once its job was deleted"
