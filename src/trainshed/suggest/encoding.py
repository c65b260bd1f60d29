"""Points of a search space as rows of numbers, and back. One column for each parameter.

All algorithms of this package stand on it. A number lies in [0, 1], stretched by its scale. A category is its
index. A parameter that does not apply has NEUTRAL, or the category ABSENT: then it says nothing about others.
`snap` makes any row one that stands for a point; what `point` returns always lies in the space.
"""

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from trainshed.core.tuning.search_space import (
    Parameter,
    ParameterKind,
    Scale,
    SearchSpace,
    TrialPoint,
    applies,
    numeric_values,
)

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Indexes = NDArray[np.intp]
NEUTRAL = 0.5
ABSENT = -1.0
MOST_LEVELS = 4096  # an integer of more values is rounded, not enumerated


def stretch(parameter: Parameter, value: float) -> float:
    """A number of the parameter's range as a place in [0, 1]."""
    low, high = bounds(parameter)
    if high <= low:
        return NEUTRAL
    match parameter.scale:
        case Scale.LINEAR:
            place = (value - low) / (high - low)
        case Scale.LOG:
            place = (math.log(value) - math.log(low)) / _span(low, high)
        case Scale.REVERSE_LOG:
            place = 1.0 - (math.log(high - value + low) - math.log(low)) / _span(low, high)
        case _:
            assert_never(parameter.scale)
    return min(1.0, max(0.0, place))


def unstretch(parameter: Parameter, place: float) -> float:
    low, high = bounds(parameter)
    match parameter.scale:
        case Scale.LINEAR:
            value = low + place * (high - low)
        case Scale.LOG:
            value = math.exp(math.log(low) + place * _span(low, high))
        case Scale.REVERSE_LOG:
            value = high + low - math.exp(math.log(low) + (1.0 - place) * _span(low, high))
        case _:
            assert_never(parameter.scale)
    return min(high, max(low, value))


def _span(low: float, high: float) -> float:
    return math.log(high) - math.log(low)


def bounds(parameter: Parameter) -> tuple[float, float]:
    if parameter.kind is ParameterKind.DISCRETE:
        return float(parameter.values[0]), float(parameter.values[-1])  # they rise
    return float(parameter.low), float(parameter.high)


class Encoding:
    """The columns of a space, parents before children."""

    def __init__(self, space: SearchSpace) -> None:
        self.space = space
        self.parameters = space.ordered
        self.width = len(self.parameters)
        self.is_category: Bools = np.array(
            [p.kind is ParameterKind.CATEGORICAL for p in self.parameters], dtype=bool
        )
        self.levels: list[Floats | None] = [_levels(p) for p in self.parameters]

    @cached_property
    def is_continuous(self) -> Bools:
        return np.array([levels is None for levels in self.levels], dtype=bool)

    def row(self, point: TrialPoint) -> Floats:
        active = {id(p) for p in self.space.active(point)}
        return np.array([_place(p, point[p.id]) if id(p) in active else _absent(p) for p in self.parameters])

    def rows(self, points: Iterable[TrialPoint]) -> Floats:
        rows = [self.row(point) for point in points]
        return np.array(rows).reshape(len(rows), self.width)

    def point(self, row: Sequence[float] | Floats) -> TrialPoint:
        """The point that a row stands for, or the nearest one."""
        point: dict[str, float | int | str] = {}
        for parameter, place in zip(self.parameters, row, strict=True):
            if not parameter.parent or (
                parameter.parent in point and applies(parameter, point[parameter.parent])
            ):
                point[parameter.id] = _value(parameter, float(place))
        return point

    def snap(self, rows: Floats) -> Floats:
        """Each row moved to the nearest one that stands for a point."""
        result = np.array(rows, dtype=float)
        for column, levels in enumerate(self.levels):
            values = result[:, column]
            if levels is None:
                np.clip(values, 0.0, 1.0, out=values)
            elif self.is_category[column]:
                result[:, column] = np.clip(np.rint(values), 0, len(levels) - 1)
            else:
                result[:, column] = levels[_nearest(levels, values)]
            if not self._round_large(column):
                continue
            result[:, column] = [self._rounded(column, v) for v in result[:, column]]
        active = self.active(result)
        absent = np.where(self.is_category, ABSENT, NEUTRAL)
        return np.where(active, result, absent)

    def active(self, rows: Floats) -> Bools:
        """Which parameters apply in each row. Rows must hold values of levels, as `snap` leaves them."""
        result = np.ones(rows.shape, dtype=bool)
        for column, conditions in enumerate(self._conditions):
            if not self.parameters[column].parent:
                continue
            result[:, column] = False
            for parent, places in conditions:
                match = np.abs(rows[:, parent, None] - places[None, :]).min(axis=1, initial=1.0) < 1e-9
                result[:, column] |= match & result[:, parent]
        return result

    def random(self, rng: np.random.Generator, count: int) -> Floats:
        return self.spread(rng.random((count, self.width)))

    def spread(self, cube: Floats) -> Floats:
        """Numbers in [0, 1) as rows: each value of a category or a list equally likely, others by their
        scale.
        """
        rows = np.array(cube, dtype=float)
        for column, levels in enumerate(self.levels):
            parameter = self.parameters[column]
            if levels is None:
                continue
            if parameter.kind is ParameterKind.INTEGER and parameter.scale is not Scale.LINEAR:
                rows[:, column] = levels[_nearest(levels, self._widened(parameter, rows[:, column]))]
                continue
            index = np.minimum((rows[:, column] * len(levels)).astype(int), len(levels) - 1)
            rows[:, column] = index if self.is_category[column] else levels[index]
        return self.snap(rows)

    def centre(self) -> Floats:
        """The defaults, and the middle where there is none."""
        row = np.empty(self.width)
        for column, parameter in enumerate(self.parameters):
            if parameter.default is not None:
                row[column] = _place(parameter, parameter.default)
            else:
                row[column] = 0.0 if self.is_category[column] else 0.5
        return self.snap(row[None, :])[0]

    @cached_property
    def _conditions(self) -> list[list[tuple[int, Floats]]]:
        """For each column: its parents' columns, and where they must be."""
        return [
            [
                (index, np.array([_place(parent, v) for v in child.parent_values if parent.has(v)]))
                for index, parent in enumerate(self.parameters)
                if child.parent and parent.id == child.parent
            ]
            for child in self.parameters
        ]

    @staticmethod
    def _widened(parameter: Parameter, cube: Floats) -> Floats:
        """Half a step more at both ends, so that these are as likely as their neighbours."""
        low, high = parameter.low - 0.5, parameter.high + 0.5
        if parameter.scale is Scale.REVERSE_LOG:
            values = high + low - low * np.exp((1.0 - cube) * math.log(high / low))
        else:
            values = low * np.exp(cube * math.log(high / low))
        whole = np.clip(np.rint(values), parameter.low, parameter.high)
        return _stretched(parameter, whole)

    def _round_large(self, column: int) -> bool:
        return self.parameters[column].kind is ParameterKind.INTEGER and self.levels[column] is None

    def _rounded(self, column: int, place: float) -> float:
        parameter = self.parameters[column]
        return stretch(parameter, round(unstretch(parameter, place)))


