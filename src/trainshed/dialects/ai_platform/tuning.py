"""The `hyperparameters` of a job of AI Platform Training: parses them into a study, and renders its trials.

`job.py` and `http.py` call it. Each trial finds its own folder below jobDir, `DIR/TRIAL`, as there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from trainshed.core.jobs.job import Pool
from trainshed.core.tuning.measurement import Measurement
from trainshed.core.tuning.search_space import Parameter, ParameterKind, Scale, SearchSpace
from trainshed.core.tuning.stopping_rule import StoppingKind, StoppingRule
from trainshed.core.tuning.study import (
    MAX_PARALLEL,
    MAX_TRIALS,
    Study,
    StudyLimits,
    StudySpec,
    Trial,
    TrialState,
)
from trainshed.core.tuning.suggestion_port import Algorithm, Objective
from trainshed.core.tuning.trial_job import parameter_text
from trainshed.dialects.ai_platform.schema import HyperparameterSpec, ParameterSpec
from trainshed.wire.faults import Faults
from trainshed.wire.parameter import MOST_PARAMETERS
from trainshed.wire.scalars import double_json, time_text

DEFAULT_TAG = "training/hptuning/metric"
_KINDS = {
    "DOUBLE": ParameterKind.DOUBLE,
    "INTEGER": ParameterKind.INTEGER,
    "CATEGORICAL": ParameterKind.CATEGORICAL,
    "DISCRETE": ParameterKind.DISCRETE,
}
_SCALES = {"UNIT_LOG_SCALE": Scale.LOG, "UNIT_REVERSE_LOG_SCALE": Scale.REVERSE_LOG}
_ALGORITHMS = {"GRID_SEARCH": Algorithm.GRID, "RANDOM_SEARCH": Algorithm.RANDOM}
_FIELDS = {"id": "parameter_name", "low": "min_value", "high": "max_value", "scale": "scale_type"}
_STATES = {
    TrialState.REQUESTED: "QUEUED",
    TrialState.ACTIVE: "RUNNING",
    TrialState.STOPPING: "RUNNING",
    TrialState.SUCCEEDED: "SUCCEEDED",
    TrialState.INFEASIBLE: "FAILED",
}


def parse_tuning(given: HyperparameterSpec, path: str, faults: Faults) -> tuple[StudySpec, StudyLimits]:
    """The study. It is valid only if no fault was recorded."""
    if not given.goal:
        faults.add(f"{path}.goal", "is required: MAXIMIZE or MINIMIZE.")
    for name, most in (
        ("max_trials", MAX_TRIALS),
        ("max_parallel_trials", MAX_PARALLEL),
        ("max_failed_trials", MAX_TRIALS),
    ):
        if not 0 <= (count := getattr(given, name)) <= most:
            faults.add(f"{path}.{name}", f"must be between 0 and {most}, not {count}.")
    algorithm = _ALGORITHMS.get(given.algorithm, Algorithm.DEFAULT)
    spec = StudySpec(
        space=_space(given, algorithm, f"{path}.params", faults),
        objectives=(Objective(given.hyperparameter_metric_tag or DEFAULT_TAG, given.goal == "MAXIMIZE"),),
        algorithm=algorithm,
        trial_stopping=StoppingRule(kind=StoppingKind.MEDIAN) if given.enable_trial_early_stopping else None,
    )
    limits = StudyLimits(
        trials=given.max_trials or 1,
        parallel=given.max_parallel_trials or 1,
        failed=given.max_failed_trials,
    )
    return spec, limits


def _space(given: HyperparameterSpec, algorithm: Algorithm, path: str, faults: Faults) -> SearchSpace:
    if not given.params:
        faults.add(path, "is required: at least one parameter.")
    if len(given.params) > MOST_PARAMETERS:
        faults.add(path, f"must have at most {MOST_PARAMETERS} parameters, not {len(given.params)}.")
        return SearchSpace(())
    parameters: list[Parameter] = []
    places: list[str] = []
    for number, param in enumerate(given.params):
        where = f"{path}[{number}]"
        if (kind := _KINDS.get(param.type)) is None:
            faults.add(f"{where}.type", "is required: DOUBLE, INTEGER, CATEGORICAL or DISCRETE.")
            if not param.parameter_name:
                faults.add(f"{where}.parameter_name", "is required.")
            continue
        _check_bounds(param, where, faults)
        if algorithm is Algorithm.GRID and kind is ParameterKind.DOUBLE:
            faults.add(f"{where}.type", "must not be DOUBLE with GRID_SEARCH: list discrete values.")
        parameters.append(_parameter(param, kind))
        places.append(where)
    space = SearchSpace(tuple(parameters))
    for violation in space.violations():
        if "." in violation.field:
            number, _, field = violation.field.removeprefix("parameters[").partition("].")
            lists = f"{parameters[int(number)].kind.value}_values"
            name = _FIELDS.get(field, lists)
            faults.add(f"{places[int(number)]}.{name}", f"{violation.description}.")
    return space


def _check_bounds(given: ParameterSpec, path: str, faults: Faults) -> None:
    if given.type in ("DOUBLE", "INTEGER"):
        for name in ("min_value", "max_value"):
            if getattr(given, name) is None:
                faults.lose(f"{path}.{name}", f"is required for a parameter of type {given.type}.")
                faults.hide(f"{path}.max_value")  # nothing more is said of a range without ends


def _parameter(given: ParameterSpec, kind: ParameterKind) -> Parameter:
    is_range = kind in (ParameterKind.DOUBLE, ParameterKind.INTEGER)
    values = given.categorical_values if kind is ParameterKind.CATEGORICAL else given.discrete_values
    return Parameter(
        id=given.parameter_name,
        kind=kind,
        low=given.min_value or 0.0 if is_range else 0.0,
        high=given.max_value or 0.0 if is_range else 0.0,
        values=() if is_range else tuple(values),
        scale=_SCALES.get(given.scale_type, Scale.LINEAR),
    )


def with_trial_folder(pools: Sequence[Pool], folder: str, trial: int) -> tuple[Pool, ...]:
    """The pools with the trial's own folder behind --job-dir."""

    def word(args: tuple[str, ...], at: int) -> str:
        is_folder = bool(folder) and at > 0 and args[at - 1] == "--job-dir" and args[at] == folder
        return f"{folder.rstrip('/')}/{trial}" if is_folder else args[at]

    return tuple(
        replace(pool, args=tuple(word(pool.args, at) for at in range(len(pool.args)))) for pool in pools
    )


