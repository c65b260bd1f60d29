"""Our own answers about studies: rows of lists, pages of trials, analyses, curves and the best point.

`api/study_views.py` calls it. Google's clients never ask for these.
"""

from collections.abc import Sequence
from typing import Any

from trainshed.core.errors import Violation
from trainshed.core.jobs.job import Job
from trainshed.core.jobs.secret import has_masks
from trainshed.core.tuning.study import Study, Trial, TrialState
from trainshed.core.tuning.study_analysis import StudyAnalysis
from trainshed.core.tuning.trial_job import flags, point_spec
from trainshed.core.tuning.trial_outline import StudyFigures, TrialOrder, TrialOutline
from trainshed.wire import enums
from trainshed.wire.custom_job import LONGEST_NAME, render_spec
from trainshed.wire.faults import invalid
from trainshed.wire.filter_tokens import TokenKind, tokens
from trainshed.wire.job_status import render_waiting
from trainshed.wire.scalars import double_json, duration_text, time_text
from trainshed.wire.trial import render_trial
from trainshed.wire.tuning_job import render_study_life

_ORDERS = {
    "id": TrialOrder.NUMBER,
    "value": TrialOrder.VALUE,
    "start_time": TrialOrder.STARTED,
    "startTime": TrialOrder.STARTED,
    "duration": TrialOrder.SECONDS,
}


def render_study_row(study: Study, figures: StudyFigures) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": study.name,
        "displayName": study.display_name,
        "state": enums.state_name(study.job_state),
        "createTime": time_text(study.created_at),
        **render_study_life(study),
        "kind": study.kind.value,
        "objectives": render_objectives(study),
        "trials": {
            "total": figures.total,
            "byState": {state.value: count for state, count in figures.by_state.items()},
        },
        "version": study.version,
    }
    if study.template is not None:
        row["trials"] |= {
            "max": study.limits.trials,
            "parallel": study.limits.parallel,
            "waiting": figures.waiting,
        }
    if figures.best is not None:
        row["best"] = render_best(study, figures.best)
    if study.submitter:
        row["submitter"] = study.submitter
    if study.labels:
        row["labels"] = dict(study.labels)
    waiting = study.status.waiting
    if message := study.status.message or (waiting.message if waiting is not None else ""):
        row["message"] = message
    if waiting is not None:
        row["waiting"] = render_waiting(waiting)
    return row


def render_objectives(study: Study) -> list[dict[str, Any]]:
    return [
        {"metricId": objective.metric, "goal": "MAXIMIZE" if objective.maximize else "MINIMIZE"}
        for objective in study.spec.objectives
    ]


def render_best(study: Study, best: TrialOutline) -> dict[str, Any]:
    return {
        "trial": str(best.number),
        "value": best.value,
        "metric": study.spec.objectives[0].metric,
        "parameters": dict(best.point),
    }


def render_trial_row(study: Study, trial: Trial, job: Job | None, base_url: str) -> dict[str, Any]:
    """Google's trial without its measurements, and our own fields."""
    row = render_trial(study, trial, base_url=base_url, measurements=False)
    metric = study.spec.objectives[0].metric
    last = trial.final or (trial.measurements[-1] if trial.measurements else None)
    if last is not None and metric in last.values:
        row["value"] = double_json(last.values[metric])
    if trial.stopped:
        row["stopReason"] = trial.stopped
    if trial.is_given:
        row["isGiven"] = True
    if job is not None:
        row["jobState"] = enums.state_name(job.status.state)
    return row


def render_analysis(study: Study, analysis: StudyAnalysis) -> dict[str, Any]:
    order = sorted(analysis.importance.items(), key=lambda item: -item[1])
    answer: dict[str, Any] = {
        "best": [str(number) for number in analysis.best],
        "importance": [{"parameterId": name, "importance": round(share, 6)} for name, share in order],
        "history": [
            {"trial": str(point.trial), "value": point.value, "best": point.best}
            for point in analysis.history
        ],
        "counts": {state.value: count for state, count in analysis.counts.items()},
        "stoppedEarly": analysis.stopped,
        "objectives": render_objectives(study),
    }
    if analysis.left is not None:
        answer["eta"] = duration_text(analysis.left)
    if analysis.saved is not None:
        answer["savedTime"] = duration_text(analysis.saved)
    return answer


