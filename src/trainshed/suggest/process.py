"""Stand-in until the real one comes: random points."""

import random
from collections.abc import Sequence

from trainshed.core.search_space import Parameter, ParameterKind, TrialPoint
from trainshed.core.suggestion_port import SuggestionRequest


class SuggestingProcess:
    async def suggest(self, request: SuggestionRequest) -> Sequence[TrialPoint]:
        return [self._point(request, request.number + at) for at in range(request.count)]

    def _point(self, request: SuggestionRequest, number: int) -> TrialPoint:
        draw = random.Random(f"{request.seed} {number}")
        point: dict[str, float | int | str] = {}
        while left := [p for p in request.space.active(point) if p.id not in point]:
            for parameter in left:
                point[parameter.id] = _value(parameter, draw)
        return point

    async def close(self) -> None:
        pass


def _value(parameter: Parameter, draw: random.Random) -> float | int | str:
    if parameter.kind is ParameterKind.DOUBLE:
        return draw.uniform(parameter.low, parameter.high)
    count = parameter.count
    assert count is not None
    return parameter.value_at(draw.randrange(count))
