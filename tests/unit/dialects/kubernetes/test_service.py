"""A manifest's name is its identity: applied twice it runs once, changed it waits for the end."""

import asyncio
from dataclasses import replace

import pytest

from tests.builders import a_pool
from tests.unit.service.test_jobs import HERE, JobSetup, TickingClock
from trainshed.core.errors import Conflict
from trainshed.core.event import Reason
from trainshed.core.jobs.job import Job, JobSpec, JobState
from trainshed.core.query import JobQuery
from trainshed.dialects.kubernetes.origin import KubernetesManifest, manifest_of
from trainshed.dialects.kubernetes.service import ManifestService
from trainshed.service.jobs import JobRequest


class ManifestSetup:
    def __init__(self, default_output: str = "") -> None:
        self.jobs_setup = JobSetup(clock=TickingClock())
        self.output = default_output

    @property
    def manifests(self) -> ManifestService:
        jobs = self.jobs_setup.jobs
        jobs.default_output = self.output
        return ManifestService(jobs)

    async def apply(
        self, digest: str = "a", name: str = "one", kind: str = "Pod", *, again: bool = False
    ) -> tuple[Job, bool]:
        spec = JobSpec(pools=(replace(a_pool(), args=(digest,)),))
        request = JobRequest(display_name=name, spec=spec, remarks=("It is so.",))
        manifest = KubernetesManifest(kind=kind, name=name, digest=digest)
        return await self.manifests.apply(*HERE, request, manifest, again=again)

    async def end(self, job: Job, state: JobState = JobState.SUCCEEDED) -> None:
        await self.jobs_setup.put(job, state)


async def test_the_same_applied_again_is_the_same_job():
    setup = ManifestSetup()
    job, is_new = await setup.apply()
    assert is_new
    assert (job.kind, manifest_of(job)) == (
        "manifest",
        KubernetesManifest(kind="Pod", name="one", digest="a"),
    )
    assert await setup.apply() == (job, False)
    reasons = [event.reason for event in await setup.jobs_setup.store.events(job.id)]
    assert reasons == [Reason.SUBMITTED, Reason.LEFT_OUT]


async def test_a_changed_one_is_refused_while_it_runs_and_told_what_to_do():
    setup = ManifestSetup()
    job, _ = await setup.apply()
    with pytest.raises(Conflict, match=f"trainshed cancel {job.id}"):
        await setup.apply("b")


async def test_once_it_is_over_a_changed_one_begins_the_next_and_the_same_only_when_asked():
    setup = ManifestSetup()
    first, _ = await setup.apply()
    await setup.end(first, JobState.FAILED)
    same, is_new = await setup.apply()
    assert (same.id, is_new) == (first.id, False)
    second, is_new = await setup.apply("b")
    assert is_new
    assert second.id != first.id
    with pytest.raises(Conflict, match="once it is over"):
        await setup.apply("b", again=True)
    await setup.end(second)
    third, is_new = await setup.apply("b", again=True)
    assert is_new
    assert third.id not in (first.id, second.id)


async def test_kinds_and_names_are_apart():
    setup = ManifestSetup()
    said = (("one", "Pod"), ("one", "Job"), ("two", "Pod"))
    jobs = [(await setup.apply("a", name, kind))[0].id for name, kind in said]
    assert len(set(jobs)) == 3
    found = await setup.manifests.find(JobQuery(project=HERE[0], location=HERE[1]))
    assert {job.id for job in found.jobs} == set(jobs)


@pytest.mark.parametrize("output", ["", "gs://bucket/out"])
async def test_two_who_apply_at_the_same_moment_get_one_job(output: str):
    setup = ManifestSetup(output)
    both = await asyncio.gather(*(setup.apply() for _ in range(8)))
    assert len({job.id for job, _ in both}) == 1
    assert len(await setup.jobs_setup.store.active()) == 1


async def test_of_two_different_ones_at_the_same_moment_one_is_refused():
    setup = ManifestSetup()
    done = await asyncio.gather(setup.apply("a"), setup.apply("b"), return_exceptions=True)
    assert sorted(type(one).__name__ for one in done) == ["Conflict", "tuple"]
    assert len(await setup.jobs_setup.store.active()) == 1


async def test_a_deleted_one_can_be_applied_anew():
    setup = ManifestSetup()
    job, _ = await setup.apply()
    await setup.end(job)
    await setup.jobs_setup.jobs.delete(*HERE, job.id)
    again, is_new = await setup.apply()
    assert is_new
    assert again.id != job.id


async def test_a_job_that_came_by_another_way_is_none_of_its_business():
    setup = ManifestSetup()
    spec = JobSpec(pools=(a_pool(),))
    other = await setup.jobs_setup.jobs.submit(*HERE, JobRequest(display_name="one", spec=spec))
    assert manifest_of(other) is None
    job, is_new = await setup.apply()
    assert is_new
    assert job.id != other.id
