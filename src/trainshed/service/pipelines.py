"""Use cases of training pipelines and of the models they make.

`api/training_pipelines.py` and `api/models.py` call it. A pipeline is a job: one row, one id, one write. It
is submitted, cancelled and deleted as a job, and any other job is NotFound here. Models are made by jobs
alone (`core/model.py`); people may get and delete them. Nothing here touches the files of a model.
"""

from dataclasses import dataclass, replace

from trainshed.core.errors import AlreadyExists, NotFound
from trainshed.core.jobs.job import Job, Owner, OwnerKind
from trainshed.core.model import Model, ModelPage, ModelQuery, ModelStore
from trainshed.core.ports import Clock, Operation
from trainshed.service.jobs import JobRequest, JobService, new_id


@dataclass(slots=True)
class PipelineService:
    jobs: JobService

    async def submit(self, project: str, location: str, request: JobRequest, key: str = "") -> Job:
        """Store a new pipeline. The same idempotency key again returns the same pipeline."""
        job = await self.jobs.submit(project, location, replace(request, owned_as=OwnerKind.PIPELINE), key)
        if job.origin != request.origin:
            raise AlreadyExists(
                f"The idempotency key {key!r} was used before, for another request "
                f"({job.id}, {job.display_name!r}). Send the same request with it, or a new key."
            )
        return job

    async def get(self, project: str, location: str, pipeline: str) -> Job:
        missing = (
            f"There is no training pipeline projects/{project}/locations/{location}"
            f"/trainingPipelines/{pipeline}."
        )
        try:
            job = await self.jobs.get(project, location, pipeline)
        except NotFound as error:
            raise NotFound(missing) from error
        if job.owner != Owner(OwnerKind.PIPELINE, pipeline):
            raise NotFound(missing)
        return job

    async def cancel(self, project: str, location: str, pipeline: str) -> None:
        job = await self.get(project, location, pipeline)
        await self.jobs.cancel(project, location, job.id)

    async def delete(self, project: str, location: str, pipeline: str) -> Operation:
        """Delete an ended pipeline with its logs and its history. Its model stays."""
        job = await self.get(project, location, pipeline)
        return await self.jobs.delete(project, location, job.id)


@dataclass(slots=True)
class ModelService:
    store: ModelStore
    clock: Clock

    async def get(self, project: str, location: str, model: str) -> Model:
        return await self.store.model(project, location, model)

    async def find(self, query: ModelQuery) -> ModelPage:
        return await self.store.models(query)

    async def delete(self, project: str, location: str, model: str) -> Operation:
        """Delete a model. Its files belong to the bucket, and stay."""
        stored = await self.store.model(project, location, model)
        operation = Operation(
            name=f"projects/{project}/locations/{location}/operations/{new_id()}",
            kind="delete-model",  # not "delete", which is for jobs: a model may have the id of a job
            target=stored.name,
            created_at=self.clock.now(),
        )
        await self.store.delete_model(stored, operation)
        return operation
