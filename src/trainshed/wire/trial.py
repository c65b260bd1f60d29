"""A trial as Google's API has it, with its measurements; and points that people give for trials.

`tuning_job`, `vizier` and the views of studies call it. Numbers that JSON lacks are texts, such as "NaN", as
protocol buffers have them.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, cast

from trainshed.core.names import task_name
from trainshed.core.tuning.measurement import Measurement
from trainshed.core.tuning.search_space import Parameter, ParameterKind, SearchSpace, TrialPoint, same_value
from trainshed.core.tuning.study import Study, Trial, TrialState
from trainshed.wire import enums
from trainshed.wire.faults import Faults
from trainshed.wire.scalars import double_json, duration_text, kind_of, shown, time_text

TRIAL_STATES: Mapping[str, int] = {
    "STATE_UNSPECIFIED": 0,
    "REQUESTED": 1,
    "ACTIVE": 2,
    "STOPPING": 3,
    "SUCCEEDED": 4,
    "INFEASIBLE": 5,
}


def render_trial(
    study: Study, trial: Trial, *, enum_ints: bool = False, base_url: str = "", measurements: bool = True
) -> dict[str, Any]:
    """Only Google's fields. Measurements may be left out, since they are many."""
    answer: dict[str, Any] = {
        "name": f"{study.name}/trials/{trial.number}",
        "id": str(trial.number),
        "state": enums.render_enum(trial.state.value, TRIAL_STATES, as_ints=enum_ints),
        "parameters": render_point(trial.point),
    }
    if trial.final is not None:
        answer["finalMeasurement"] = render_measurement(trial.final)
    if measurements and trial.measurements:
        answer["measurements"] = [render_measurement(item) for item in trial.measurements]
    if trial.started_at is not None:
        answer["startTime"] = time_text(trial.started_at)
    if trial.ended_at is not None:
        answer["endTime"] = time_text(trial.ended_at)
    if trial.client:
        answer["clientId"] = trial.client
    if trial.infeasible:
        answer["infeasibleReason"] = trial.infeasible
    if trial.job:
        answer["customJob"] = job_name(study, trial.job)
    template = study.template
    if template is not None and template.web_access and trial.state is TrialState.ACTIVE and trial.job:
        answer["webAccessUris"] = _shells(study, trial, base_url)
    return answer


def job_name(study: Study, job: str) -> str:
    return f"projects/{study.project}/locations/{study.location}/customJobs/{job}"


def _shells(study: Study, trial: Trial, base_url: str) -> dict[str, str]:
    root = f"{base_url}/shell/{study.project}/{study.location}/{trial.job}"
    pools = study.template.pools if study.template is not None else ()
    tasks = [task_name(number, index) for number, pool in enumerate(pools) for index in range(pool.replicas)]
    return {task: f"{root}/{task}" for task in tasks}


def render_point(point: TrialPoint) -> list[dict[str, Any]]:
    return [{"parameterId": name, "value": value} for name, value in point.items()]


def render_measurement(measurement: Measurement) -> dict[str, Any]:
    return {
        "elapsedDuration": duration_text(timedelta(seconds=max(0.0, measurement.elapsed))),
        "stepCount": str(measurement.step),
        "metrics": [
            {"metricId": name, "value": double_json(value)} for name, value in measurement.values.items()
        ],
    }


def parse_point(given: object, space: SearchSpace, path: str, faults: Faults) -> TrialPoint:
    """A point, such as {"lr": 0.1, "batch": 32}, with the values as the space has them."""
    if not isinstance(given, Mapping):
        faults.add(path, f"must be an object of parameters and values, not {kind_of(given)}.")
        return {}
    values = cast("Mapping[str, object]", given)
    point: dict[str, float | int | str] = {}
    doubtful: set[str] = set()  # those below a wrong value: whether they apply is not known
    # Parents come first: which children apply depends on their values.
    for parameter in space.ordered:
        name = parameter.id
        if parameter.parent in doubtful:
            doubtful.add(name)
        elif name in values and name not in point and parameter in space.active(point):
            if (value := _value(parameter, values[name])) is not None:
                point[name] = value
            else:
                faults.add(f"{path}.{name}", f"must not be {shown(values[name])}: {_allowed(parameter)}.")
                doubtful.add(name)
    active = {parameter.id for parameter in space.active(point)}
    for name in sorted(active - set(point) - doubtful):
        faults.add(f"{path}.{name}", "is required.")
    for name in values:
        if name not in active | doubtful:
            known = any(parameter.id == name for parameter in space.parameters)
            what = "does not apply to this point" if known else "is no parameter"
            faults.add(f"{path}.{name[:100]}", f"{what}.")
    return point


def _value(parameter: Parameter, given: object) -> float | int | str | None:
    """The value as the space has it; None where it is not allowed."""
    if not parameter.has(given):
        return None
    match parameter.kind, given:
        case ParameterKind.INTEGER, int() | float():
            return int(given)
        case ParameterKind.DOUBLE, int() | float():
            return float(given)
        case ParameterKind.DISCRETE, _:
            return next(value for value in parameter.values if same_value(value, given))
        case _:
            return str(given)


def _allowed(parameter: Parameter) -> str:
    match parameter.kind:
        case ParameterKind.DOUBLE:
            return f"it is a number from {parameter.low:g} to {parameter.high:g}"
        case ParameterKind.INTEGER:
            return f"it is a whole number from {int(parameter.low)} to {int(parameter.high)}"
        case _:
            first = ", ".join(map(str, parameter.values[:20]))
            return f"it is one of {first}{', …' if len(parameter.values) > 20 else ''}"
