"""The parameters of a study, what may be chosen for them, and which of them apply. Pure.

Studies are checked with `violations`; suggesters choose points within a space that has none. Parameters are a
flat list. One that names a parent applies where the parent applies and has one of the given values. An id may
stand twice where its conditions exclude each other. Nothing here draws a random number.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import pairwise

from trainshed.core.errors import Violation

TrialPoint = Mapping[str, float | int | str]  # the chosen value of each parameter that applies
CLOSE = 1e-10  # two numbers nearer than this are the same value of a discrete parameter
MOST_VALUES = 1000  # of a categorical or discrete parameter


class ParameterKind(StrEnum):
    DOUBLE = "double"
    INTEGER = "integer"
    CATEGORICAL = "categorical"
    DISCRETE = "discrete"


class Scale(StrEnum):
    """How a range is stretched before it is searched."""

    LINEAR = "linear"
    LOG = "log"  # small values differ more
    REVERSE_LOG = "reverse_log"  # values near the upper end differ more


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """`low` and `high` bound doubles and integers; `values` lists those of the other two kinds."""

    id: str
    kind: ParameterKind
    low: float = 0.0
    high: float = 0.0
    values: tuple[float | str, ...] = ()
    scale: Scale = Scale.LINEAR
    default: float | int | str | None = None
    parent: str = ""
    parent_values: tuple[float | int | str, ...] = ()

    @property
    def count(self) -> int | None:
        """How many values it has; None for a double, unless it has only one."""
        match self.kind:
            case ParameterKind.DOUBLE:
                return 1 if self.low == self.high else None
            case ParameterKind.INTEGER:
                return int(self.high) - int(self.low) + 1
            case _:
                return len(self.values)

    def value_at(self, index: int) -> float | int | str:
        """Its values in order, counted from 0. Not for doubles of more than one value."""
        match self.kind:
            case ParameterKind.DOUBLE:
                return self.low
            case ParameterKind.INTEGER:
                return int(self.low) + index
            case _:
                return self.values[index]

    def has(self, value: object) -> bool:
        if self.kind is ParameterKind.CATEGORICAL:
            return isinstance(value, str) and value in self.values
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            return False
        match self.kind:
            case ParameterKind.DOUBLE:
                return self.low <= value <= self.high
            case ParameterKind.INTEGER:
                return value == int(value) and self.low <= value <= self.high
            case _:
                # Nearly always it is one of them; only else each is compared.
                return value in self.values or any(same_value(value, own) for own in self.values)


def same_value(left: object, right: object) -> bool:
    if isinstance(left, str) or isinstance(right, str):
        return left == right
    return isinstance(left, int | float) and isinstance(right, int | float) and abs(left - right) <= CLOSE


@dataclass(frozen=True)  # no slots: what follows from the parameters is kept
class SearchSpace:
    parameters: tuple[Parameter, ...]

    @cached_property
    def ordered(self) -> tuple[Parameter, ...]:
        """Parents before their children. What depends on a missing parent or on itself is left out."""
        done: list[Parameter] = [p for p in self.parameters if not p.parent]
        left = [p for p in self.parameters if p.parent]
        while left:
            ids = {p.id for p in done}
            # An id may stand twice: its children come after both.
            waiting = {p.id for p in left}
            ready = [p for p in left if p.parent in ids and p.parent not in waiting - {p.id}]
            if not ready:
                break
            done += ready
            left = [p for p in left if p not in ready]
        return tuple(done)

    @cached_property
    def children(self) -> Mapping[str, tuple[Parameter, ...]]:
        ids = {p.parent for p in self.ordered if p.parent}
        return {id_: tuple(p for p in self.ordered if p.parent == id_) for id_ in ids}

    def active(self, point: TrialPoint) -> tuple[Parameter, ...]:
        """The parameters that apply, given the values of their parents in the point."""
        result: list[Parameter] = []
        ids: set[str] = set()
        for parameter in self.ordered:
            if not parameter.parent or (
                parameter.parent in ids and applies(parameter, point.get(parameter.parent))
            ):
                result.append(parameter)
                ids.add(parameter.id)
        return tuple(result)

    def contains(self, point: TrialPoint) -> bool:
        """Whether it has a value of each parameter that applies, and nothing else."""
        active = self.active(point)
        return {p.id for p in active} == set(point) and all(p.has(point[p.id]) for p in active)

    def violations(self) -> tuple[Violation, ...]:
        """All that is wrong with it, each with the path of its field."""
        result = [] if self.parameters else [Violation("parameters", "must not be empty")]
        for index, parameter in enumerate(self.parameters):
            path = f"parameters[{index}]"
            result += (Violation(f"{path}.{field}", text) for field, text in _own_faults(parameter))
            result += (Violation(f"{path}.{field}", text) for field, text in self._family_faults(parameter))
            if any(self._overlap(parameter, other) for other in self.parameters[:index]):
                text = f"{parameter.id!r} stands twice; that needs conditions that exclude each other"
                result.append(Violation(f"{path}.id", text))
        return tuple(result)

    def _family_faults(self, parameter: Parameter) -> Iterator[tuple[str, str]]:
        if not parameter.parent:
            if parameter.parent_values:
                yield "parent_values", "needs a parent"
            return
        parents = [p for p in self.parameters if p.id == parameter.parent]
        if not parents:
            yield "parent", f"names {parameter.parent!r}, which is no parameter"
        elif parameter not in self.ordered:
            yield "parent", "depends on itself"
        if any(p.kind is ParameterKind.DOUBLE for p in parents):
            yield "parent", "must not be a double: name an integer, discrete or categorical parameter"
        elif not parameter.parent_values:
            yield "parent_values", "must not be empty"
        for value in parameter.parent_values:
            if parents and not any(p.has(value) for p in parents):
                yield "parent_values", f"has {value!r}, which is no value of {parameter.parent!r}"

    def _overlap(self, left: Parameter, right: Parameter) -> bool:
        """Whether two parameters of one id could both apply: no condition of theirs excludes the other's."""
        if left.id != right.id:
            return False
        other = dict(self._conditions(right))
        return all(
            any(same_value(own, value) for own in values for value in other.get(id_, values))
            for id_, values in self._conditions(left)
        )

    def _conditions(self, parameter: Parameter) -> Iterator[tuple[str, tuple[float | int | str, ...]]]:
        """What its parents must be, up to the root."""
        seen: set[str] = set()
        while parameter.parent and parameter.parent not in seen:
            seen.add(parameter.parent)
            yield parameter.parent, parameter.parent_values
            parents = [p for p in self.parameters if p.id == parameter.parent]
            if len(parents) != 1:
                return
            parameter = parents[0]


