"""Models: parses the `modelToUpload` of a pipeline, and renders a model. For `api/models.py`.

Trainshed does not serve models. Fields about serving are checked for their type, stored and
returned; secrets among the variables of a serving container are masked before: nothing here uses them.
Fields that only the server sets are accepted and ignored. This module never reads the files of a model.
"""

import re
from collections.abc import Mapping
from typing import Any, cast

from trainshed.core.errors import Violation
from trainshed.core.jobs.secret import masked
from trainshed.core.model import VERSION, Model
from trainshed.core.query import AllOf, AnyOf, Compare, Condition, NotOf, QueryField
from trainshed.wire import job_filter
from trainshed.wire.base import (
    Message,
    duration,
    flag,
    free,
    int32,
    int64,
    output_only,
    part,
    parts,
    text,
    text_map,
    texts,
)
from trainshed.wire.faults import invalid
from trainshed.wire.job_schema import EncryptionSpec, EnvVar
from trainshed.wire.scalars import time_text

ALIASES = (VERSION, "default")
_ID = re.compile(r"[a-z_][a-z0-9_-]{0,62}")
_FIELDS = (QueryField.DISPLAY_NAME, QueryField.CREATED, QueryField.LABEL, QueryField.ID)


class Port(Message):
    container_port: int = int32()


class ModelContainerSpec(Message):
    image_uri: str = text()
    command: tuple[str, ...] = texts()
    args: tuple[str, ...] = texts()
    env: tuple[EnvVar, ...] = parts(EnvVar)
    ports: tuple[Port, ...] = parts(Port)
    predict_route: str = text()
    health_route: str = text()
    invoke_route_prefix: str = text()
    grpc_ports: tuple[Port, ...] = parts(Port)
    deployment_timeout: object = duration()
    shared_memory_size_mb: int = int64()
    startup_probe: object = free()
    health_probe: object = free()
    liveness_probe: object = free()


class PredictSchemata(Message):
    instance_schema_uri: str = text()
    parameters_schema_uri: str = text()
    prediction_schema_uri: str = text()


class ModelExtras(Message):
    """Fields that are only returned in answers."""

    description: str = text()
    version_aliases: tuple[str, ...] = texts()
    version_description: str = text()
    container_spec: ModelContainerSpec | None = part(ModelContainerSpec)
    predict_schemata: PredictSchemata | None = part(PredictSchemata)
    metadata_schema_uri: str = text()
    metadata: object = free()
    explanation_spec: object = free()
    encryption_spec: EncryptionSpec | None = part(EncryptionSpec)


class ModelToUpload(ModelExtras):
    display_name: str = text()
    labels: Mapping[str, str] = text_map()
    name: object = output_only()
    version_id: object = output_only()
    version_create_time: object = output_only()
    version_update_time: object = output_only()
    artifact_uri: object = output_only()
    training_pipeline: object = output_only()
    create_time: object = output_only()
    update_time: object = output_only()
    etag: object = output_only()
    satisfies_pzs: object = output_only()
    satisfies_pzi: bool = flag()


def id_fault(identity: str) -> str:
    """The fault of a model's id; empty where it is valid."""
    if _ID.fullmatch(identity):
        return ""
    return "must be at most 63 of a-z, 0-9, _ and -, and begin with a letter or _."


def plain_id(path: str) -> str | None:
    """The id in the last part of a path, `ID` or `ID@VERSION`; None for a version that does not exist."""
    identity, at, version = path.partition("@")
    return None if at and version not in ALIASES else identity


def parse_model_filter(text: str) -> Condition | None:
    """As for jobs, but a model has no state and only one time."""
    where = job_filter.parse_filter(text)
    if where is not None:
        _check(where)
    return where


def _check(condition: Condition) -> None:
    match condition:
        case Compare():
            if condition.field not in _FIELDS:
                known = "display_name, create_time, labels.KEY and name can be asked about."
                raise invalid((Violation("filter", f"Models have no {condition.field.value}; {known}"),))
        case NotOf(part):
            _check(part)
        case AllOf(parts) | AnyOf(parts):
            for item in parts:
                _check(item)


def render_model(model: Model) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "name": model.name,
        "versionId": VERSION,
        "displayName": model.display_name,
        "artifactUri": model.artifact,
        "trainingPipeline": model.pipeline,
        **masked(model.said),
        "versionAliases": version_aliases(model),
    }
    if model.created_at is not None:
        at = time_text(model.created_at)
        answer |= {"createTime": at, "updateTime": at, "versionCreateTime": at, "versionUpdateTime": at}
    if model.labels:
        answer["labels"] = dict(model.labels)
    return answer


def version_aliases(model: Model) -> list[str]:
    """A model has one version, so it always has the alias "default"."""
    aliases = cast("list[str]", model.said.get("versionAliases", []))
    return ["default", *(alias for alias in aliases if alias != "default")]
