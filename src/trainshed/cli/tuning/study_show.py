"""`trainshed study show`: one study on one screen, what matters most first."""

from collections.abc import Iterator
from datetime import UTC, datetime

from trainshed.cli import words
from trainshed.cli.paint import Paint
from trainshed.cli.tuning import trial_words
from trainshed.cli.tuning.ending import best_line, best_of, point_of, run_lines
from trainshed.cli.tuning.study_table import drawn_importance
from trainshed.cli.tuning.trial_choice import chosen_trials
from trainshed.cli.tuning.trial_table import drawn_trials, identity
from trainshed.client import Client, Json

LATEST = 8
MOST_FRONT = 50  # trials of a Pareto front that are shown


def gathered(client: Client, study: Json) -> Json:
    """All that is shown, for scripts too."""
    name = str(study["name"])
    studies = client.studies()
    analysis = studies.analysis(name)
    best = trial_words.best_ids(analysis)
    front: list[Json] = []
    if len(trial_words.objectives(study)) > 1 and best:
        wanted = set(best)
        ended = studies.trials(name, filter="state=SUCCEEDED")
        front = [trial for trial in ended if identity(trial) in wanted]
    curves = words.parts(studies.curves(name, trials=best[:1]), "curves") if best else []
    return {
        "study": study,
        "analysis": analysis,
        "best": best_of(client, study),
        "front": front,
        "latest": chosen_trials(client, study, best, LATEST),
        "curve": curves[0] if curves else {},
    }


def drawn(whole: Json) -> str:
    return "\n\n".join(filter(None, (_summary(whole), *_parts(whole))))


def _summary(whole: Json) -> str:
    paint = Paint.for_stdout()
    lines = [
        f"{paint(f'{word:<9}', 'dim')} {value}" if word else f"{'':<9} {value}"
        for word, value in _facts(whole, paint)
        if value
    ]
    return "\n".join(line.replace("\n", f"\n{'':<10}") for line in lines)  # no value makes a line of its own


def _facts(whole: Json, paint: Paint) -> Iterator[tuple[str, str]]:
    study = words.part(whole, "study")
    row, analysis = trial_words.own(study), words.part(whole, "analysis")
    yield "Study", f"{paint(str(row.get('displayName', '')), 'bold')} ({words.identity(row)})"
    yield "State", paint.state(words.state(row.get("state")))
    yield "Why", str(row.get("message") or "")
    goals = trial_words.objectives(study)
    yield "Goal", ", ".join(f"{'maximize' if more else 'minimize'} {metric}" for metric, more in goals)
    yield "Trials", trial_words.counts(row)
    left = trial_words.time_left(study, analysis)
    yield "Left", f"about {left}" if left else ""
    yield "Early", _saved(analysis)
    yield from _moments(row)
    best = words.part(whole, "best")
    if best:
        line = trial_words.curve(words.parts(words.part(whole, "curve"), "values"), 32)
        is_front = len(goals) > 1
        yield (
            "Best",
            "" if is_front else f"{paint(best_line(best), 'bold')}" + (f"  {line}" if line else ""),
        )
        yield "Point", "" if is_front else point_of(best)
        yield from () if is_front else run_lines(study, best)
    labels = words.part(study, "labels") or words.part(row, "labels")
    yield "Labels", ", ".join(f"{key}={value}" for key, value in sorted(labels.items()))
    yield "Resource", str(row.get("name", ""))


def _saved(analysis: Json) -> str:
    """How many trials were stopped early, and what that saved."""
    count = int(analysis.get("stoppedEarly") or 0)
    if not count:
        return ""
    saved = trial_words.seconds(analysis.get("savedTime"))
    return f"{count} stopped early" + (f", which saved about {saved}" if saved else "")


def _moments(row: Json) -> Iterator[tuple[str, str]]:
    now = datetime.now(UTC)
    created, started = words.moment(row.get("createTime")), words.moment(row.get("startTime"))
    ended = words.moment(row.get("endTime"))
    if created:
        yield "Created", f"{words.clock(row['createTime'])} ({words.span(now - created)} ago)"
    if ended:
        ran = f" (ran {words.span(ended - started)})" if started else ""
        yield "Ended", f"{words.clock(row['endTime'])}{ran}"


def _parts(whole: Json) -> Iterator[str]:
    study = words.part(whole, "study")
    metrics = [metric for metric, _ in trial_words.objectives(study)]
    analysis = words.part(whole, "analysis")
    best = trial_words.best_ids(analysis)
    if front := words.parts(whole, "front"):
        more = f" (the first {MOST_FRONT} of {len(front)})" if len(front) > MOST_FRONT else ""
        title = f"Pareto front: no trial is better in everything{more}"
        yield f"{title}\n{drawn_trials(front[:MOST_FRONT], metrics, best, indent='  ')}"
    if importance := words.parts(analysis, "importance"):
        yield f"Importance\n{drawn_importance(importance)}"
    if latest := words.parts(whole, "latest"):
        total = words.part(trial_words.own(study), "trials").get("total") or len(latest)
        title = f"Trials ({len(latest)} of {total})" if total != len(latest) else "Trials"
        yield f"{title}\n{drawn_trials(latest, metrics, best, indent='  ')}"
