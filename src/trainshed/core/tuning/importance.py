"""How much each parameter matters for a good result: PED-ANOVA, in plain Python.

Services call it for the page of a study. A parameter matters if the best trials choose it differently from
all trials: the importance is the Pearson divergence between the two distributions of its values, each a
histogram that is smoothed, as Watanabe, Bansal and Hutter (2023) propose. Importances are not negative and
sum to 1.
"""

import math
from collections.abc import Mapping, Sequence
from typing import assert_never

from trainshed.core.tuning.search_space import Parameter, ParameterKind, Scale, SearchSpace, TrialPoint

_MOST_CELLS = 50  # of a range
_LEAST_TRIALS = 4


def importances(
    space: SearchSpace, points: Sequence[TrialPoint], losses: Sequence[float], share: float = 0.1
) -> Mapping[str, float]:
    """The importance of each parameter, by id. Losses: smaller is better; those not finite do not count.

    `share` of the trials are called the best, at least two of them. A parameter that only some trials have is
    judged by those; it counts by how many they are. Empty where there are too few trials to tell.
    """
    finite = sorted(
        (loss, index)
        for index, loss in enumerate(losses)
        if math.isfinite(loss) and space.contains(points[index])
    )
    if len(finite) < _LEAST_TRIALS or finite[0][0] == finite[-1][0]:
        return {}
    ordered = [points[index] for _, index in finite]
    raw: dict[str, float] = {}
    for parameter in space.ordered:
        with_it = [point for point in ordered if parameter in space.active(point)]
        if len(with_it) < _LEAST_TRIALS:
            divergence = 0.0
        else:
            best = with_it[: max(2, math.ceil(share * len(with_it)))]
            divergence = _divergence(parameter, best, with_it) * len(with_it) / len(ordered)
        raw[parameter.id] = raw.get(parameter.id, 0.0) + divergence
    total = math.fsum(raw.values())
    return (
        {id_: value / total for id_, value in raw.items()} if total > 0 else dict.fromkeys(raw, 1 / len(raw))
    )


def _divergence(parameter: Parameter, best: Sequence[TrialPoint], every: Sequence[TrialPoint]) -> float:
    count = _cells(parameter)
    if count < 2:
        return 0.0
    top = _density([_cell(parameter, point[parameter.id], count) for point in best], count, parameter)
    base = _density([_cell(parameter, point[parameter.id], count) for point in every], count, parameter)
    return math.fsum(b * (t / b - 1.0) ** 2 for t, b in zip(top, base, strict=True))


def _cells(parameter: Parameter) -> int:
    count = parameter.count
    if parameter.kind in (ParameterKind.CATEGORICAL, ParameterKind.DISCRETE):
        return len(parameter.values)
    if parameter.low == parameter.high:
        return 1
    return min(_MOST_CELLS, count or _MOST_CELLS)


def _cell(parameter: Parameter, value: float | int | str, count: int) -> int:
    if parameter.kind in (ParameterKind.CATEGORICAL, ParameterKind.DISCRETE):
        gaps = [
            abs(float(own) - float(value)) if _number(own, value) else float(own != value)
            for own in parameter.values
        ]
        return gaps.index(min(gaps))
    return min(count - 1, int(_place(parameter, float(value)) * count))


def _number(left: object, right: object) -> bool:
    return not isinstance(left, str) and not isinstance(right, str)


def _place(parameter: Parameter, value: float) -> float:
    low, high = parameter.low, parameter.high
    match parameter.scale:
        case Scale.LINEAR:
            return (value - low) / (high - low)
        case Scale.LOG:
            return (math.log(value) - math.log(low)) / (math.log(high) - math.log(low))
        case Scale.REVERSE_LOG:
            return 1.0 - (math.log(high - value + low) - math.log(low)) / (math.log(high) - math.log(low))
        case _:
            assert_never(parameter.scale)


def _density(cells: Sequence[int], count: int, parameter: Parameter) -> list[float]:
    """The share of each cell: numbers smoothed by a normal kernel, and one trial's worth spread evenly."""
    weights = [0.0] * count
    if parameter.kind is ParameterKind.CATEGORICAL:
        for cell in cells:
            weights[cell] += 1.0
    else:
        mean = math.fsum(cells) / len(cells)
        deviation = math.sqrt(math.fsum((c - mean) ** 2 for c in cells) / len(cells))
        width = max(1.06 * deviation * len(cells) ** -0.2, 0.5)
        kernel = [math.exp(-0.5 * (offset / width) ** 2) for offset in range(count)]
        held_by = [cells.count(cell) for cell in range(count)]
        for cell, times in enumerate(held_by):
            if times:
                mass = math.fsum(kernel[abs(other - cell)] for other in range(count))
                for other in range(count):
                    weights[other] += times * kernel[abs(other - cell)] / mass
    total = math.fsum(weights) + 1.0
    return [(weight + 1.0 / count) / total for weight in weights]
