"""A long-running operation as google.longrunning.Operation. Ours are done as soon as they exist."""

from typing import Any

from trainshed.core.ports import Operation
from trainshed.wire.scalars import time_text

_METADATA = "type.googleapis.com/google.cloud.aiplatform.v1.DeleteOperationMetadata"
_LEGACY_METADATA = "type.googleapis.com/google.cloud.ml.v1.OperationMetadata"
_EMPTY = "type.googleapis.com/google.protobuf.Empty"


def render_legacy_operation(operation: Operation) -> dict[str, Any]:
    """For the older API, whose names have no location."""
    at = time_text(operation.created_at)
    _, project, *_, identity = operation.name.split("/")
    return {
        "name": f"projects/{project}/operations/{identity}",
        "metadata": {"@type": _LEGACY_METADATA, "createTime": at, "startTime": at, "endTime": at},
        "done": True,
        "response": {"@type": _EMPTY},
    }


def render_operation(operation: Operation) -> dict[str, Any]:
    """Both types are Google's own, since clients refuse unknown types."""
    at = time_text(operation.created_at)
    return {
        "name": operation.name,
        "metadata": {"@type": _METADATA, "genericMetadata": {"createTime": at, "updateTime": at}},
        "done": True,
        "response": {"@type": _EMPTY},
    }
