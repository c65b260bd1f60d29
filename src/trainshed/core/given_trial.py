"""A trial of a person's own, and its point made to fit the search space. Pure; wire and service use it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from trainshed.core.measurement import Measurement
from trainshed.core.search_space import Parameter, ParameterKind, SearchSpace, TrialPoint, same_value


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenTrial:
    """It waits for a client, is run by one, or has ended already."""

    point: TrialPoint
    client: str = ""  # who runs it
    measurements: tuple[Measurement, ...] = ()
    final: Measurement | None = None
    infeasible: str | None = None  # why


def point_faults(space: SearchSpace, given: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """The id of each parameter whose value is wrong, missing or not wanted, and why."""
    active = {p.id: p for p in space.active(_plain(given))}
    known = {p.id for p in space.parameters}
    for name, value in given.items():
        if name not in known:
            yield name, f"{name!r} is no parameter of the study."
        elif name not in active:
            yield name, f"{name!r} does not apply, given the other values."
        elif not active[name].has(value):
            yield name, f"{value!r} is no value of {name!r}."
    for name in active:
        if name not in given:
            yield name, f"A value of {name!r} is missing."


def fitted(space: SearchSpace, given: Mapping[str, object]) -> TrialPoint:
    """The point, with each value as its parameter has it. For a point without faults."""
    return {p.id: _own_value(p, given[p.id]) for p in space.active(_plain(given)) if p.id in given}


def _plain(given: Mapping[str, object]) -> TrialPoint:
    return {name: value for name, value in given.items() if isinstance(value, int | float | str)}


def _own_value(parameter: Parameter, value: object) -> float | int | str:
    """Whole numbers may come as 32.0, and values of lists may differ in the last digit."""
    if isinstance(value, str) or not isinstance(value, int | float):
        return str(value)
    match parameter.kind:
        case ParameterKind.INTEGER:
            return int(value)
        case ParameterKind.DISCRETE:
            return next((own for own in parameter.values if same_value(own, value)), value)
        case _:
            return float(value)
