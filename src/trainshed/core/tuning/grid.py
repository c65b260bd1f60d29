"""The points of a finite search space, counted and in order. Pure.

Grid search calls it, and whoever must know when a space has no points left. A point has values only of the
parameters that apply, and each point comes once.
"""

from collections.abc import Iterable, Sequence

from trainshed.core.tuning.search_space import (
    Parameter,
    ParameterKind,
    SearchSpace,
    TrialPoint,
    applies,
    same_value,
)


def size(space: SearchSpace) -> int | None:
    """How many points there are; None where a double makes them countless."""
    return _product(_size_below(space, p) for p in space.ordered if not p.parent)


def point_at(space: SearchSpace, index: int) -> TrialPoint:
    """The points of a finite space, counted from 0; the last parameter changes first."""
    point: dict[str, float | int | str] = {}
    _choose(space, point, [p for p in space.ordered if not p.parent], index)
    return point


def _size_below(space: SearchSpace, parameter: Parameter) -> int | None:
    """The number of ways to choose a parameter and all that depends on it."""
    children = space.children.get(parameter.id, ())
    if not children or parameter.count is None:
        return parameter.count
    special = _special_indexes(parameter, children)
    total = parameter.count - len(special)
    for index in special:
        ways = _ways(space, children, parameter.value_at(index))
        if ways is None:
            return None
        total += ways
    return total


def _ways(space: SearchSpace, children: Sequence[Parameter], value: object) -> int | None:
    return _product(_size_below(space, child) for child in children if applies(child, value))


def _special_indexes(parameter: Parameter, children: Sequence[Parameter]) -> list[int]:
    """Which of its values have children, in order. A range may be long: it is not walked."""
    named = [value for child in children for value in child.parent_values]
    if parameter.kind is ParameterKind.INTEGER:
        return sorted({int(v) - int(parameter.low) for v in named if parameter.has(v)})
    indexes = range(parameter.count or 0)
    return [i for i in indexes if any(same_value(parameter.value_at(i), value) for value in named)]


def _choose(
    space: SearchSpace, point: dict[str, float | int | str], parameters: Sequence[Parameter], index: int
) -> None:
    for parameter in reversed(parameters):
        index, rest = divmod(index, _size_below(space, parameter) or 1)
        _choose_value(space, point, parameter, rest)


def _choose_value(
    space: SearchSpace, point: dict[str, float | int | str], parameter: Parameter, index: int
) -> None:
    children = space.children.get(parameter.id, ())
    first = 0  # the first value that is not passed yet; one without children counts 1
    for special in _special_indexes(parameter, children):
        if index < special - first:
            break
        index -= special - first
        value = parameter.value_at(special)
        ways = _ways(space, children, value) or 1
        if index < ways:
            point[parameter.id] = value
            _choose(space, point, [child for child in children if applies(child, value)], index)
            return
        index, first = index - ways, special + 1
    point[parameter.id] = parameter.value_at(first + index)


def _product(counts: Iterable[int | None]) -> int | None:
    total: int | None = 1
    for count in counts:
        total = None if total is None or count is None else total * count
    return total
