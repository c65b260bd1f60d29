"""The parameters of a studySpec: a tree in Google's API, a flat list with parents in the core.

`study_spec` calls it. What is wrong with a parameter is reported under its path in the request, however deep.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trainshed.core.tuning.search_space import Parameter, ParameterKind, Scale, SearchSpace
from trainshed.wire import enums
from trainshed.wire.faults import Faults
from trainshed.wire.study_schema import SCALES, ConditionalParameterSpec, StudyParameter

MOST_PARAMETERS = 200
EXACT = 2**53  # up to here a double has every whole number

_SPECS = {
    ParameterKind.DOUBLE: "double_value_spec",
    ParameterKind.INTEGER: "integer_value_spec",
    ParameterKind.CATEGORICAL: "categorical_value_spec",
    ParameterKind.DISCRETE: "discrete_value_spec",
}
_CONDITIONS = {
    ParameterKind.INTEGER: "parent_int_values",
    ParameterKind.CATEGORICAL: "parent_categorical_values",
    ParameterKind.DISCRETE: "parent_discrete_values",
}
_SCALES = {
    "UNIT_LINEAR_SCALE": Scale.LINEAR,
    "UNIT_LOG_SCALE": Scale.LOG,
    "UNIT_REVERSE_LOG_SCALE": Scale.REVERSE_LOG,
}
_SCALE_NAMES = {scale: name for name, scale in _SCALES.items()}
_FIELDS = {"low": "min_value", "high": "max_value", "values": "values", "default": "default_value"}


@dataclass(frozen=True, slots=True)
class PlacedParameter:
    """A parameter, its path in the request, and those of its condition and of the values there."""

    parameter: Parameter
    path: str
    condition: str = ""
    condition_values: str = ""


def parse_parameters(
    specs: Sequence[StudyParameter], path: str, faults: Faults
) -> tuple[PlacedParameter, ...]:
    """All parameters of the tree, parents first. They are valid only if no fault was recorded."""
    placed: list[PlacedParameter] = []
    for number, spec in enumerate(specs):
        placed += _flat(spec, f"{path}[{number}]", faults)
    if not specs:
        faults.add(path, "is required: at least one parameter.")
    if len(placed) > MOST_PARAMETERS:
        faults.add(path, f"must have at most {MOST_PARAMETERS} parameters, not {len(placed)}.")
        return tuple(placed)
    space = SearchSpace(tuple(item.parameter for item in placed))
    for violation in space.violations():
        if "." in violation.field:  # else: the space is empty, because nothing in it could be read
            number, _, field = violation.field.removeprefix("parameters[").partition("].")
            faults.add(_where(placed[int(number)], field), f"{violation.description}.")
    for item in placed:
        _check_branch(item, space, faults)
    return tuple(placed)


def _flat(spec: StudyParameter, path: str, faults: Faults) -> Iterator[PlacedParameter]:
    """The parameter and all below it."""
    kinds = [kind for kind, name in _SPECS.items() if getattr(spec, name) is not None]
    parameter: Parameter | None = None
    if len(kinds) == 1:
        parameter = _parameter(spec, kinds[0], f"{path}.{_SPECS[kinds[0]]}", faults)
        yield PlacedParameter(parameter, path)
    else:
        names = "doubleValueSpec, integerValueSpec, categoricalValueSpec and discreteValueSpec"
        faults.add(path, f"must have exactly one of {names}.")
    for number, child in enumerate(spec.conditional_parameter_specs):
        where = f"{path}.conditional_parameter_specs[{number}]"
        if child.parameter_spec is None:
            faults.add(f"{where}.parameter_spec", "is required.")
            continue
        name, values = _parent_values(child, parameter, where, faults)
        for item in _flat(child.parameter_spec, f"{where}.parameter_spec", faults):
            if item.condition:  # a child's child
                yield item
                continue
            own = item.parameter
            if parameter is not None:  # else it stands alone, and its own faults are seen
                own = replace(own, parent=parameter.id, parent_values=values)
            yield PlacedParameter(own, item.path, where, f"{where}.{name}")


def _parameter(spec: StudyParameter, kind: ParameterKind, path: str, faults: Faults) -> Parameter:
    given: Any = getattr(spec, _SPECS[kind])
    own: dict[str, Any]
    if kind in (ParameterKind.DOUBLE, ParameterKind.INTEGER):
        own = {"low": given.min_value, "high": given.max_value, "default": given.default_value}
    else:
        default = given.default_value
        own = {"values": tuple(given.values), "default": None if default == "" else default}
    if kind is ParameterKind.INTEGER:
        for name in ("min_value", "max_value"):
            if abs(getattr(given, name)) > EXACT:
                faults.add(f"{path}.{name}", f"must be between -{EXACT} and {EXACT}.")
    scale = _SCALES.get(spec.scale_type, Scale.LINEAR)
    if kind is ParameterKind.CATEGORICAL and spec.scale_type:
        faults.add(f"{path.rpartition('.')[0]}.scale_type", "must not be set for a categorical parameter.")
        scale = Scale.LINEAR
    return Parameter(id=spec.parameter_id, kind=kind, scale=scale, **own)


def _parent_values(
    child: ConditionalParameterSpec, parent: Parameter | None, path: str, faults: Faults
) -> tuple[str, tuple[float | int | str, ...]]:
    """The field that has them, and the values; none, after recording why, where they cannot be used."""
    given = [name for name in _CONDITIONS.values() if getattr(child, name) is not None]
    if len(given) != 1:
        names = "parentDiscreteValues, parentIntValues and parentCategoricalValues"
        faults.add(path, f"must have exactly one of {names}.")
        faults.hide(f"{path}.parent")  # nothing more is said of values that are not there
        return "parent", ()
    wanted = _CONDITIONS.get(parent.kind) if parent is not None else None
    if wanted is not None and parent is not None and wanted != given[0]:
        faults.lose(f"{path}.{given[0]}", f"does not fit: {parent.id!r} is of kind {parent.kind.value}.")
        return given[0], ()
    return given[0], tuple(getattr(child, given[0]).values)


def _where(item: PlacedParameter, field: str) -> str:
    """The path of a field of the core in the request."""
    parameter, path = item.parameter, item.path
    if field in _FIELDS:
        return f"{path}.{_SPECS[parameter.kind]}.{_FIELDS[field]}"
    if field == "scale":
        return f"{path}.scale_type"
    if field == "parent_values":
        return item.condition_values
    return item.condition if field == "parent" else f"{path}.parameter_id"


def _check_branch(item: PlacedParameter, space: SearchSpace, faults: Faults) -> None:
    """Refuse a child of a parameter that stands twice, where its condition would fit both."""
    parents = [parent for parent in space.parameters if parent.id == item.parameter.parent]
    for value in item.parameter.parent_values:
        if sum(parent.has(value) for parent in parents) > 1:
            faults.add(
                item.condition,
                f"cannot be told apart: {item.parameter.parent!r} stands twice and has {value!r} in both "
                "places. Give them different names.",
            )


def render_parameters(space: SearchSpace, *, enum_ints: bool = False) -> list[dict[str, Any]]:
    """The tree of parameters."""
    roots = [parameter for parameter in space.parameters if not parameter.parent]
    return [_render(parameter, space, enum_ints=enum_ints) for parameter in roots]


def _render(parameter: Parameter, space: SearchSpace, *, enum_ints: bool) -> dict[str, Any]:
    answer: dict[str, Any] = {"parameterId": parameter.id}
    is_whole = parameter.kind is ParameterKind.INTEGER

    def shown(value: float | int | str) -> float | str:
        return str(int(value)) if is_whole else value  # 64-bit numbers are texts in JSON

    values: dict[str, Any]
    if parameter.kind in (ParameterKind.DOUBLE, ParameterKind.INTEGER):
        values = {"minValue": shown(parameter.low), "maxValue": shown(parameter.high)}
    else:
        values = {"values": list(parameter.values)}
    if parameter.default is not None:
        values["defaultValue"] = shown(parameter.default)
    answer[f"{parameter.kind.value}ValueSpec"] = values
    if parameter.kind is not ParameterKind.CATEGORICAL:
        name = _SCALE_NAMES[parameter.scale]
        answer["scaleType"] = enums.render_enum(name, SCALES, as_ints=enum_ints)
    children = [child for child in space.parameters if _is_below(child, parameter)]
    if children:
        answer["conditionalParameterSpecs"] = [
            {**_condition(child, parameter), "parameterSpec": _render(child, space, enum_ints=enum_ints)}
            for child in children
        ]
    return answer


def _is_below(child: Parameter, parent: Parameter) -> bool:
    return child.parent == parent.id and any(parent.has(value) for value in child.parent_values)


def _condition(child: Parameter, parent: Parameter) -> dict[str, Any]:
    match parent.kind:
        case ParameterKind.INTEGER:
            return {"parentIntValues": {"values": [str(int(value)) for value in child.parent_values]}}
        case ParameterKind.DISCRETE:
            return {"parentDiscreteValues": {"values": list(child.parent_values)}}
        case _:
            return {"parentCategoricalValues": {"values": list(child.parent_values)}}
