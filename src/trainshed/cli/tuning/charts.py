"""The drawings of a study as SVG: history, Pareto front, parallel coordinates, importance, curves. Pure.

Each takes what the API told and gives a drawing, or None where there is nothing to draw. Every mark has a
title that is shown when the pointer is on it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from trainshed.cli import words
from trainshed.cli.tuning import trial_words
from trainshed.cli.tuning.axis import Axis, axis_of, finite, thinned
from trainshed.cli.tuning.markup import Markup, tag
from trainshed.cli.tuning.parameter import every_spec
from trainshed.cli.tuning.trial_table import identity
from trainshed.client import Json

WIDE, HIGH = 920, 320
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 16, 40
MOST_POINTS = 3000
FADED, CLEAR = 0.12, 0.85


def drawing(*marks: Markup, high: float = HIGH, label: str) -> Markup:
    box = f"0 0 {WIDE} {high:g}"
    return tag("svg", *marks, viewBox=box, role="img", aria_label=label, xmlns="http://www.w3.org/2000/svg")


def history(analysis: Json, metric: str) -> Markup | None:
    """A mark for each trial, and the line of the best so far."""
    entries = [item for item in words.parts(analysis, "history") if finite([item.get("value")])]
    if not entries:
        return None
    bests = [item.get("best") for item in entries]
    steps = [0, *(at for at, (before, now) in enumerate(pairwise(bests), 1) if now != before)]
    entries = [entries[at] for at in thinned(entries, MOST_POINTS, steps)]
    across = replace(axis_of([int(item["trial"]) for item in entries], LEFT, WIDE - RIGHT), is_whole=True)
    up = axis_of(
        [*(item["value"] for item in entries), *(item.get("best") for item in entries)], HIGH - BOTTOM, TOP
    )
    places = [(across.at(int(item["trial"])), up.at(item["value"])) for item in entries]
    dots = [
        tag("circle", _title(f"trial {item['trial']}: {metric} {trial_words.number(item['value'])}"),
            cx=x, cy=y, r=4, class_="dot")
        for item, (x, y) in zip(entries, places, strict=True)
    ]  # fmt: skip
    line = ""
    for item, (x, _) in zip(entries, places, strict=True):
        if finite([item.get("best")]):
            y = up.at(item["best"])
            line += f"H{x:.1f}V{y:.1f}" if line else f"M{x:.1f},{y:.1f}"
    best = tag("path", _title("the best so far"), d=line, class_="best")
    return drawing(*_frame(across, up, "trial", metric), best, *dots, label=f"{metric} of each trial")


def front(trials: Sequence[Json], metrics: Sequence[str], best: Sequence[str]) -> Markup | None:
    """The first two objectives against each other, the Pareto front marked."""
    measured = [(trial, trial_words.measured(trial, metrics)) for trial in trials]
    pairs = [(t, v) for t, v in measured if len(finite(v.get(metric) for metric in metrics[:2])) == 2]
    if len(metrics) < 2 or not pairs:
        return None
    first, second = metrics[:2]
    across = axis_of([values[first] for _, values in pairs], LEFT, WIDE - RIGHT)
    up = axis_of([values[second] for _, values in pairs], HIGH - BOTTOM, TOP)
    marked = set(best)
    dots = [
        tag(
            "circle",
            _title(_trial_title(trial, values)),
            cx=across.at(values[first]),
            cy=up.at(values[second]),
            r=6 if identity(trial) in marked else 4,
            class_="dot on-front" if identity(trial) in marked else "dot",
        )
        for trial, values in pairs
    ]
    return drawing(*_frame(across, up, first, second), *dots, label=f"{second} against {first}")


def parallel(
    trials: Sequence[Json], specs: Sequence[Json], metric: str, *, is_more_better: bool
) -> Markup | None:
    """An axis for each parameter and one for the objective; a line for each trial, clearer the better."""
    rows = [(trial, trial_words.parameters(trial), trial_words.measured(trial, [metric])) for trial in trials]
    rows = [row for row in rows if finite(row[2].values())]
    names = list(dict.fromkeys(str(spec.get("parameterId")) for spec in every_spec(specs)))
    names = [name for name in names if any(name in point for _, point, _ in rows)]
    if not rows or not names:
        return None
    rows.sort(key=lambda row: row[2][metric] if is_more_better else -row[2][metric])  # the best on top
    by_name = {str(spec.get("parameterId")): spec for spec in every_spec(specs)}
    top, foot = TOP + 24, HIGH - 16
    axes = {
        name: _parameter_axis(by_name[name], [p[name] for _, p, _ in rows if name in p], foot, top)
        for name in names
    }
    goal = axis_of([values[metric] for _, _, values in rows], foot, top)
    gap = (WIDE - LEFT - 110) / len(names)
    places = {name: LEFT + at * gap for at, name in enumerate(names)}
    end = LEFT + len(names) * gap
    lines: list[Markup] = []
    for rank, (trial, point, values) in enumerate(rows, 1):
        path = [(places[name], axes[name].at(point[name])) for name in names if name in point]
        path.append((end, goal.at(values[metric])))
        shown = FADED + (CLEAR - FADED) * (rank / len(rows)) ** 3
        lines.append(
            tag(
                "path",
                _title(_trial_title(trial, values)),
                d="M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in path),
                class_="trial best" if rank == len(rows) else "trial",
                stroke_opacity=f"{1 if rank == len(rows) else shown:.2f}",
            )
        )
    marks = [_upright(places[name], axes[name], name) for name in names] + [_upright(end, goal, metric)]
    return drawing(*lines, *marks, label="parallel coordinates of parameters and objective")


def _parameter_axis(spec: Json, values: list[object], foot: float, top: float) -> Axis:
    """Words in the order of the spec, each number of a list with its tick."""
    is_log = spec.get("scaleType") == "UNIT_LOG_SCALE"
    if listed := words.part(spec, "categoricalValueSpec"):
        return axis_of(words.parts(listed, "values"), foot, top)
    marks = finite(words.parts(words.part(spec, "discreteValueSpec"), "values"))
    return replace(axis_of(values, foot, top, is_log=is_log), marks=tuple(marks))


def importance(analysis: Json) -> Markup | None:
    """A bar for each parameter, the most important first."""
    items = [
        (str(item.get("parameterId")), max(0.0, float(item.get("importance") or 0)))
        for item in words.parts(analysis, "importance")
    ]
    items = sorted((item for item in items if math.isfinite(item[1])), key=lambda item: -item[1])
    if not items:
        return None
    most = max(value for _, value in items) or 1.0
    row, start = 28, 200
    marks: list[Markup] = []
    for at, (name, value) in enumerate(items):
        y = 10 + at * row
        length = (WIDE - start - 80) * value / most
        marks += [
            tag("text", name, x=start - 10, y=y + 14, class_="name", text_anchor="end"),
            tag("rect", _title(f"{name}: {value:.1%}"), x=start, y=y, width=length, height=20, class_="bar"),
            tag("text", f"{value:.0%}", x=start + length + 8, y=y + 14),
        ]
    return drawing(*marks, high=20 + len(items) * row, label="importance of parameters")


def curves(answer: Json, best: Sequence[str]) -> Markup | None:
    """What trials measured, step by step."""
    metric = str(answer.get("metric") or "")
    listed: list[tuple[str, list[tuple[float, float]]]] = []
    for item in words.parts(answer, "curves"):
        values = words.parts(item, "values")
        steps = words.parts(item, "steps") or list(range(1, len(values) + 1))
        points = [
            (float(step), float(value))
            for step, value in zip(steps, values, strict=False)
            if len(finite((step, value))) == 2
        ]
        if points:
            listed.append((str(item.get("trial")), points))
    if not listed:
        return None
    listed.sort(key=lambda item: item[0] in best)  # the best on top
    across = replace(
        axis_of([x for _, points in listed for x, _ in points], LEFT, WIDE - RIGHT), is_whole=True
    )
    up = axis_of([y for _, points in listed for _, y in points], HIGH - BOTTOM, TOP)
    lines: list[Markup] = []
    for number, points in listed:
        kept = [points[at] for at in thinned(points, 300)]
        title = _title(
            f"trial {number}: {metric} {trial_words.number(points[-1][1])} at step {points[-1][0]:g}"
        )
        places = [(across.at(x), up.at(y)) for x, y in kept]
        kind = "trial best" if number in best else "trial"
        if len(places) == 1:
            lines.append(tag("circle", title, cx=places[0][0], cy=places[0][1], r=4, class_="dot"))
        else:
            path = "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in places)
            lines.append(
                tag("path", title, d=path, class_=kind, stroke_opacity=None if number in best else "0.45")
            )
    return drawing(*_frame(across, up, "step", metric), *lines, label=f"{metric} by step")


def _frame(across: Axis, up: Axis, below: str, beside: str) -> list[Markup]:
    """The lines, numbers and names of two axes."""
    foot = HIGH - BOTTOM
    marks = [tag("text", below, x=(LEFT + WIDE - RIGHT) / 2, y=HIGH - 6, class_="name", text_anchor="middle")]
    marks.append(tag("text", beside, x=LEFT, y=TOP - 4, class_="name"))
    for x, text in across.ticks():
        marks.append(tag("text", text, x=x, y=foot + 16, text_anchor="middle"))
    for y, text in up.ticks():
        marks.append(tag("line", x1=LEFT, x2=WIDE - RIGHT, y1=y, y2=y, class_="grid"))
        marks.append(tag("text", text, x=LEFT - 8, y=y + 4, text_anchor="end"))
    return marks


def _upright(x: float, axis: Axis, name: str) -> Markup:
    labels = axis.ticks()
    most = 12  # more would overlap
    shown = [labels[at] for at in thinned(labels, most)]
    return tag(
        "g",
        tag("line", x1=x, x2=x, y1=axis.start, y2=axis.end, class_="axis"),
        tag("text", name, x=x, y=TOP + 4, class_="name", text_anchor="middle"),
        *(tag("text", text, x=x + 6, y=y + 4, class_="on-axis") for y, text in shown),
    )


def _trial_title(trial: Json, values: Mapping[str, float]) -> str:
    point = trial_words.point_text(trial_words.parameters(trial))
    measured = " ".join(f"{name} {trial_words.number(value)}" for name, value in values.items())
    return f"trial {identity(trial)}: {measured}\n{point}"


def _title(text: str) -> Markup:
    return tag("title", text)
