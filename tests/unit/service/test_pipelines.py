"""Pipelines over a store in memory: jobs that were asked for so, and the models that are left of them."""

from dataclasses import replace

import pytest

from tests.contracts.model_store import a_pipeline
from tests.unit.service.test_jobs import JobSetup, StillClock
from trainshed.core.errors import AlreadyExists, Conflict, NotFound
from trainshed.core.jobs.job import PIPELINE, Job, JobState, Owner, OwnerKind
from trainshed.core.model import ModelQuery
from trainshed.core.query import JobQuery
from trainshed.service.jobs import JobRequest
from trainshed.service.pipelines import ModelService, PipelineService

HERE = ("p", "us-central1")


def asked(identity: str = "", display_name: str = "digits") -> JobRequest:
    job = a_pipeline(1, identity, display_name)
    return JobRequest(display_name="mine", spec=job.spec, origin=job.origin)


async def trained(setup: JobSetup) -> Job:
    job = await PipelineService(setup.jobs).submit(*HERE, asked())
    return await setup.put(job, JobState.SUCCEEDED)


async def test_a_pipeline_is_found_as_itself_and_as_its_job() -> None:
    setup = JobSetup()
    job = await PipelineService(setup.jobs).submit(*HERE, asked())
    assert (await PipelineService(setup.jobs).get(*HERE, job.id)).id == job.id
    assert (await setup.jobs.get(*HERE, job.id)).kind == PIPELINE
    assert job.owner == Owner(OwnerKind.PIPELINE, job.id)
    assert (await setup.jobs.find(JobQuery(project=job.project, owner=job.owner))).jobs[0].id == job.id
    assert setup.told == ["scheduler"]


async def test_what_is_no_pipeline_is_neither_found_cancelled_nor_deleted() -> None:
    setup = JobSetup()
    job = await setup.jobs.submit(*HERE, replace(asked(), origin=None))
    pipelines = PipelineService(setup.jobs)
    for act in (pipelines.get, pipelines.cancel, pipelines.delete):
        for identity in (job.id, "none"):
            with pytest.raises(NotFound, match=f"trainingPipelines/{identity}"):
                await act(*HERE, identity)
    assert (await setup.jobs.get(*HERE, job.id)).status.state is JobState.QUEUED


async def test_a_key_used_for_another_request_is_refused() -> None:
    setup = JobSetup()
    pipelines = PipelineService(setup.jobs)
    first = await pipelines.submit(*HERE, asked(), "key")
    assert await pipelines.submit(*HERE, asked(), "key") == first
    with pytest.raises(AlreadyExists, match="key"):
        await pipelines.submit(*HERE, asked(display_name="another"), "key")
    await setup.jobs.submit(*HERE, replace(asked(), origin=None), "plain")
    with pytest.raises(AlreadyExists, match="plain"):
        await pipelines.submit(*HERE, asked(), "plain")


async def test_cancelling_and_deleting_a_pipeline_is_that_of_its_job() -> None:
    setup = JobSetup()
    pipelines = PipelineService(setup.jobs)
    job = await pipelines.submit(*HERE, asked())
    with pytest.raises(Conflict):
        await pipelines.delete(*HERE, job.id)
    await pipelines.cancel(*HERE, job.id)
    asked_for = await setup.jobs.get(*HERE, job.id)
    assert asked_for.status.state is JobState.CANCELLING
    await setup.put(asked_for, JobState.CANCELLED)
    operation = await pipelines.delete(*HERE, job.id)
    assert await setup.jobs.operation(operation.name) == operation
    with pytest.raises(NotFound):
        await setup.jobs.get(*HERE, job.id)


async def test_deleting_a_model_is_not_taken_for_deleting_its_job() -> None:
    setup = JobSetup()
    job = await trained(setup)
    models = ModelService(setup.store, StillClock())
    assert (await models.find(ModelQuery(project="p"))).models == (await models.get(*HERE, job.id),)
    operation = await models.delete(*HERE, job.id)
    assert await setup.jobs.operation(operation.name) == operation
    assert await setup.store.deleted(frozenset({job.id})) == frozenset(), "or its logs would be swept away"
    assert (await PipelineService(setup.jobs).get(*HERE, job.id)).is_final
    with pytest.raises(NotFound):
        await models.delete(*HERE, job.id)
