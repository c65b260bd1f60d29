"""Points of a person's own, such as `lr=0.01,batch=32`, as the values of trials. Pure.

`tune --try` and `study add` call it with the ParameterSpecs of the study. All that is wrong is one Misuse.
"""

from collections.abc import Iterator, Sequence

from trainshed.cli import words
from trainshed.cli.failure import Misuse
from trainshed.cli.tuning.parameter import every_spec, read_value
from trainshed.client import Json

CLOSE = 1e-10  # two numbers nearer than this are the same value
Point = dict[str, float | int | str]


def read_points(texts: Sequence[str], specs: Sequence[Json], option: str) -> list[Point]:
    """For each text one value of each parameter that applies. `option` is what gave them, for errors."""
    points: list[Point] = []
    faults: list[str] = []
    for text in texts:
        point, reasons = _read_point(text, specs)
        points.append(point)
        faults += (f"{option}{text}: {reason}" for reason in reasons)
    if faults:
        names = dict.fromkeys(str(spec.get("parameterId")) for spec in every_spec(specs))
        first, *others = faults
        raise Misuse(first, [*others, f"a point reads {','.join(f'{name}=VALUE' for name in names)}"])
    return points


def _read_point(text: str, specs: Sequence[Json]) -> tuple[Point, list[str]]:
    """The point, and all that is wrong with the text."""
    given: dict[str, str] = {}
    faults: list[str] = []
    for piece in text.split(","):
        name, equals, value = piece.strip().partition("=")
        if not (name and equals and value):
            faults.append(f"{piece!r} is not NAME=VALUE")
        elif name in given:
            faults.append(f"{name} stands twice")
        else:
            given[name] = value
    point: Point = {}
    missing: list[str] = []
    waiting = list(specs)
    while waiting:
        spec = waiting.pop(0)
        name = str(spec.get("parameterId"))
        if name not in given:
            missing.append(name)
            continue
        try:
            point[name] = read_value(spec, given[name])
        except ValueError as error:
            faults.append(f"{name} {error}")
            continue
        waiting += _children(spec, point[name])
    known = {str(spec.get("parameterId")) for spec in every_spec(specs)}
    faults += (f"{name} is no parameter" for name in given if name not in known)
    if not faults:  # else these may follow from what is wrong already
        faults += (f"{name} does not apply with these values" for name in given if name not in point)
        faults += [f"has no value of {', '.join(missing)}"] if missing else []
    return point, faults


def _children(spec: Json, value: float | int | str) -> Iterator[Json]:
    """The ParameterSpecs that apply because the parent has this value."""
    for condition in words.parts(spec, "conditionalParameterSpecs"):
        for field in ("parentDiscreteValues", "parentIntValues", "parentCategoricalValues"):
            allowed = words.parts(words.part(condition, field), "values")
            if any(_same(value, other) for other in allowed):
                yield words.part(condition, "parameterSpec")


def _same(value: float | int | str, other: object) -> bool:
    if isinstance(value, str):
        return value == other
    return abs(value - float(str(other))) <= CLOSE
