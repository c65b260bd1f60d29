"""From the options of `trainshed tune` to the study the server is asked for. Pure."""

import re
from dataclasses import dataclass

from trainshed.cli.failure import Misuse
from trainshed.cli.submit_options import span
from trainshed.cli.tuning.parameter import parameter_specs
from trainshed.cli.tuning.point import read_points
from trainshed.client import Json

ALGORITHMS = {
    "default": "ALGORITHM_UNSPECIFIED",
    "grid": "GRID_SEARCH",
    "random": "RANDOM_SEARCH",
    "sobol": "SOBOL",
    "cma-es": "CMA_ES",
    "tpe": "TPE",
}
STOPPING = {
    "median": "medianAutomatedStoppingSpec",
    "decay": "decayCurveStoppingSpec",
    "convex": "convexAutomatedStoppingSpec",
    "asha": "ashaStoppingSpec",
    "hyperband": "hyperbandStoppingSpec",
}
STEPPED = ("convex", "asha", "hyperband")  # the rules that count steps
# Fields of the study -> the option that says it.
NAMES = {
    "max_trial_count": "--trials",
    "parallel_trial_count": "--parallel",
    "max_failed_trial_count": "--failed",
    "seed": "--seed",
    "display_name": "--name",
    "labels": "--label",
    "algorithm": "--algorithm",
    "metric_pattern": "--pattern",
    "prior_study_names": "--warm-start",
    "max_num_trials_no_progress": "--no-progress",
    "max_duration": "--timeout-study",
}
_STEPS = re.compile(r"(?:(\d+)\.\.)?(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneWords:
    """What a person asked `tune` for beyond what `submit` takes."""

    params: tuple[str, ...] = ()
    maximize: tuple[str, ...] = ()
    minimize: tuple[str, ...] = ()
    trials: int = 20
    parallel: int = 1
    failed: int = 0
    algorithm: str = "default"
    stop_early: str = ""
    steps: str = ""
    timeout_study: str = ""
    no_progress: int = 0
    seed: int | None = None
    pattern: str = ""
    tries: tuple[str, ...] = ()
    warm_start: tuple[str, ...] = ()


def study_body(words: TuneWords, custom_job: Json, priors: list[str]) -> Json:
    """The HyperparameterTuningJob whose trials run like this CustomJob. `priors` are names of studies."""
    spec = study_spec(words)
    if priors:
        spec["priorStudyNames"] = priors
    body: Json = {"displayName": custom_job["displayName"], "studySpec": spec}
    body |= {"maxTrialCount": words.trials, "parallelTrialCount": min(words.parallel, words.trials)}
    if words.failed:
        body["maxFailedTrialCount"] = words.failed
    if words.seed is not None:
        body["seed"] = words.seed
    if words.tries:
        body["initialTrials"] = read_points(words.tries, spec["parameters"], "--try ")
    if custom_job.get("labels"):
        body["labels"] = custom_job["labels"]
    return {**body, "trialJobSpec": custom_job["jobSpec"]}


def study_spec(words: TuneWords) -> Json:
    spec: Json = {"metrics": _metrics(words), "parameters": parameter_specs(words.params)}
    if words.algorithm != "default":
        spec["algorithm"] = ALGORITHMS[words.algorithm]
    if words.stop_early:
        spec[STOPPING[words.stop_early]] = _steps(words)
    elif words.steps:
        raise Misuse(f"--steps {words.steps} goes with --stop-early {', '.join(STEPPED)}")
    if stopping := _stopping(words):
        spec["studyStoppingConfig"] = stopping
    if words.pattern:
        spec["metricPattern"] = _pattern(words.pattern)
    return spec


def _metrics(words: TuneWords) -> list[Json]:
    goals = [(metric, "MAXIMIZE") for metric in words.maximize]
    goals += [(metric, "MINIMIZE") for metric in words.minimize]
    if not goals:
        raise Misuse(
            "say what is good: --maximize METRIC or --minimize METRIC",
            ["METRIC is the name that the program reports, as in --maximize accuracy"],
        )
    names = [metric for metric, _ in goals]
    for name in names:
        if names.count(name) > 1:
            raise Misuse(f"{name} stands twice in --maximize and --minimize: each metric has one goal")
    return [{"metricId": metric, "goal": goal} for metric, goal in goals]


def _steps(words: TuneWords) -> Json:
    if not words.steps:
        return {}
    if words.stop_early not in STEPPED:
        raise Misuse(f"--steps {words.steps}: --stop-early {words.stop_early} takes none")
    ends = _STEPS.fullmatch(words.steps)
    if not ends or int(ends[1] or 0) > int(ends[2]) or not int(ends[2]):
        raise Misuse(f"--steps {words.steps} is not [MIN..]MAX, whole numbers as in 50 or 5..50")
    most = {"maxStepCount": int(ends[2])}
    return {"minStepCount": int(ends[1]), **most} if ends[1] else most


def _stopping(words: TuneWords) -> Json:
    stopping: Json = {}
    if words.timeout_study:
        try:
            length = span(words.timeout_study)
        except ValueError as error:
            raise Misuse(f"--timeout-study {error}") from error
        stopping["maximumRuntimeConstraint"] = {"maxDuration": length}
    if words.no_progress:
        stopping["maxNumTrialsNoProgress"] = words.no_progress
    return stopping


def _pattern(text: str) -> str:
    try:
        groups = re.compile(text).groupindex
    except re.error as error:
        raise Misuse(f"--pattern {text} is no regular expression: {error}") from error
    if "value" not in groups:
        example = r"--pattern '(?P<name>\w+) is (?P<value>[-+.\deE]+)'"
        raise Misuse(f"--pattern {text} has no group called value", [f"as in: {example}"])
    return text


def option_of_study(field: str, words: TuneWords) -> str:
    """The option that said what is in a field of the study; "" where `submit` knows it or none did."""
    path = field.rpartition("study_spec.")[2] if "study_spec." in field else field
    head, _, rest = path.partition("[")
    at = int(rest.partition("]")[0]) if rest[:1].isdecimal() else 0
    if head == "parameters":
        roots = [text for text in words.params if "@" not in text.partition("=")[0]]
        return f"--param {roots[at]}" if at < len(roots) else "--param"
    if head == "metrics":
        return f"--maximize {words.maximize[at]}" if at < len(words.maximize) else "--minimize"
    if head == "initial_trials":
        return f"--try {words.tries[at]}" if at < len(words.tries) else "--try"
    if any(name in path for name in ("asha", "hyperband", "convex", "median_", "decay_")):
        return "--stop-early"
    return NAMES.get(path.rpartition(".")[2], "")
