"""A runtime as the API tells it."""

from typing import Any

from trainshed.core.runtime import Runtime, WarmInterpreter
from trainshed.wire.scalars import time_text


def render_runtime(one: Runtime) -> dict[str, Any]:
    answer: dict[str, Any] = {"id": one.id, "name": one.name, "state": one.phase.value, "python": one.python}
    if one.requirements:
        answer["requirements"] = list(one.requirements)
    if one.packages:
        answer["packages"] = [
            {"uri": package.uri, "sha256": package.sha256, "sizeBytes": str(package.size)}
            for package in one.packages
        ]
    if one.below:
        answer["below"] = one.below
    if one.size:
        answer["sizeBytes"] = str(one.size)
    if one.built_at is not None:
        answer["buildTime"] = time_text(one.built_at)
    if one.used_at is not None:
        answer["lastUseTime"] = time_text(one.used_at)
    if one.message:
        answer["message"] = one.message
    if one.lines:
        answer["lines"] = list(one.lines)
    if one.warm is not None:
        answer["warm"] = _warmth(one.warm)
    return answer


def _warmth(kiln: WarmInterpreter) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "state": kiln.state.value,
        "python": kiln.python,
        "imports": list(kiln.imports),
        "uses": kiln.uses,
        "memoryBytes": str(kiln.memory),
    }
    return answer | ({"message": kiln.reason} if kiln.reason else {})
