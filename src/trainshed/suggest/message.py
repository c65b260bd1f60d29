"""Requests and points as JSON, between the server and the process that computes. No numpy here.

`process.py` writes requests and reads points, `worker.py` the other way round. A message is one line. Numbers
that are not finite travel as the words Python's json uses for them.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from trainshed.core.tuning.search_space import Parameter, ParameterKind, Scale, SearchSpace, TrialPoint
from trainshed.core.tuning.suggestion_port import (
    Algorithm,
    NoiseLevel,
    Objective,
    SuggestionRequest,
    TrialResult,
)


def request_line(request: SuggestionRequest) -> bytes:
    return _line(
        {
            "space": [_parameter(parameter) for parameter in request.space.parameters],
            "objectives": [[objective.metric, objective.maximize] for objective in request.objectives],
            "algorithm": request.algorithm.value,
            "seed": request.seed,
            "number": request.number,
            "count": request.count,
            "trials": [_trial(trial) for trial in request.trials],
            "noise": request.noise.value,
            "priors": [_trial(trial) for trial in request.priors],
        }
    )


def read_request(line: bytes) -> SuggestionRequest:
    body = cast(Mapping[str, Any], json.loads(line))
    return SuggestionRequest(
        space=SearchSpace(tuple(_read_parameter(item) for item in body["space"])),
        objectives=tuple(Objective(metric, maximize) for metric, maximize in body["objectives"]),
        algorithm=Algorithm(body["algorithm"]),
        seed=body["seed"],
        number=body["number"],
        count=body["count"],
        trials=tuple(_read_trial(item) for item in body["trials"]),
        noise=NoiseLevel(body["noise"]),
        priors=tuple(_read_trial(item) for item in body["priors"]),
    )


def points_line(points: Sequence[TrialPoint]) -> bytes:
    return _line({"points": [dict(point) for point in points]})


def error_line(sentence: str) -> bytes:
    return _line({"error": sentence})


def read_answer(line: bytes) -> Sequence[TrialPoint] | str:
    """The points, or the sentence that says why there are none. ValueError where it is neither."""
    body = cast(Mapping[str, Any], json.loads(line))
    if "error" in body:
        return str(body["error"])
    if "points" not in body:
        raise ValueError("an answer has points or an error")
    return cast(list[TrialPoint], body["points"])


def _line(body: Mapping[str, object]) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode() + b"\n"


def _parameter(parameter: Parameter) -> dict[str, object]:
    return {
        "id": parameter.id,
        "kind": parameter.kind.value,
        "low": parameter.low,
        "high": parameter.high,
        "values": parameter.values,
        "scale": parameter.scale.value,
        "default": parameter.default,
        "parent": parameter.parent,
        "parent_values": parameter.parent_values,
    }


def _read_parameter(body: Mapping[str, Any]) -> Parameter:
    return Parameter(
        id=body["id"],
        kind=ParameterKind(body["kind"]),
        low=body["low"],
        high=body["high"],
        values=tuple(body["values"]),
        scale=Scale(body["scale"]),
        default=body["default"],
        parent=body["parent"],
        parent_values=tuple(body["parent_values"]),
    )


def _trial(trial: TrialResult) -> list[object]:
    return [dict(trial.point), trial.values, trial.is_pending, trial.is_failed]


def _read_trial(body: Sequence[Any]) -> TrialResult:
    point, values, is_pending, is_failed = body
    return TrialResult(
        point=point,
        values=None if values is None else tuple(values),
        is_pending=is_pending,
        is_failed=is_failed,
    )