def _levels(parameter: Parameter) -> Floats | None:
    """The places of its values in order; None for a range too fine to enumerate."""
    match parameter.kind:
        case ParameterKind.DOUBLE:
            return None
        case ParameterKind.INTEGER:
            count = parameter.count or 1
            if count > MOST_LEVELS:
                return None
            return _stretched(parameter, parameter.low + np.arange(count, dtype=np.float64))
        case ParameterKind.CATEGORICAL:
            return np.arange(len(parameter.values), dtype=float)
        case ParameterKind.DISCRETE:
            return _stretched(parameter, np.array(numeric_values(parameter)))
        case _:
            assert_never(parameter.kind)


def _stretched(parameter: Parameter, values: Floats) -> Floats:
    """`stretch` for many values: a long range is stretched at each request."""
    low, high = bounds(parameter)
    if high <= low:
        return np.full(len(values), NEUTRAL)
    match parameter.scale:
        case Scale.LINEAR:
            places = (values - low) / (high - low)
        case Scale.LOG:
            places = (np.log(values) - math.log(low)) / _span(low, high)
        case Scale.REVERSE_LOG:
            places = 1.0 - (np.log(high - values + low) - math.log(low)) / _span(low, high)
        case _:
            assert_never(parameter.scale)
    return np.clip(places, 0.0, 1.0)


def _nearest(levels: Floats, places: Floats) -> Indexes:
    middles = (levels[1:] + levels[:-1]) / 2
    return np.searchsorted(middles, places)


def _place(parameter: Parameter, value: float | int | str) -> float:
    if parameter.kind is ParameterKind.CATEGORICAL:
        return float(parameter.values.index(str(value)))
    return stretch(parameter, float(value))


def _absent(parameter: Parameter) -> float:
    return ABSENT if parameter.kind is ParameterKind.CATEGORICAL else NEUTRAL


def _value(parameter: Parameter, place: float) -> float | int | str:
    match parameter.kind:
        case ParameterKind.CATEGORICAL:
            return parameter.values[min(max(round(place), 0), len(parameter.values) - 1)]
        case ParameterKind.DOUBLE:
            return unstretch(parameter, place)
        case ParameterKind.INTEGER:
            return min(max(round(unstretch(parameter, place)), int(parameter.low)), int(parameter.high))
        case ParameterKind.DISCRETE:
            values = numeric_values(parameter)
            places = _stretched(parameter, np.array(values))
            return values[int(_nearest(places, np.array([place]))[0])]
        case _:
            assert_never(parameter.kind)
