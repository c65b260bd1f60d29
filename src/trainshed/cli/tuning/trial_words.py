"""Studies and trials in words for people: parameters, values, marks, curves, command lines. Pure."""

import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from trainshed.cli import words
from trainshed.cli.submit_options import IMAGE, MACHINE
from trainshed.client import Json

BARS = "▁▂▃▄▅▆▇█"
BEST = "★"
CURVE = 16  # letters of a curve in a table
ENDED = ("SUCCEEDED", "INFEASIBLE")
MASK = "(secret, not shown)"  # what the server tells instead of a secret
FINAL = ("SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED")


def own(study: Json) -> Json:
    """What is our own about a study: the row itself, or the part of Google's resource that has it."""
    return words.part(study, "trainshed") or study


def is_ended(study: Json) -> bool:
    return words.state(own(study).get("state")) in FINAL


def objectives(study: Json) -> list[tuple[str, bool]]:
    """Each metric, and whether more of it is better."""
    listed = words.parts(own(study), "objectives") or words.parts(words.part(study, "studySpec"), "metrics")
    return [(str(item.get("metricId")), item.get("goal") == "MAXIMIZE") for item in listed]


def parameters(trial: Json) -> Json:
    """The trial's point, from either form in which the API tells it."""
    value: object = trial.get("parameters")
    if isinstance(value, dict):
        return value  # pyright: ignore[reportUnknownVariableType]
    return {str(item["parameterId"]): item.get("value") for item in words.parts(trial, "parameters")}


def measured(trial: Json, metrics: Iterable[str]) -> dict[str, float]:
    """The values that count, or as long as it runs the last it measured."""
    final = words.part(trial, "finalMeasurement")
    measurements = words.parts(trial, "measurements")
    latest = final or (measurements[-1] if measurements else {})
    values = {
        str(item.get("metricId")): _float(item.get("value", 0)) for item in words.parts(latest, "metrics")
    }
    names = list(metrics)
    if "value" in trial and names:
        values.setdefault(names[0], _float(trial["value"]))
    return {name: values[name] for name in names if name in values}


