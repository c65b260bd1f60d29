"""A person's own point, `lr=0.01,batch=32`, as the values of a trial. Pure.

`tune --try` and `study add` call it with the ParameterSpecs of the study. What is wrong is a Misuse.
"""

from collections.abc import Iterator, Sequence

from trainshed.cli import words
from trainshed.cli.failure import Misuse
from trainshed.cli.tuning.parameter import every_spec, read_value
from trainshed.client import Json

CLOSE = 1e-10  # two numbers nearer than this are the same value
Point = dict[str, float | int | str]


def read_point(text: str, specs: Sequence[Json], option: str) -> Point:
    """One value of each parameter that applies. `option` is what the text was given as, for errors."""
    given: dict[str, str] = {}
    for piece in text.split(","):
        name, equals, value = piece.strip().partition("=")
        if not (name and equals and value):
            raise _wrong(option, text, f"{piece!r} is not NAME=VALUE", specs)
        if name in given:
            raise _wrong(option, text, f"{name} stands twice", specs)
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
            raise _wrong(option, text, f"{name} {error}", specs) from error
        waiting += _children(spec, point[name])
    if others := [name for name in given if name not in point]:
        known = {str(spec.get("parameterId")) for spec in every_spec(specs)}
        reason = "does not apply with these values" if others[0] in known else "is no parameter"
        raise _wrong(option, text, f"{others[0]} {reason}", specs)
    if missing:
        raise _wrong(option, text, f"has no value of {', '.join(missing)}", specs)
    return point


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


def _wrong(option: str, text: str, reason: str, specs: Sequence[Json]) -> Misuse:
    names = dict.fromkeys(str(spec.get("parameterId")) for spec in every_spec(specs))
    example = ",".join(f"{name}=VALUE" for name in names)
    return Misuse(f"{option}{text}: {reason}", [f"a point reads {example}"])
