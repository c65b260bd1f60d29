"""What the trials of a study tell: the best ones, how they came about, what mattered, when it will end. Pure.

`service/study_views.py` calls it, in a thread: a study may have a hundred thousand trials.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from trainshed.core.tuning.importance import importances
from trainshed.core.tuning.pareto import optimal_indexes
from trainshed.core.tuning.study import Study, StudyState, TrialState
from trainshed.core.tuning.study_end import is_better
from trainshed.core.tuning.trial_outline import TrialOutline

MOST_JUDGED = 2000  # trials that importances are computed from
RECENT = 50  # trials whose length tells how long the next ones take


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """A trial that succeeded, in the order of their ends; `best` is the best value until then."""

    trial: int
    value: float
    best: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyAnalysis:
    best: tuple[int, ...]  # several where there are several objectives
    importance: Mapping[str, float]
    history: tuple[HistoryPoint, ...]
    counts: Mapping[TrialState, int]
    left: timedelta | None = None  # until it ends, if trials go on as they did
    stopped: int = 0  # trials that were ended early
    saved: timedelta | None = None  # what these would have run longer


def analyse(study: Study, trials: Sequence[TrialOutline], now: datetime) -> StudyAnalysis:
    counts: dict[TrialState, int] = {}
    for trial in trials:
        counts[trial.state] = counts.get(trial.state, 0) + 1
    stopped = [trial for trial in trials if trial.is_stopped and trial.state.is_final]
    return StudyAnalysis(
        best=_best(study, trials),
        importance=_importance(study, trials),
        history=_history(study, trials),
        counts=counts,
        left=_left(study, trials, now),
        stopped=len(stopped),
        saved=_saved(trials, stopped),
    )


def _best(study: Study, trials: Sequence[TrialOutline]) -> tuple[int, ...]:
    """With one objective the first of the best: equal ones teach nothing."""
    indexes = optimal_indexes([trial.values for trial in trials], study.spec.objectives)
    if len(study.spec.objectives) == 1:
        indexes = indexes[:1]
    return tuple(trials[index].number for index in indexes)


def _history(study: Study, trials: Sequence[TrialOutline]) -> tuple[HistoryPoint, ...]:
    maximize = study.spec.objectives[0].maximize
    done = sorted(
        ((trial.ended_at, trial.number, trial.value) for trial in trials if trial.ended_at is not None),
        key=lambda item: item[:2],
    )
    points: list[HistoryPoint] = []
    best: float | None = None
    for _, number, value in done:
        if value is None:
            continue
        if best is None or is_better(value, best, maximize=maximize):
            best = value
        points.append(HistoryPoint(number, value, best))
    return tuple(points)


def _importance(study: Study, trials: Sequence[TrialOutline]) -> Mapping[str, float]:
    known = [trial for trial in trials if trial.value is not None]
    known = known[:: max(1, -(-len(known) // MOST_JUDGED))]
    sign = -1.0 if study.spec.objectives[0].maximize else 1.0
    losses = [sign * (trial.value or 0.0) for trial in known]
    return importances(study.spec.space, [trial.point for trial in known], losses)


def _left(study: Study, trials: Sequence[TrialOutline], now: datetime) -> timedelta | None:
    if study.template is None or study.status.state is not StudyState.RUNNING:
        return None
    ended = sorted((t for t in trials if t.ended_at is not None), key=lambda t: t.ended_at or now)
    lengths = [t.seconds for t in ended[-RECENT:] if t.seconds is not None]
    if not lengths:
        return None
    mean = sum(lengths) / len(lengths)
    running = [t.started_at for t in trials if t.started_at is not None and t.ended_at is None]
    spent = sum(min(mean, max(0.0, (now - at).total_seconds())) for at in running)
    unfinished = study.limits.trials - sum(trial.state.is_final for trial in trials)
    return timedelta(seconds=max(0.0, unfinished * mean - spent) / max(1, study.limits.parallel))


def _saved(trials: Sequence[TrialOutline], stopped: Sequence[TrialOutline]) -> timedelta | None:
    whole = [t.seconds for t in trials if t.value is not None and not t.is_stopped and t.seconds is not None]
    if not whole or not stopped:
        return None
    mean = sum(whole) / len(whole)
    return timedelta(seconds=sum(max(0.0, mean - t.seconds) for t in stopped if t.seconds is not None))
