"""A studySpec: parses Google's JSON, with our additions, into the core's StudySpec, and renders it again.

`tuning_job` and `vizier` call it. Each fault is recorded under its path; the result is valid only if there is
none. It looks nothing up: whether an earlier study exists is the service's question.
"""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from trainshed.core.tuning.search_space import ParameterKind, SearchSpace
from trainshed.core.tuning.stopping_rule import StoppingKind, StoppingRule
from trainshed.core.tuning.study import RuntimeLimit, Selection, StudySpec, StudyStopping
from trainshed.core.tuning.suggestion_port import Algorithm, NoiseLevel, Objective
from trainshed.wire import base, enums, study_schema
from trainshed.wire.faults import Faults
from trainshed.wire.parameter import PlacedParameter, parse_parameters, render_parameters
from trainshed.wire.scalars import duration_text, shown, time_text
from trainshed.wire.study_schema import StudySpecFields

MOST_METRICS = 10
LONGEST_PATTERN = 1000  # characters of a regular expression
MOST_PRIORS = 20
_BEYOND = re.compile(r"\(\?(=|!|<=|<!|P=)|\\[1-9]")

_ALGORITHMS = {
    "": Algorithm.DEFAULT,
    "GRID_SEARCH": Algorithm.GRID,
    "RANDOM_SEARCH": Algorithm.RANDOM,
    "SOBOL": Algorithm.SOBOL,
    "CMA_ES": Algorithm.CMA_ES,
    "TPE": Algorithm.TPE,
}
_ALGORITHM_NAMES = {algorithm: name for name, algorithm in _ALGORITHMS.items()}
_STOPPING = {
    "decay_curve_stopping_spec": StoppingKind.DECAY_CURVE,
    "median_automated_stopping_spec": StoppingKind.MEDIAN,
    "convex_automated_stopping_spec": StoppingKind.CONVEX,
    "convex_stop_config": StoppingKind.CONVEX,
    "asha_stopping_spec": StoppingKind.ASHA,
    "hyperband_stopping_spec": StoppingKind.HYPERBAND,
}
_STOPPING_NAMES = {
    StoppingKind.DECAY_CURVE: "decayCurveStoppingSpec",
    StoppingKind.MEDIAN: "medianAutomatedStoppingSpec",
    StoppingKind.CONVEX: "convexAutomatedStoppingSpec",
    StoppingKind.ASHA: "ashaStoppingSpec",
    StoppingKind.HYPERBAND: "hyperbandStoppingSpec",
}


def parse_study_spec(fields: StudySpecFields, faults: Faults, path: str = "study_spec") -> StudySpec:
    objectives = _objectives(fields, f"{path}.metrics", faults)
    placed = parse_parameters(fields.parameters, f"{path}.parameters", faults)
    extras = base.write(fields, study_schema.StudySpecExtras)
    safety = {m.metric_id: base.write(m.safety_config) for m in fields.metrics if m.safety_config is not None}
    if safety:
        extras["safety"] = safety
    return StudySpec(
        space=SearchSpace(tuple(item.parameter for item in placed)),
        objectives=objectives,
        algorithm=_algorithm(fields.algorithm, placed, f"{path}.algorithm", faults),
        noise=NoiseLevel.HIGH if fields.observation_noise == "HIGH" else NoiseLevel.LOW,
        selection=Selection(fields.measurement_selection_type or Selection.LAST),
        trial_stopping=_trial_stopping(fields, placed, path, faults),
        stopping=_study_stopping(fields, f"{path}.study_stopping_config", faults),
        pattern=_pattern(fields.metric_pattern, len(fields.metrics), f"{path}.metric_pattern", faults),
        prior_studies=_priors(fields.prior_study_names, f"{path}.prior_study_names", faults),
        extras=extras,
    )


def _objectives(fields: StudySpecFields, path: str, faults: Faults) -> tuple[Objective, ...]:
    if not fields.metrics:
        faults.add(path, "is required: at least one metric.")
    if len(fields.metrics) > MOST_METRICS:
        faults.add(path, f"must have at most {MOST_METRICS} metrics, not {len(fields.metrics)}.")
    names: set[str] = set()
    for number, metric in enumerate(fields.metrics):
        where = f"{path}[{number}]"
        if not metric.metric_id:
            faults.add(f"{where}.metric_id", "is required.")
        elif metric.metric_id in names:
            faults.add(f"{where}.metric_id", f"stands twice: {shown(metric.metric_id)}.")
        if not metric.goal:
            faults.add(f"{where}.goal", "is required: MAXIMIZE or MINIMIZE.")
        names.add(metric.metric_id)
    return tuple(Objective(m.metric_id, maximize=m.goal == "MAXIMIZE") for m in fields.metrics)


