"""Renders a runtime and its warm interpreter as JSON. For `api/runtimes.py`."""

from typing import Any

from trainshed.core.supplies.runtime import Runtime, WarmInterpreter
from trainshed.wire.scalars import time_text


def render_runtime(runtime: Runtime) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "id": runtime.id,
        "name": runtime.name,
        "state": runtime.phase.value,
        "python": runtime.python,
    }
    if runtime.requirements:
        answer["requirements"] = list(runtime.requirements)
    if runtime.packages:
        answer["packages"] = [
            {"uri": package.uri, "sha256": package.sha256, "sizeBytes": str(package.size)}
            for package in runtime.packages
        ]
    if runtime.below:
        answer["below"] = runtime.below
    if runtime.size:
        answer["sizeBytes"] = str(runtime.size)
    if runtime.built_at is not None:
        answer["buildTime"] = time_text(runtime.built_at)
    if runtime.used_at is not None:
        answer["lastUseTime"] = time_text(runtime.used_at)
    if runtime.message:
        answer["message"] = runtime.message
    if runtime.lines:
        answer["lines"] = list(runtime.lines)
    if runtime.jobs:
        answer["jobs"] = list(runtime.jobs)
    if runtime.warm is not None:
        answer["warm"] = _render_warm(runtime.warm)
    return answer


def _render_warm(interpreter: WarmInterpreter) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "state": interpreter.state.value,
        "python": interpreter.python,
        "imports": list(interpreter.imports),
        "uses": interpreter.uses,
        "memoryBytes": str(interpreter.memory),
    }
    return answer | ({"message": interpreter.reason} if interpreter.reason else {})
