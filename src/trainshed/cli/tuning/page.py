"""A study as one HTML page that needs no network: its best trial, its drawings, its best trials. Pure.

The page runs no script and its policy allows no request, so what stands in names can do nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from trainshed.cli import words
from trainshed.cli.tuning import charts, trial_words
from trainshed.cli.tuning.ending import best_line, point_of, run_lines
from trainshed.cli.tuning.markup import Markup, joined, tag
from trainshed.cli.tuning.trial_table import identity
from trainshed.client import Json

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
LISTED = 50  # trials in the table
STYLE = """
:root { color-scheme: light dark; --ground: #fff; --ink: #1c2126; --soft: #5b6670; --rule: #dde2e7;
  --mark: #2563eb; --best: #c2410c }
@media (prefers-color-scheme: dark) { :root { --ground: #14181c; --ink: #e6eaee; --soft: #9aa6b2;
  --rule: #2d353d; --mark: #6ea8fe; --best: #fb923c } }
body { margin: 2rem auto; max-width: 60rem; padding: 0 1rem; background: var(--ground); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif }
h1 { font-size: 1.5rem; margin: 0 }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem }
p { margin: .25rem 0; color: var(--soft) }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1rem }
dt { color: var(--soft) }
dd { margin: 0; overflow-wrap: anywhere }
code { font-family: ui-monospace, monospace }
svg { width: 100%; height: auto; display: block; overflow: visible }
svg text { fill: var(--soft); font: 12px system-ui, sans-serif }
svg .name { fill: var(--ink); font-weight: 600 }
svg .on-axis { paint-order: stroke; stroke: var(--ground); stroke-width: 3px }
.grid { stroke: var(--rule) }
.axis { stroke: var(--soft) }
.bar { fill: var(--mark) }
.dot { fill: var(--mark); fill-opacity: .7 }
.dot.on-front, .dot:hover { fill: var(--best); fill-opacity: 1 }
path { fill: none; stroke: var(--mark); stroke-width: 1.5 }
path.best { stroke: var(--best); stroke-width: 2.5 }
path.trial:hover { stroke-width: 4; stroke-opacity: 1 }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: .2rem .7rem; text-align: left; border-bottom: 1px solid var(--rule); white-space: nowrap }
tr.best td { font-weight: 600 }
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyPicture:
    """All that the page shows, as the API told it. `trials` are the best ones, the best first."""

    study: Json
    analysis: Json
    best: Json
    trials: Sequence[Json]
    curves: Json


def page(picture: StudyPicture) -> str:
    row = trial_words.own(picture.study)
    name = str(row.get("displayName") or words.identity(row))
    head = tag(
        "head",
        Markup('<meta charset="utf-8"><meta name="viewport" content="width=device-width">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
        tag("title", f"{name}: study"),
        tag("style", Markup(STYLE)),
    )
    body = tag("body", tag("h1", name), tag("p", _subtitle(row)), _facts(picture), *_sections(picture))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _subtitle(row: Json) -> str:
    state = words.state(row.get("state")).lower()
    return f"Study {words.identity(row)}, {state}: {trial_words.counts(row)}"


def _facts(picture: StudyPicture) -> Markup:
    goals = trial_words.objectives(picture.study)
    goal = ", ".join(f"{'maximize' if more else 'minimize'} {metric}" for metric, more in goals)
    lines: list[tuple[str, str]] = [("Goal", goal)]
    if message := str(trial_words.own(picture.study).get("message") or ""):
        lines.append(("Why", message))
    if picture.best and len(goals) == 1:
        lines += [("Best", best_line(picture.best)), ("Point", point_of(picture.best))]
        lines += run_lines(picture.study, picture.best)
    items = [tag("dt", word) + tag("dd", _value(word, text)) for word, text in lines if text]
    return tag("dl", *map(Markup, items))


def _value(word: str, text: str) -> Markup | str:
    return tag("code", text) if word in ("Point", "Run it", "Or") else text


def _sections(picture: StudyPicture) -> list[Markup]:
    goals = trial_words.objectives(picture.study)
    metrics = [metric for metric, _ in goals]
    metric, is_more_better = goals[0] if goals else ("value", True)
    best = trial_words.best_ids(picture.analysis)
    specs = words.parts(words.part(picture.study, "studySpec"), "parameters")
    drawings = (
        ("Pareto front", charts.front(picture.trials, metrics, best)),
        ("History", charts.history(picture.analysis, metric)),
        (
            "Parallel coordinates",
            charts.parallel(picture.trials, specs, metric, is_more_better=is_more_better),
        ),
        ("Importance of parameters", charts.importance(picture.analysis)),
        ("Learning curves", charts.curves(picture.curves, best)),
    )
    sections = [
        tag("section", tag("h2", title), drawing) for title, drawing in drawings if drawing is not None
    ]
    if not sections:
        sections.append(tag("p", "No trial has measured anything yet."))
    return [*sections, *_table(picture.trials[:LISTED], metrics, best)]


def _table(trials: Sequence[Json], metrics: Sequence[str], best: Sequence[str]) -> list[Markup]:
    if not trials:
        return []
    points = [trial_words.parameters(trial) for trial in trials]
    names = list(dict.fromkeys(name for point in points for name in point))
    head = tag("tr", *(tag("th", text) for text in ("Trial", "State", *metrics, *names, "Time")))
    rows: list[Markup] = []
    for trial, point in zip(trials, points, strict=True):
        values = trial_words.measured(trial, metrics)
        cells = [identity(trial), words.state(trial.get("state"))]
        cells += [trial_words.number(values[name]) if name in values else "" for name in metrics]
        cells += [trial_words.brief(point[name]) if name in point else "" for name in names]
        is_best = identity(trial) in best
        row = tag(
            "tr",
            *(tag("td", text) for text in (*cells, trial_words.took(trial))),
            class_="best" if is_best else None,
        )
        rows.append(row)
    table = tag("div", tag("table", tag("thead", head), tag("tbody", joined(*rows))), class_="wide")
    return [tag("section", tag("h2", f"The best {len(trials)} trials"), table)]