def render_tuning_output(study: Study, trials: Sequence[Trial], base_url: str = "") -> dict[str, Any]:
    """The trainingOutput of a job with hyperparameters. The best trials come first."""
    metric = study.spec.objectives[0].metric
    sign = -1 if study.spec.objectives[0].maximize else 1

    def place(trial: Trial) -> tuple[bool, float, int]:
        value = trial.final.values.get(metric) if trial.final is not None else None
        return value is None, sign * (value or 0.0), trial.number

    return {
        "completedTrialCount": str(sum(trial.is_final for trial in trials)),
        "trials": [_trial(study, trial, metric) for trial in sorted(trials, key=place)],
        "isHyperparameterTuningJob": True,
        "hyperparameterMetricTag": metric,
    }


def _trial(study: Study, trial: Trial, metric: str) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "trialId": str(trial.number),
        "hyperparameters": {name: parameter_text(value) for name, value in trial.point.items()},
        "state": _STATES[trial.state],
    }
    if trial.final is not None:
        answer["finalMetric"] = _metric(trial.final, metric)
    metrics = [_metric(item, metric) for item in trial.measurements if metric in item.values]
    if metrics:
        answer["allMetrics"] = metrics
    if trial.stopped and trial.is_final:
        answer["isTrialStoppedEarly"] = True
    for name, at in (("startTime", trial.started_at), ("endTime", trial.ended_at)):
        if at is not None:
            answer[name] = time_text(at)
    return answer


def _metric(measurement: Measurement, metric: str) -> Mapping[str, Any]:
    return {
        "trainingStep": str(measurement.step),
        "objectiveValue": double_json(measurement.values[metric]),
    }
