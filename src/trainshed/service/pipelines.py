"""Pipelines and the models they make: jobs seen as what they were asked for, and what is left of them.

A pipeline IS a job: one row, one id, one write. It is submitted, cancelled and deleted as the job it is, and
what is not a pipeline is not found here. Models come from jobs alone (`core/model.py`); people may look at
them and delete them. Nothing here touches the files of a model.
"""

from dataclasses import dataclass, replace

from trainshed.core.errors import AlreadyExists, NotFound
from trainshed.core.job import PIPELINE, Job, Owner, OwnerKind
from trainshed.core.model import Model, ModelPage, ModelQuery, ModelStore
from trainshed.core.ports import Clock, Operation
from trainshed.service.jobs import JobRequest, JobService, new_id


@dataclass(slots=True)
class PipelineService:
    jobs: JobService

    async def submit(self, project: str, location: str, request: JobRequest, key: str = "") -> Job:
        """Keep a new pipeline. The same idempotency key again gives the same pipeline."""
        kept = await self.jobs.submit(project, location, replace(request, owned_as=OwnerKind.PIPELINE), key)
        if kept.extras.get(PIPELINE) != request.extras[PIPELINE]:
            raise AlreadyExists(
                f"The idempotency key {key!r} was used before, for another request "
                f"({kept.id}, {kept.display_name!r}). Send the same request with it, or a new key."
            )
        return kept

    async def get(self, project: str, location: str, pipeline: str) -> Job:
        missing = (
            f"There is no training pipeline projects/{project}/locations/{location}"
            f"/trainingPipelines/{pipeline}."
        )
        try:
            result = await self.jobs.get(project, location, pipeline)
        except NotFound as error:
            raise NotFound(missing) from error
        if result.owner != Owner(OwnerKind.PIPELINE, pipeline):
            raise NotFound(missing)
        return result

    async def cancel(self, project: str, location: str, pipeline: str) -> None:
        found = await self.get(project, location, pipeline)
        await self.jobs.cancel(project, location, found.id)

    async def delete(self, project: str, location: str, pipeline: str) -> Operation:
        """Forget an ended pipeline, which is its job, its logs and its history. Its model stays."""
        found = await self.get(project, location, pipeline)
        return await self.jobs.delete(project, location, found.id)


@dataclass(slots=True)
class ModelService:
    store: ModelStore
    clock: Clock

    async def get(self, project: str, location: str, model: str) -> Model:
        return await self.store.model(project, location, model)

    async def find(self, query: ModelQuery) -> ModelPage:
        return await self.store.models(query)

    async def delete(self, project: str, location: str, model: str) -> Operation:
        """Forget a model by name. The files it names are the bucket's, and stay."""
        found = await self.store.model(project, location, model)
        operation = Operation(
            name=f"projects/{project}/locations/{location}/operations/{new_id()}",
            kind="delete-model",  # not "delete", which is a job's: ids of the two may be the same
            target=found.name,
            created_at=self.clock.now(),
        )
        await self.store.delete_model(found, operation)
        return operation