def _algorithm(name: str, placed: tuple[PlacedParameter, ...], path: str, faults: Faults) -> Algorithm:
    algorithm = _ALGORITHMS.get(name)
    if algorithm is None:
        known = ", ".join(known for known in _ALGORITHMS if known)
        faults.add(path, f"must be one of ALGORITHM_UNSPECIFIED, {known}, not {shown(name)}.")
        return Algorithm.DEFAULT
    for item in placed if algorithm is Algorithm.GRID else ():
        if item.parameter.kind is ParameterKind.DOUBLE:
            sentence = "must not be there with GRID_SEARCH: give the parameter a list of discrete values."
            faults.add(f"{item.path}.double_value_spec", sentence)
    return algorithm


def _trial_stopping(
    fields: StudySpecFields, placed: tuple[PlacedParameter, ...], path: str, faults: Faults
) -> StoppingRule | None:
    given = [name for name in _STOPPING if getattr(fields, name) is not None]
    if len(given) > 1:
        names = ", ".join(base.camel(name) for name in given)
        faults.add(path, f"must have at most one rule that stops trials early, and has {names}.")
    if not given:
        return None
    name = given[0]
    where, kind = f"{path}.{name}", _STOPPING[name]
    rule = _rule(kind, getattr(fields, name))
    for field, count in (("min_step_count", rule.least_step), ("max_step_count", rule.most_step)):
        if count < 0:
            faults.add(f"{where}.{field}", f"must not be negative, as {count} is.")
    if rule.least_measurements < 0:
        faults.add(f"{where}.min_measurement_count", "must not be negative.")
    if rule.most_step and rule.least_step > rule.most_step:
        faults.add(f"{where}.min_step_count", f"must not be above maxStepCount, {rule.most_step}.")
    if rule.reduction < 2:
        faults.add(f"{where}.reduction_factor", f"must be at least 2, not {rule.reduction}.")
    if rule.learning_rate and rule.learning_rate not in {item.parameter.id for item in placed}:
        sentence = f"names {shown(rule.learning_rate)}, which is no parameter."
        faults.add(f"{where}.learning_rate_parameter_name", sentence)
    return rule


def _rule(kind: StoppingKind, given: Any) -> StoppingRule:
    match given:
        case study_schema.ConvexStoppingSpec():
            return StoppingRule(
                kind=kind,
                use_elapsed=given.use_elapsed_duration,
                least_step=given.min_step_count,
                most_step=given.max_step_count,
                least_measurements=given.min_measurement_count,
                learning_rate=given.learning_rate_parameter_name,
                updates_stopped=given.update_all_stopped_trials,
            )
        case study_schema.ConvexStopConfig():
            return StoppingRule(
                kind=kind,
                use_elapsed=given.use_seconds,
                least_step=given.min_num_steps,
                most_step=given.max_num_steps,
                learning_rate=given.learning_rate_parameter_name,
            )
        case study_schema.RungStoppingSpec():
            return StoppingRule(
                kind=kind,
                use_elapsed=given.use_elapsed_duration,
                least_step=given.min_step_count,
                most_step=given.max_step_count,
                reduction=given.reduction_factor or StoppingRule(kind=kind).reduction,
            )
        case _:
            return StoppingRule(kind=kind, use_elapsed=given.use_elapsed_duration)


def _study_stopping(fields: StudySpecFields, path: str, faults: Faults) -> StudyStopping:
    given = fields.study_stopping_config
    if given is None:
        return StudyStopping()
    for name in ("min_num_trials", "max_num_trials", "max_num_trials_no_progress"):
        if getattr(given, name) < 0:
            faults.add(f"{path}.{name}", f"must not be negative, as {getattr(given, name)} is.")
    if len(fields.metrics) > 1:
        for name in ("max_num_trials_no_progress", "max_duration_no_progress"):
            if getattr(given, name):
                faults.add(f"{path}.{name}", "needs a study with one metric.")
    _check_length(given.max_duration_no_progress, f"{path}.max_duration_no_progress", faults)
    if 0 < given.max_num_trials < given.min_num_trials:
        faults.add(f"{path}.max_num_trials", f"must not be below minNumTrials, {given.min_num_trials}.")
    return StudyStopping(
        asap=given.should_stop_asap,
        least_runtime=_runtime(
            given.minimum_runtime_constraint, f"{path}.minimum_runtime_constraint", faults
        ),
        most_runtime=_runtime(given.maximum_runtime_constraint, f"{path}.maximum_runtime_constraint", faults),
        least_trials=given.min_num_trials,
        most_trials=given.max_num_trials,
        trials_without_progress=given.max_num_trials_no_progress,
        time_without_progress=given.max_duration_no_progress,
    )


def _runtime(
    given: study_schema.StudyTimeConstraint | None, path: str, faults: Faults
) -> RuntimeLimit | None:
    if given is None:
        return None
    if (given.max_duration is None) == (given.end_time is None):
        faults.add(path, "must have exactly one of maxDuration and endTime.")
    _check_length(given.max_duration, f"{path}.max_duration", faults)
    return RuntimeLimit(length=given.max_duration, end_at=given.end_time)


