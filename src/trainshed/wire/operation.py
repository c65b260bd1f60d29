"""A long-running operation as google.longrunning.Operation. Ours are done as soon as they exist."""

from typing import Any

from trainshed.core.ports import Operation
from trainshed.wire.scalars import time_text

_METADATA = "type.googleapis.com/google.cloud.aiplatform.v1.DeleteOperationMetadata"
_EMPTY = "type.googleapis.com/google.protobuf.Empty"


def render_operation(operation: Operation) -> dict[str, Any]:
    """Both types are Google's own, since clients refuse unknown types."""
    at = time_text(operation.created_at)
    return {
        "name": operation.name,
        "metadata": {"@type": _METADATA, "genericMetadata": {"createTime": at, "updateTime": at}},
        "done": True,
        "response": {"@type": _EMPTY},
    }