def _own_faults(parameter: Parameter) -> Iterator[tuple[str, str]]:
    if not parameter.id or any(letter.isspace() for letter in parameter.id):
        yield "id", "must not be empty or contain spaces"
    if parameter.kind in (ParameterKind.DOUBLE, ParameterKind.INTEGER):
        yield from _range_faults(parameter)
    else:
        yield from _list_faults(parameter)
    if parameter.kind is ParameterKind.CATEGORICAL:
        if parameter.scale is not Scale.LINEAR:
            yield "scale", "must not be set for a categorical parameter"
    elif parameter.scale is not Scale.LINEAR and (lowest := _lowest(parameter)) is not None and lowest <= 0:
        yield "scale", f"{parameter.scale.value} needs values above zero, and the lowest is {lowest:g}"
    if parameter.default is not None and not parameter.has(parameter.default):
        yield "default", f"{parameter.default!r} is no value of the parameter"


def _range_faults(parameter: Parameter) -> Iterator[tuple[str, str]]:
    bounds = (("low", parameter.low), ("high", parameter.high))
    for name, bound in bounds:
        if not math.isfinite(bound):
            yield name, "must be a finite number"
        elif parameter.kind is ParameterKind.INTEGER and bound != int(bound):
            yield name, f"must be a whole number, not {bound:g}"
    if parameter.low > parameter.high:
        yield "high", f"must not be below the lower bound, {parameter.low:g}"
    if math.isinf(parameter.high - parameter.low) and all(math.isfinite(bound) for _, bound in bounds):
        yield "high", "is too far from the lower bound"
    if parameter.values:
        yield "values", f"must not be set for a parameter of kind {parameter.kind.value}"


def _list_faults(parameter: Parameter) -> Iterator[tuple[str, str]]:
    values = parameter.values
    if not 1 <= len(values) <= MOST_VALUES:
        yield "values", f"must have 1 to {MOST_VALUES} values, not {len(values)}"
    if parameter.kind is ParameterKind.CATEGORICAL:
        if any(not isinstance(value, str) or not value for value in values):
            yield "values", "must be texts that are not empty"
        elif len(set(values)) < len(values):
            yield "values", "must differ from each other"
        return
    numbers = numeric_values(parameter)
    if len(numbers) < len(values) or not all(math.isfinite(number) for number in numbers):
        yield "values", "must be finite numbers"
    elif any(right - left <= CLOSE for left, right in pairwise(numbers)):
        yield "values", "must rise, each by more than 1e-10"


def numeric_values(parameter: Parameter) -> tuple[float, ...]:
    return tuple(float(value) for value in parameter.values if not isinstance(value, str))


def _lowest(parameter: Parameter) -> float | None:
    if parameter.kind in (ParameterKind.DOUBLE, ParameterKind.INTEGER):
        return parameter.low
    return min(numeric_values(parameter), default=None)


def applies(child: Parameter, value: object) -> bool:
    """Whether the child applies where its parent has this value."""
    return any(same_value(value, allowed) for allowed in child.parent_values)
