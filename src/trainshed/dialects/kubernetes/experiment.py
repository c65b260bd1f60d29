"""Converts an Experiment of Katib to a study. For `manifest.py`. Pure.

The trialSpec, a manifest of any kind that becomes a job, is the template; `${trialParameters.NAME}` in it is
the value of the parameter that NAME refers to. The goal ends the study. Faults are collected with their path
in the manifest. Each ignored field gives a note. The document may have any shape: `shape.py` reports wrong
types, and this module skips those fields.
"""

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from trainshed.core.errors import Invalid
from trainshed.core.tuning.search_space import Parameter, ParameterKind, Scale, SearchSpace
from trainshed.core.tuning.stopping_rule import StoppingKind, StoppingRule
from trainshed.core.tuning.study import (
    MAX_PARALLEL,
    MAX_TRIALS,
    Selection,
    StudyLimits,
    StudySpec,
    StudyStopping,
)
from trainshed.core.tuning.suggestion_port import Algorithm, Objective
from trainshed.dialects.kubernetes.shape import number, part, parts, text, texts
from trainshed.dialects.kubernetes.trial_manifest import filled, place, places_elsewhere
from trainshed.wire.faults import Faults
from trainshed.wire.scalars import shown

TRIAL_SPEC = "spec.trialTemplate.trialSpec"
TRIALS, PARALLEL = 30, 3  # Katib's own defaults are no limit, and 3
MOST_STEPS = 1000  # values that a range with a step becomes
_KINDS = ("double", "int", "categorical", "discrete")
_ALGORITHMS = {
    "random": Algorithm.RANDOM,
    "grid": Algorithm.GRID,
    "bayesianoptimization": Algorithm.DEFAULT,
    "tpe": Algorithm.TPE,
    "multivariate-tpe": Algorithm.TPE,
    "cmaes": Algorithm.CMA_ES,
    "sobol": Algorithm.SOBOL,
}
_MEDIAN_DEFAULTS = {"start_step": 4, "min_trials_required": 3}  # Katib's
_GROUP = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\((?!\?)")  # escapes and sets are passed over


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A study without its template, and the manifest of the job that is its template."""

    spec: StudySpec
    limits: StudyLimits
    job: Mapping[str, Any]
    seed: int | None = None
    notes: tuple[str, ...] = ()


def convert_experiment(document: Mapping[str, Any], faults: Faults) -> Experiment:
    """The requested study. Valid only if no faults were recorded."""
    spec, notes = part(document, "spec"), list[str]()
    algorithm, seed = _algorithm(spec, faults, notes)
    space = _space(spec, algorithm, faults, notes)
    objective, target = _objective(part(spec, "objective"), faults)
    if number(spec, "maxTrialCount") is None:
        notes.append(f"spec.maxTrialCount is not there: at most {TRIALS} trials are run.")
    return Experiment(
        spec=StudySpec(
            space=space,
            objectives=(objective,),
            algorithm=algorithm,
            selection=_selection(part(spec, "objective"), objective, faults),
            trial_stopping=_early_stopping(part(spec, "earlyStopping"), faults, notes),
            stopping=StudyStopping(target=target),
            pattern=_pattern(part(spec, "metricsCollectorSpec"), faults, notes),
        ),
        limits=StudyLimits(
            trials=_count(spec, "maxTrialCount", TRIALS, MAX_TRIALS, faults),
            parallel=_count(spec, "parallelTrialCount", PARALLEL, MAX_PARALLEL, faults),
            failed=_count(spec, "maxFailedTrialCount", 0, MAX_TRIALS, faults),
        ),
        job=_job(document, space, faults),
        seed=seed,
        notes=tuple(notes),
    )


def _objective(given: Mapping[str, Any], faults: Faults) -> tuple[Objective, float | None]:
    name, kind = text(given, "objectiveMetricName"), text(given, "type")
    if not name:
        faults.add("spec.objective.objectiveMetricName", "is required.")
    if kind not in ("maximize", "minimize"):
        faults.add("spec.objective.type", f"must be maximize or minimize, not {shown(kind)}.")
    return Objective(name, maximize=kind == "maximize"), _number(given.get("goal"))


def _selection(given: Mapping[str, Any], objective: Objective, faults: Faults) -> Selection:
    """Which value of a trial counts: in Katib the best one, if the file does not say otherwise."""
    best = "max" if objective.maximize else "min"
    selection = Selection.BEST
    for at, row in enumerate(parts(given, "metricStrategies")):
        if text(row, "name") == objective.metric and (value := text(row, "value")) != best:
            selection = Selection.LAST
            if value != "latest":
                sentence = f"must be {best} or latest for this objective, not {shown(value)}."
                faults.add(f"spec.objective.metricStrategies[{at}].value", sentence)
    return selection


def _algorithm(spec: Mapping[str, Any], faults: Faults, notes: list[str]) -> tuple[Algorithm, int | None]:
    """The algorithm and its seed."""
    given = part(spec, "algorithm")
    name = text(given, "algorithmName")
    settings = _settings(given, ("random_state",), "spec.algorithm", faults, notes)
    if name not in _ALGORITHMS:
        known = ", ".join(_ALGORITHMS)
        faults.add("spec.algorithm.algorithmName", f"must be one of {known}, not {shown(name)}.")
    return _ALGORITHMS.get(name, Algorithm.DEFAULT), settings.get("random_state")


def _settings(
    given: Mapping[str, Any], known: Collection[str], path: str, faults: Faults, notes: list[str]
) -> dict[str, int]:
    """Those that are understood, which are whole numbers. The others give notes."""
    settings: dict[str, int] = {}
    for at, row in enumerate(parts(given, "algorithmSettings")):
        where, name = f"{path}.algorithmSettings[{at}]", text(row, "name")
        if name not in known:
            notes.append(f"{where} is ignored: {shown(name)} is not known here.")
        elif (whole := _whole(row.get("value"))) is not None:
            settings[name] = whole
        else:
            faults.add(f"{where}.value", f"must be a whole number, not {shown(row.get('value'))}.")
    return settings


def _early_stopping(given: Mapping[str, Any], faults: Faults, notes: list[str]) -> StoppingRule | None:
    if not given:
        return None
    if (name := text(given, "algorithmName")) != "medianstop":
        faults.add("spec.earlyStopping.algorithmName", f"must be medianstop, not {shown(name)}.")
    settings = _settings(given, _MEDIAN_DEFAULTS, "spec.earlyStopping", faults, notes)
    settings = _MEDIAN_DEFAULTS | settings
    return StoppingRule(
        kind=StoppingKind.MEDIAN,
        least_measurements=settings["start_step"],
        least_trials=settings["min_trials_required"],
    )


def _space(spec: Mapping[str, Any], algorithm: Algorithm, faults: Faults, notes: list[str]) -> SearchSpace:
    parameters: list[Parameter] = []
    for at, given in enumerate(parts(spec, "parameters")):
        parameters.append(_parameter(given, f"spec.parameters[{at}]", faults, notes))
    space = SearchSpace(tuple(parameters))
    fields = {
        "id": "name",
        "low": "feasibleSpace.min",
        "high": "feasibleSpace.max",
        "values": "feasibleSpace.list",
    }
    for violation in space.violations():
        at, _, field = violation.field.removeprefix("parameters[").partition("].")
        path = f"spec.parameters[{at}].{fields.get(field, 'feasibleSpace')}" if field else "spec.parameters"
        if not faults.under(path):
            faults.add(path, f"{violation.description}.")
    for at, parameter in enumerate(parameters):
        if algorithm is Algorithm.GRID and parameter.kind is ParameterKind.DOUBLE:
            faults.add(f"spec.parameters[{at}].feasibleSpace.step", "is required with the algorithm grid.")
    return space


def _parameter(given: Mapping[str, Any], path: str, faults: Faults, notes: list[str]) -> Parameter:
    name, kind, room = text(given, "name"), text(given, "parameterType"), part(given, "feasibleSpace")
    values = texts(room, "list")
    if kind == "categorical":
        return Parameter(id=name, kind=ParameterKind.CATEGORICAL, values=tuple(values))
    if kind == "discrete":
        numbers = [_number(value) for value in values]
        if None in numbers:
            faults.add(f"{path}.feasibleSpace.list", "must have numbers.")
        return Parameter(
            id=name, kind=ParameterKind.DISCRETE, values=tuple(sorted(n for n in numbers if n is not None))
        )
    if kind not in _KINDS:
        faults.add(f"{path}.parameterType", f"must be one of {', '.join(_KINDS)}, not {shown(kind)}.")
    bounds = {end: _number(room.get(end)) for end in ("min", "max")}
    for end, bound in bounds.items():
        if bound is None:
            faults.add(f"{path}.feasibleSpace.{end}", "must be a number.")
    low, high = bounds["min"] or 0.0, bounds["max"] or 0.0
    step = _number(room.get("step"))
    if step is not None and step > 0 and (kind == "double" or step != 1):
        return _stepped(name, (low, high, step), path, faults)
    distribution = text(room, "distribution")
    if distribution in ("normal", "logNormal"):
        notes.append(f"{path}.feasibleSpace.distribution is read as uniform: points follow what trials tell.")
    return Parameter(
        id=name,
        kind=ParameterKind.INTEGER if kind == "int" else ParameterKind.DOUBLE,
        low=low,
        high=high,
        scale=Scale.LOG if distribution in ("logUniform", "logNormal") else Scale.LINEAR,
    )


def _stepped(name: str, room: tuple[float, float, float], path: str, faults: Faults) -> Parameter:
    low, high, step = room
    steps = (high - low) / step  # infinite, where the range has more than a number can say
    if not 0 <= steps < MOST_STEPS:
        sentence = f"must give 1 to {MOST_STEPS} values from {low:g} to {high:g}, and {step:g} does not."
        faults.add(f"{path}.feasibleSpace.step", sentence)
        steps = 0
    count = math.floor(steps + 1e-9) + 1
    values = tuple(round(low + at * step, 12) for at in range(count))
    return Parameter(id=name, kind=ParameterKind.DISCRETE, values=values)


def _pattern(given: Mapping[str, Any], faults: Faults, notes: list[str]) -> str:
    kind = text(part(given, "collector"), "kind") or "StdOut"
    if kind not in ("StdOut", "TensorFlowEvent", "None"):
        known = "StdOut, TensorFlowEvent or None"
        faults.add("spec.metricsCollectorSpec.collector.kind", f"must be {known}, not {shown(kind)}.")
    formats = texts(part(part(given, "source"), "filter"), "metricsFormat")
    if len(formats) > 1:
        notes.append("spec.metricsCollectorSpec.source.filter.metricsFormat: only the first is used.")
    return named_groups(formats[0]) if formats and kind == "StdOut" else ""


def named_groups(pattern: str) -> str:
    """Katib's pattern, whose first group is the name and whose second is the value, with these names."""
    names = iter(("name", "value"))

    def named(match: re.Match[str]) -> str:
        name = next(names, "") if match[0] == "(" else ""
        return f"(?P<{name}>" if name else match[0]

    return _GROUP.sub(named, pattern)


def _job(document: Mapping[str, Any], space: SearchSpace, faults: Faults) -> Mapping[str, Any]:
    """The manifest of a trial's job, with the parameters' own names in its places."""
    template, where = part(part(document, "spec"), "trialTemplate"), "spec.trialTemplate"
    names = {text(row, "name"): text(row, "reference") for row in parts(template, "trialParameters")}
    known = {parameter.id for parameter in space.parameters}
    for at, (name, reference) in enumerate(names.items()):
        if reference not in known:
            sentence = f"must be the name of a parameter, not {shown(reference)}."
            faults.add(f"{where}.trialParameters[{at}].reference", sentence)
        elif not name:
            faults.add(f"{where}.trialParameters[{at}].name", "is required.")
    if missing := sorted(known - set(names.values())):
        sentence = f"must have a place for each parameter; {', '.join(missing)} has none."
        faults.add(f"{where}.trialParameters", sentence)
    job = part(template, "trialSpec")
    if not job:
        faults.add(TRIAL_SPEC, "is required: the manifest of a trial's job.")
    for unknown in sorted(set(places_elsewhere(job)) - set(names)):
        sentence = f"has {place(unknown[:100])}, and there is no such parameter."
        faults.add(TRIAL_SPEC, sentence)
    _check_primary(text(template, "primaryContainerName"), job, faults)
    renamed: Any = filled(job, {name: place(reference) for name, reference in names.items()})
    own = part(document, "metadata")
    metadata = {name: own[name] for name in ("name", "namespace") if name in own}
    return {**renamed, "metadata": {**part(renamed, "metadata"), **metadata}}


def _check_primary(name: str, job: Mapping[str, Any], faults: Faults) -> None:
    """What the first container reports counts, and the trial ends as it does."""
    spec = part(job, "spec")
    pod = part(part(spec, "template"), "spec") if job.get("kind") == "Job" else spec
    names = [text(container, "name") for container in parts(pod, "containers")]
    if name and len(names) > 1 and name != names[0]:
        sentence = f"must be the first container, {shown(names[0])}, not {shown(name)}: put that one first."
        faults.add("spec.trialTemplate.primaryContainerName", sentence)


def prefixed(error: Invalid, faults: Faults, values: str = "") -> None:
    """Record the faults of the job under their place in the experiment. `values`: those of the trial."""
    for violation in error.violations:
        if violation.field in ("metadata.name", "metadata.namespace"):
            continue  # the job has those of the experiment
        faults.add(f"{TRIAL_SPEC}.{violation.field}", f"{violation.description}{values}")


def _count(spec: Mapping[str, Any], name: str, default: int, most: int, faults: Faults) -> int:
    count = number(spec, name)
    if count is None:
        return default
    if not (0 if name == "maxFailedTrialCount" else 1) <= count <= most:
        faults.add(f"spec.{name}", f"must be between 1 and {most}, not {count}.")
    return count


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        result = float(value)
    except (ValueError, OverflowError):
        return None
    return result if math.isfinite(result) else None


def _whole(value: object) -> int | None:
    result = _number(value)
    return int(result) if result is not None and result >= 0 and result.is_integer() else None
