"""One metric of one job as a curve over steps or over time, and curves brought to shared places. Pure.

`core/comparison.py` calls it.
"""

import math
import operator
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from trainshed.core.columns import Column, Columns
from trainshed.core.metrics import VALUE


class Over(StrEnum):
    """What a curve is drawn over."""

    STEP = "step"
    TIME = "time"  # seconds since the start of its job


@dataclass(frozen=True, slots=True)
class Curve:
    places: Sequence[float]  # steps or seconds, rising
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class Band:
    """Several curves as one, at each shared place; None where none of them has a value."""

    mean: Column
    least: Column
    most: Column
    deviation: Column


def metric_names(columns: Columns) -> set[str]:
    return {name.removeprefix(VALUE) for _, name in columns.values if name.startswith(VALUE)}


def curve(columns: Columns, metric: str, over: Over, began: float) -> Curve | None:
    """The metric of the first replica that reported it. What a restarted program repeats is replaced."""
    task = min((task for task, name in columns.values if name == VALUE + metric), default=None)
    if task is None:
        return None
    column = columns.values[task, VALUE + metric]
    if over is Over.TIME:
        where: Column = [at - began for at in columns.times]
    else:
        where = columns.values.get((task, "step"), ())
    pairs = [
        (place, value)
        for place, value in zip(where, column, strict=False)
        if place is not None and value is not None
    ]
    if not pairs:
        return None
    places = [place for place, _ in pairs]
    values = [value for _, value in pairs]
    if all(map(operator.lt, places, places[1:])):
        return Curve(places, values)
    return _once(places, values)


def _once(places: Iterable[float], values: Iterable[float]) -> Curve:
    kept_places: list[float] = []
    kept_values: list[float] = []
    for place, value in zip(places, values, strict=True):
        first = bisect_left(kept_places, place)
        del kept_places[first:], kept_values[first:]
        kept_places.append(place)
        kept_values.append(value)
    return Curve(kept_places, kept_values)


def shared_places(
    curves: Iterable[Curve], points: int, since: float | None, until: float | None
) -> list[float]:
    """At most `points` places, evenly from the first to the last, or within the bounds."""
    ends = [(some.places[0], some.places[-1]) for some in curves]
    if not ends:
        return []
    first = min(begin for begin, _ in ends) if since is None else since
    last = max(end for _, end in ends) if until is None else until
    if first >= last:
        return [first] if first == last else []
    steps = last - first
    if steps < points and steps % 1 == 0 == first % 1:
        return [first + number for number in range(int(steps) + 1)]
    return [first + steps * number / (points - 1) for number in range(points)]


def resampled(some: Curve, places: Sequence[float]) -> list[float | None]:
    """The curve at the shared places: between two of its points on the line, beyond its ends None."""
    own, values = some.places, some.values
    if own == places:
        return [*values]  # short runs that reported every step
    # A curve of few points lies between two places: its ends count for the nearest one.
    near = (places[1] - places[0]) / 2 if len(places) > 1 else math.inf
    last = len(own) - 1
    result: list[float | None] = []
    at = 0
    for place in places:
        at = bisect_left(own, place, at)
        if at > last:
            result.append(values[last] if place - own[last] <= near else None)
        elif at == 0:
            result.append(values[0] if own[0] - place <= near else None)
        else:
            before, low, high = own[at - 1], values[at - 1], values[at]
            result.append(low + (high - low) * ((place - before) / (own[at] - before)))
    return result


def band(columns: Sequence[Column]) -> Band:
    """The mean of several curves at each place, their bounds, and the standard deviation among them."""
    mean: list[float | None] = []
    least: list[float | None] = []
    most: list[float | None] = []
    deviation: list[float | None] = []
    for row in zip(*columns, strict=True):
        present = [value for value in row if value is not None]
        if not present:
            for column in (mean, least, most, deviation):
                column.append(None)
            continue
        middle = math.fsum(present) / len(present)
        mean.append(middle)
        least.append(min(present))
        most.append(max(present))
        deviation.append(math.sqrt(math.fsum((value - middle) ** 2 for value in present) / len(present)))
    return Band(mean, least, most, deviation)
