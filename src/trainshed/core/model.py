"""A Model: the result of a training pipeline, with the folder of its files and the settings for serving it.

The store makes it from its job (`model_of`); nothing else makes one. Its name is reserved when the job is
stored, and released if the job does not succeed. The model appears when the job succeeds, and outlives the
job. Nothing here reads the files.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, cast

from trainshed.core.jobs.job import PIPELINE, Job
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
    artifact: str  # the folder of its files
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    said: Mapping[str, object] = field(default_factory=dict[str, object])  # echoed, not used here
    created_at: datetime | None = None  # when its job succeeded; None before

    @property
    def name(self) -> str:
        return f"projects/{self.project}/locations/{self.location}/models/{self.id}"

    @property
    def pipeline(self) -> str:
        return f"projects/{self.project}/locations/{self.location}/trainingPipelines/{self.job}"


def order(
    display_name: str, identity: str, labels: Mapping[str, str], settings: Mapping[str, object]
) -> dict[str, object]:
    """The entry of a pipeline's record for the model it makes; `model_of` reads it."""
    return {"display_name": display_name, "id": identity, "labels": dict(labels), "said": dict(settings)}


def model_of(job: Job) -> Model | None:
    """The model that a job makes; None where it makes none. Without an id of its own it has the job's."""
    if job.origin is None or job.origin.kind != PIPELINE:
        return None
    asked = job.origin.record.get("model")
    if not isinstance(asked, Mapping):
        return None
    entry = cast("Mapping[str, object]", asked)
    return Model(
        id=str(entry["id"]) or job.id,
        project=job.project,
        location=job.location,
        display_name=str(entry["display_name"]),
        job=job.id,
        artifact=f"{job.spec.output.rstrip('/')}/model",
        labels=cast("Mapping[str, str]", entry["labels"]),
        said=cast("Mapping[str, object]", entry["said"]),
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
    2. the write that makes the job SUCCEEDED makes the model visible; any other end frees the name.
    3. a model outlives its job; deleting one deletes nothing of the other.
    4. a model that is not visible yet is neither found nor deleted.
    """

    async def model(self, project: str, location: str, model: str) -> Model: ...

    async def models(self, query: ModelQuery) -> ModelPage: ...

    async def delete_model(self, model: Model, operation: Operation) -> None:
        """Delete the model and store the operation."""
        ...
