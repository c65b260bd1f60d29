"""The table of trials: a column for each parameter and each metric. `tune` and `study` draw it."""

from collections.abc import Iterable, Mapping, Sequence

from trainshed.cli import words
from trainshed.cli.paint import Paint
from trainshed.cli.tuning import trial_words
from trainshed.client import Json

MOST_COLUMNS = 12  # of parameters: with more they stand in one


def drawn_trials(
    trials: Sequence[Json],
    metrics: Sequence[str],
    best: Iterable[str],
    curves: Mapping[str, Sequence[object]] | None = None,
    *,
    indent: str = "",
) -> str:
    """The trials in the order given, the best ones marked."""
    from trainshed.cli.table import table

    marked = set(best)
    points = [trial_words.parameters(trial) for trial in trials]
    names = list(dict.fromkeys(name for point in points for name in point))
    split = 0 < len(names) <= MOST_COLUMNS
    rows = [
        [*_row(trial, point, names if split else [], metrics, marked), _curve(trial, curves), _note(trial)]
        for trial, point in zip(trials, points, strict=True)
    ]
    parameters = names if split else ["PARAMETERS"]
    return table(["", "TRIAL", "STATE", *parameters, *metrics, "TIME", "CURVE", "NOTE"], rows, indent=indent)


def _row(
    trial: Json, point: Json, names: Sequence[str], metrics: Sequence[str], marked: set[str]
) -> list[str]:
    paint = Paint.for_stdout()
    is_best = identity(trial) in marked
    bold = "bold" if is_best else None
    values = trial_words.measured(trial, metrics)
    if names:
        cells = [trial_words.brief(point[name]) if name in point else "" for name in names]
    else:
        cells = [trial_words.point_text(point)]
    return [
        paint(trial_words.BEST, "yellow") if is_best else "",
        paint(identity(trial), bold),
        paint.state(words.state(trial.get("state"))),
        *cells,
        *(paint(trial_words.number(values[name]), bold) if name in values else "" for name in metrics),
        trial_words.took(trial),
    ]


def _curve(trial: Json, curves: Mapping[str, Sequence[object]] | None) -> str:
    return trial_words.curve(curves.get(identity(trial), ())) if curves else ""


def _note(trial: Json) -> str:
    return trial_words.note(trial).partition("\n")[0]


def identity(trial: Json) -> str:
    return str(trial.get("id") or words.identity(trial))
