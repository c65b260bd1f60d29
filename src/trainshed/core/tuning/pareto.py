"""Which trials are best where there are several objectives. Pure.

Services show them; suggesters of several objectives aim beyond them.
"""

import math
from collections.abc import Sequence

from trainshed.core.tuning.suggestion_port import Objective


def optimal_indexes(values: Sequence[Sequence[float] | None], objectives: Sequence[Objective]) -> list[int]:
    """The trials that no other beats, in order. One without values that are all finite is never among them.

    A trial beats another if it is as good in all objectives and better in one. Equal trials stay together.
    With one objective these are the best trials.
    """
    signs = [-1.0 if objective.maximize else 1.0 for objective in objectives]
    present = sorted(
        (tuple(sign * value for sign, value in zip(signs, row, strict=True)), index)
        for index, row in enumerate(values)
        if row is not None and _is_whole(row, signs)
    )
    front: list[tuple[float, ...]] = []
    result: list[int] = []
    for loss, index in present:  # sorted: whoever beats it came before
        if not any(beats(other, loss) for other in front):
            result.append(index)
            if not front or front[-1] != loss:
                front.append(loss)
    return sorted(result)


def beats(left: Sequence[float], right: Sequence[float]) -> bool:
    """Whether it is nowhere worse and somewhere better; smaller is better."""
    return all(a <= b for a, b in zip(left, right, strict=True)) and tuple(left) != tuple(right)


def _is_whole(row: Sequence[float], signs: Sequence[float]) -> bool:
    return len(row) == len(signs) and all(math.isfinite(value) for value in row)