def _float(value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        return math.nan


def number(value: object) -> str:
    """A measured value, as exactly as a table has room for."""
    return f"{value:.5g}" if isinstance(value, int | float) else str(value)


def exact(value: object) -> str:
    """A parameter as the trial was given it: a whole number has no fraction."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def brief(value: object) -> str:
    """A parameter for a table."""
    if isinstance(value, float) and not value.is_integer():
        return f"{value:.4g}"
    return exact(value)


def point_text(point: Mapping[str, object], *, whole: bool = False) -> str:
    """lr=0.01 batch=32"""
    return " ".join(f"{name}={exact(value) if whole else brief(value)}" for name, value in point.items())


def ran(trial: Json, now: datetime) -> timedelta | None:
    started = words.moment(trial.get("startTime"))
    ended = words.moment(trial.get("endTime")) or now
    return ended - started if started else None


def took(trial: Json) -> str:
    length = ran(trial, datetime.now(UTC))
    return words.span(length) if length is not None else ""


def note(trial: Json) -> str:
    """Why a trial has no value, or ended early; that a person asked for it."""
    reason = str(trial.get("infeasibleReason") or "")
    stopped = str(trial.get("stopReason") or "")
    stopped = "" if stopped in reason else f"stopped early: {stopped}"
    waits = "waits" if trial.get("jobState") in ("JOB_STATE_QUEUED", "QUEUED") else ""
    given = "given" if trial.get("isGiven") else ""
    return "; ".join(filter(None, (given, reason, stopped, waits)))


def curve(values: Sequence[object], room: int = CURVE) -> str:
    """A line of bars from the least to the most; a value that is no number leaves a gap."""
    numbers = [_float(value) for value in values]
    if len(numbers) > room:
        numbers = [numbers[at * (len(numbers) - 1) // (room - 1)] for at in range(room)]
    finite = [value for value in numbers if math.isfinite(value)]
    if len(finite) < 2:
        return ""
    low, high = min(finite), max(finite)
    height = (high - low) or 1.0
    return "".join(
        BARS[min(7, int((value - low) / height * 7.999))] if math.isfinite(value) else " "
        for value in numbers
    ).rstrip()


def ended_count(row: Json) -> int:
    by_state = words.part(words.part(row, "trials"), "byState")
    return sum(int(by_state.get(state) or 0) for state in ENDED)


def counts(row: Json) -> str:
    """12 of 20 trials ended: 9 succeeded, 1 infeasible, 2 active"""
    trials = words.part(row, "trials")
    by_state = words.part(trials, "byState")
    listed = ", ".join(f"{count} {str(state).lower()}" for state, count in by_state.items() if count)
    most = trials.get("max")
    total = int(most or trials.get("total") or 0)
    text = f"{ended_count(row)} of {total} trial{'' if total == 1 else 's'}"
    waiting = int(trials.get("waiting") or 0)
    queued = f" ({waiting} in the queue)" if waiting else ""
    return f"{text} ended" + (f": {listed}{queued}" if listed else "")


def seconds(text: object) -> str:
    """A duration of the API, as 123s, in words."""
    length = _float(str(text or "").removesuffix("s"))
    return words.span(timedelta(seconds=length)) if math.isfinite(length) else ""


def time_left(study: Json, analysis: Json) -> str:
    """When the study may end; nothing of one that has."""
    return "" if is_ended(study) else seconds(analysis.get("eta"))


def best_ids(analysis: Json) -> list[str]:
    return [str(number) for number in words.parts(analysis, "best")]


def program_line(job: Json) -> str:
    """What the first pool runs, to be pasted into a shell."""
    container = words.part((words.pools(job) or [{}])[0], "containerSpec")
    package = words.part((words.pools(job) or [{}])[0], "pythonPackageSpec")
    module = ["python", "-m", str(package["pythonModule"])] if package.get("pythonModule") else []
    args = words.parts(container, "args") or words.parts(package, "args")
    return shlex.join([*module, *map(str, words.parts(container, "command")), *map(str, args)])


def submit_line(job: Json) -> str:
    """The `trainshed submit` that runs a CustomJob again; "" where it was not made by such a command."""
    spec = words.part(job, "jobSpec")
    pools = words.pools(job)
    container = words.part(pools[0], "containerSpec") if pools else {}
    command = list(map(str, words.parts(container, "command")))
    target = _target(command)
    if not target or not spec.get("code") or spec.get("requirements"):
        return ""  # the file that requirements came from is not known
    machine = words.part(pools[0], "machineSpec")
    options = [
        ("--machine", machine.get("machineType"), MACHINE),
        ("--runtime", container.get("imageUri"), IMAGE),
    ]
    if machine.get("acceleratorType"):
        gpu = f"{machine['acceleratorType']}:{machine.get('acceleratorCount') or 1}"
        options.append(("--gpu", gpu, ""))
    if (replicas := words.replica_count(job)) > 1:
        options.append(("--replicas", str(replicas), ""))
    if output := words.part(spec, "baseOutputDirectory").get("outputUriPrefix"):
        options.append(("--output", output, ""))
    for item in words.parts(container, "env"):
        if item.get("secret") or item.get("value") == MASK:
            options.append(("--secret", item.get("name"), ""))
        else:
            options.append(("--env", f"{item.get('name')}={item.get('value', '')}", ""))
    line = ["trainshed", "submit", *target]
    line += [
        text for name, value, usual in options if value and value != usual for text in (name, str(value))
    ]
    args = list(map(str, words.parts(container, "args")))
    return shlex.join([*line, *(["--", *args] if args else [])])


def _target(command: list[str]) -> list[str]:
    match command:
        case ["python", "-m", module]:
            return ["-m", module]
        case ["python" | "sh" | "bash", script]:
            return [script]
        case [program] if program.startswith("./") or "/" in program:
            return [program]
        case _:
            return []
