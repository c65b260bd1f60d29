"""Points drawn at random, without numpy: what is suggested while the process that computes cannot run.

`process.py` calls it. It keeps the promises of the port, except that it learns nothing from results.
"""

import math
import random
from collections.abc import Sequence
from typing import assert_never

from trainshed.core.tuning import grid
from trainshed.core.tuning.search_space import (
    Parameter,
    ParameterKind,
    Scale,
    SearchSpace,
    TrialPoint,
    applies,
)
from trainshed.core.tuning.suggestion_port import Algorithm, NoiseLevel, SuggestionRequest, point_key

_DRAWS = 200
_MOST_WALKED = 100_000


def random_points(request: SuggestionRequest) -> Sequence[TrialPoint]:
    tried = {point_key(trial.point) for trial in request.trials if request.space.contains(trial.point)}
    points: list[TrialPoint] = []
    for number in range(request.number, request.number + request.count):
        point = _untried(request, tried, random.Random(f"{request.seed} {number}"))
        if point is None:
            break
        points.append(point)
        tried.add(point_key(point))
    return points


def _untried(
    request: SuggestionRequest, tried: set[tuple[tuple[str, float | int | str], ...]], draw: random.Random
) -> TrialPoint | None:
    if request.algorithm is not Algorithm.GRID:
        for _ in range(_DRAWS):
            point = _point(request.space, draw)
            if request.noise is NoiseLevel.HIGH or point_key(point) not in tried:
                return point
    size = grid.size(request.space)
    if size is None:
        return None
    walk = range(len(tried), len(tried) + min(size, _MOST_WALKED))
    points = (grid.point_at(request.space, index % size) for index in walk)
    return next((point for point in points if point_key(point) not in tried), None)


def _point(space: SearchSpace, draw: random.Random) -> TrialPoint:
    point: dict[str, float | int | str] = {}
    for parameter in space.ordered:
        if not parameter.parent or (
            parameter.parent in point and applies(parameter, point[parameter.parent])
        ):
            point[parameter.id] = _value(parameter, draw.random())
    return point


def _value(parameter: Parameter, place: float) -> float | int | str:
    if parameter.kind in (ParameterKind.CATEGORICAL, ParameterKind.DISCRETE):
        return parameter.values[int(place * len(parameter.values))]
    half = 0.5 if parameter.kind is ParameterKind.INTEGER else 0.0
    low, high = parameter.low - half, parameter.high + half
    match parameter.scale:
        case Scale.LINEAR:
            value = low + place * (high - low)
        case Scale.LOG:
            value = math.exp(math.log(low) + place * (math.log(high) - math.log(low)))
        case Scale.REVERSE_LOG:
            value = high + low - math.exp(math.log(high) - place * (math.log(high) - math.log(low)))
        case _:
            assert_never(parameter.scale)
    value = min(parameter.high, max(parameter.low, value))
    if parameter.kind is ParameterKind.DOUBLE:
        return value
    return min(max(round(value), int(parameter.low)), int(parameter.high))
