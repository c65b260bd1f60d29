"""The answer of customJobs/ID:results. The names are ours."""

from typing import Any

from trainshed.core.outputs import CommittedOutputs, CommittedUnit
from trainshed.wire.scalars import time_text


def render_results(output: str, committed: CommittedOutputs) -> dict[str, Any]:
    """Without an output: empty, as Google's API leaves out what is not there."""
    answer: dict[str, Any] = {"outputUriPrefix": output} if output else {}
    if committed.model is not None:
        answer["model"] = _unit(committed.model)
    if committed.checkpoints:
        answer["checkpoints"] = [_unit(unit) for unit in committed.checkpoints]
    return answer


def _unit(unit: CommittedUnit) -> dict[str, str]:
    return {"uri": unit.uri, "storedTime": time_text(unit.stored_at)}
