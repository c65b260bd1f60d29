"""A Model: what a pipeline has trained, by name: where its files lie and what was said about serving it.

It is made by its job and by nothing else. Its name is taken when the job is kept and free again if the job
does not succeed; from the success on it is there, and outlives the job. All of it follows from the job
(`model_of`), so a store needs no second order to make one. Nothing here reads the files.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, cast

from trainshed.core.job import PIPELINE, Job
from trainshed.core.ports import Operation
from trainshed.core.query import Condition

VERSION = "1"  # a model has one version: training it again makes another model


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    id: str
    project: str
    location: str
    display_name: str
    job: str
    artifact: str  # the folder its files lie in
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    said: Mapping[str, object] = field(default_factory=dict[str, object])  # echoed, unused here
    created_at: datetime | None = None  # when its job succeeded; None before

    @property
    def name(self) -> str:
        return f"projects/{self.project}/locations/{self.location}/models/{self.id}"

    @property
    def pipeline(self) -> str:
        return f"projects/{self.project}/locations/{self.location}/trainingPipelines/{self.job}"


def order(
    display_name: str, identity: str, labels: Mapping[str, str], said: Mapping[str, object]
) -> dict[str, object]:
    """What a job's extras say of the model it is to make; `model_of` reads it."""
    return {"display_name": display_name, "id": identity, "labels": dict(labels), "said": dict(said)}


def model_of(job: Job) -> Model | None:
    """The model a job makes, or None where it makes none. Without an id of its own it takes the job's."""
    pipeline = job.extras.get(PIPELINE)
    if not isinstance(pipeline, Mapping):
        return None
    asked = cast("Mapping[str, object]", pipeline).get("model")
    if not isinstance(asked, Mapping):
        return None
    told = cast("Mapping[str, object]", asked)
    return Model(
        id=str(told["id"]) or job.id,
        project=job.project,
        location=job.location,
        display_name=str(told["display_name"]),
        job=job.id,
        artifact=f"{job.spec.output.rstrip('/')}/model",
        labels=cast("Mapping[str, str]", told["labels"]),
        said=cast("Mapping[str, object]", told["said"]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelQuery:
    """Models of a project (and location, unless "-"), newest first."""

    project: str
    location: str = "-"
    where: Condition | None = None
    limit: int = 100
    cursor: tuple[str, str] | None = None  # from the page before


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPage:
    models: tuple[Model, ...]
    next_cursor: tuple[str, str] | None = None


class ModelStore(Protocol):
    """Remembers models; the same store as the jobs', so that both change together.

    1. the insert of a job that makes a model takes the model's name, or neither is kept: AlreadyExists.
    2. the write that makes the job SUCCEEDED makes the model be there; any other end frees the name.
    3. a model outlives its job; deleting one deletes nothing of the other.
    4. what is not there yet is neither found nor deleted.
    """

    async def model(self, project: str, location: str, model: str) -> Model: ...

    async def models(self, query: ModelQuery) -> ModelPage: ...

    async def delete_model(self, model: Model, operation: Operation) -> None:
        """Forget it, and keep the operation."""
        ...