def render_curves(study: Study, trials: Sequence[Trial]) -> dict[str, Any]:
    """Of the first objective's metric."""
    metric = study.spec.objectives[0].metric
    curves: list[dict[str, Any]] = []
    for trial in trials:
        known = [item for item in trial.measurements if metric in item.values]
        curves.append(
            {
                "trial": str(trial.number),
                "steps": [item.step for item in known],
                "elapsed": [round(item.elapsed, 3) for item in known],
                "values": [double_json(item.values[metric]) for item in known],
            }
        )
    return {"metric": metric, "curves": curves}


def render_points(study: Study, trials: Sequence[TrialOutline]) -> dict[str, Any]:
    """Parameters and final values, without measurements: what graphs of many trials are drawn from."""
    points: list[dict[str, Any]] = []
    for trial in trials:
        values = [double_json(value) for value in trial.values or ()]
        row: dict[str, Any] = {"trial": str(trial.number), "values": values, "parameters": dict(trial.point)}
        if trial.is_stopped:
            row["isStopped"] = True
        points.append(row)
    return {"objectives": render_objectives(study), "points": points}


def render_best_point(study: Study, best: TrialOutline) -> dict[str, Any]:
    """The best point, and a customJob that runs it once more."""
    answer = render_best(study, best)
    if (template := study.template) is None or study.is_partial:
        return answer | ({"job": best.job} if best.job else {})
    job: dict[str, Any] = {
        "displayName": f"{study.display_name[: LONGEST_NAME - 20]} best of trial {best.number}"[
            :LONGEST_NAME
        ],
        "jobSpec": render_spec(point_spec(template, best.point)),
    }
    if study.labels:
        job["labels"] = dict(study.labels)
    answer |= {"args": list(flags(template, best.point)), "customJob": job}
    if has_masks(template) and best.job:
        answer["secretsOf"] = best.job  # to be sent as the parameter of the same name, with the job
    return answer


def parse_trial_order(text: str) -> tuple[TrialOrder, bool]:
    """What to list trials by, and whether the last comes first."""
    match text.split():
        case []:
            return TrialOrder.NUMBER, False
        case [name, *direction] if name in _ORDERS and direction in ([], ["asc"], ["desc"]):
            return _ORDERS[name], direction == ["desc"]
        case _:
            known = "id, value, start_time or duration, and desc behind it for the other direction"
            raise invalid((Violation("order_by", f"must be {known}."),))


def parse_trial_filter(text: str) -> tuple[TrialState, ...]:
    """The wanted states, empty for all: state=SUCCEEDED OR state=ACTIVE, or state!=INFEASIBLE."""
    if not text.strip():
        return ()
    words = [token for token in tokens(text) if token.kind is not TokenKind.END]
    states: list[TrialState] = []
    for at in range(0, len(words), 4):
        part = words[at : at + 4]
        is_whole = len(part) == 3 or (len(part) == 4 and part[3].text == "OR" and at + 4 < len(words))
        if not is_whole or part[0].text != "state" or part[1].text not in ("=", "!="):
            raise _refused_filter(text)
        name = part[2].text
        if name not in TrialState.__members__:
            raise _refused_filter(text)
        wanted = TrialState(name)
        states += [wanted] if part[1].text == "=" else [s for s in TrialState if s is not wanted]
    return tuple(dict.fromkeys(states))


def _refused_filter(text: str) -> Exception:
    known = ", ".join(TrialState)
    sentence = f"must be such as state=SUCCEEDED OR state=ACTIVE, not '{text[:60]}'; states are {known}."
    return invalid((Violation("filter", sentence),))