def _check_length(length: timedelta | None, path: str, faults: Faults) -> None:
    if length is not None and length <= timedelta():
        faults.add(path, "must be longer than 0s, as 3600s is.")


def _pattern(pattern: str, metrics: int, path: str, faults: Faults) -> str:
    """An expression that RE2 understands too, which is what reads the lines."""
    if len(pattern) > LONGEST_PATTERN or "\n" in pattern:
        faults.add(path, f"must be one line of at most {LONGEST_PATTERN} characters.")
    elif pattern:
        try:
            re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            faults.add(path, f"is no regular expression: {error}.")
        if _BEYOND.search(pattern):
            faults.add(path, "must have no look-around and no back-reference.")
        if "(?P<value>" not in pattern:
            faults.add(path, "must have a group (?P<value>…) around the number.")
        if "(?P<name>" not in pattern and metrics > 1:
            faults.add(path, "must have a group (?P<name>…) around the name: there are several metrics.")
    return pattern


def _priors(names: tuple[str, ...], path: str, faults: Faults) -> tuple[str, ...]:
    if len(names) > MOST_PRIORS:
        faults.add(path, f"must have at most {MOST_PRIORS} studies, not {len(names)}.")
    return names


def render_study_spec(spec: StudySpec, *, enum_ints: bool = False) -> dict[str, Any]:
    extras = dict(spec.extras)
    safety: Any = extras.pop("safety", {})
    answer: dict[str, Any] = {
        "metrics": [
            _metric(objective, safety.get(objective.metric), enum_ints=enum_ints)
            for objective in spec.objectives
        ],
        "parameters": render_parameters(spec.space, enum_ints=enum_ints),
    }
    if spec.algorithm is not Algorithm.DEFAULT:
        name = _ALGORITHM_NAMES[spec.algorithm]
        answer["algorithm"] = enums.render_enum(name, study_schema.ALGORITHMS, as_ints=enum_ints)
    if spec.noise is NoiseLevel.HIGH:
        extras["observationNoise"] = "HIGH"
    if spec.selection is not Selection.LAST:
        extras["measurementSelectionType"] = spec.selection.value
    for name, numbers in (
        ("observationNoise", study_schema.NOISES),
        ("measurementSelectionType", study_schema.SELECTIONS),
    ):
        if name in extras:
            answer[name] = enums.render_enum(str(extras.pop(name)), numbers, as_ints=enum_ints)
    if spec.trial_stopping is not None:
        answer[_STOPPING_NAMES[spec.trial_stopping.kind]] = _render_rule(spec.trial_stopping)
    if stopping := _render_stopping(spec.stopping):
        answer["studyStoppingConfig"] = stopping
    if spec.pattern:
        answer["metricPattern"] = spec.pattern
    return answer | extras


def _metric(objective: Objective, safety: object, *, enum_ints: bool) -> dict[str, Any]:
    goal = "MAXIMIZE" if objective.maximize else "MINIMIZE"
    answer: dict[str, Any] = {
        "metricId": objective.metric,
        "goal": enums.render_enum(goal, study_schema.GOALS, as_ints=enum_ints),
    }
    return answer if safety is None else {**answer, "safetyConfig": safety}


def _render_rule(rule: StoppingRule) -> dict[str, Any]:
    """Without what was left to the rule, and without what only an Experiment can say of the median rule."""
    if rule.kind is StoppingKind.MEDIAN:
        return {"useElapsedDuration": True} if rule.use_elapsed else {}
    answer: dict[str, Any] = {
        "maxStepCount": str(rule.most_step) if rule.most_step else "",
        "minStepCount": str(rule.least_step) if rule.least_step else "",
        "minMeasurementCount": str(rule.least_measurements) if rule.least_measurements else "",
        "learningRateParameterName": rule.learning_rate,
        "useElapsedDuration": rule.use_elapsed,
        "updateAllStoppedTrials": rule.updates_stopped,
    }
    if rule.kind in (StoppingKind.ASHA, StoppingKind.HYPERBAND):
        answer["reductionFactor"] = rule.reduction
    return {name: value for name, value in answer.items() if value}


def _render_stopping(stopping: StudyStopping) -> dict[str, Any]:
    length = stopping.time_without_progress
    answer: Mapping[str, Any] = {
        "shouldStopAsap": stopping.asap,
        "minimumRuntimeConstraint": _render_runtime(stopping.least_runtime),
        "maximumRuntimeConstraint": _render_runtime(stopping.most_runtime),
        "minNumTrials": stopping.least_trials,
        "maxNumTrials": stopping.most_trials,
        "maxNumTrialsNoProgress": stopping.trials_without_progress,
        "maxDurationNoProgress": "" if length is None else duration_text(length),
    }
    return {name: value for name, value in answer.items() if value}


def _render_runtime(limit: RuntimeLimit | None) -> dict[str, Any]:
    if limit is None:
        return {}
    if limit.length is not None:
        return {"maxDuration": duration_text(limit.length)}
    return {"endTime": time_text(limit.end_at)} if limit.end_at is not None else {}
