"""When a study ends by itself: enough trials, too many failures, or a rule of its StudyStopping. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from trainshed.core.tuning.study import Study, StudyState, Trial, TrialState

FAILED_AT_FIRST = 5  # trials: where none has succeeded, the program is probably wrong
FAILED_AT_LEAST = 20  # trials: where half of those that ended failed


@dataclass(frozen=True, slots=True)
class StudyEnd:
    outcome: StudyState
    message: str
    drains: bool = False  # trials that run may finish


def study_end(study: Study, trials: Sequence[Trial], now: datetime) -> StudyEnd | None:
    """How it ends; None while the study goes on. For a study that is not final."""
    if why := _too_many_failed(study, trials):
        return StudyEnd(StudyState.FAILED, why)
    if all(trial.is_final for trial in trials):
        if study.template is not None and len(trials) >= study.limits.trials:
            return _counted(study, trials, f"All {study.limits.trials} trials have ended.")
        if study.status.is_exhausted:
            return _counted(study, trials, f"All {len(trials)} points of its search space were tried.")
    return _by_its_rules(study, trials, now)


def room_left(study: Study, trials: Sequence[Trial], now: datetime) -> int | None:
    """How many more trials its maxNumTrials allows; None where it sets no bound."""
    most = study.spec.stopping.most_trials
    ended = [trial for trial in trials if trial.is_final]
    return max(0, most - len(trials)) if most and _may_end(study, ended, now) else None


def time_to_rule(study: Study, trials: Sequence[Trial], now: datetime) -> timedelta | None:
    """How long until time alone may end it, or let another rule do so; None where it never will."""
    rules = study.spec.stopping
    left = [
        limit.left(study.created_at, now)
        for limit in (rules.least_runtime, rules.most_runtime)
        if limit is not None
    ]
    if rules.time_without_progress is not None:
        progress_at = _progress_at(study, best_trial(study, _in_order(trials, now)))
        left += [rules.time_without_progress - (now - progress_at)] if progress_at is not None else []
    return min((time for time in left if time > timedelta()), default=None)


def _counted(study: Study, trials: Sequence[Trial], why: str) -> StudyEnd:
    """A study that ran its trials itself has failed where none succeeded."""
    if study.template is None or any(trial.state is TrialState.SUCCEEDED for trial in trials):
        return StudyEnd(StudyState.SUCCEEDED, why)
    last = trials[-1].infeasible if trials else ""
    return StudyEnd(StudyState.FAILED, f"{why} None of them succeeded. The last one: {last}")


def _too_many_failed(study: Study, trials: Sequence[Trial]) -> str:
    if study.template is None:
        return ""
    failed = [trial for trial in trials if trial.state is TrialState.INFEASIBLE]
    succeeded = sum(trial.state is TrialState.SUCCEEDED for trial in trials)
    most = study.limits.failed
    if most:
        is_over = len(failed) >= most
    elif succeeded == 0:
        is_over = len(failed) >= FAILED_AT_FIRST
    else:
        is_over = len(failed) >= FAILED_AT_LEAST and len(failed) > succeeded
    if not is_over:
        return ""
    ended = len(failed) + succeeded
    return (
        f"{len(failed)} of {ended} trials failed. The last one, {failed[-1].number}: {failed[-1].infeasible}"
    )


def _by_its_rules(study: Study, trials: Sequence[Trial], now: datetime) -> StudyEnd | None:
    ended = _in_order(trials, now)
    if not _may_end(study, ended, now) or not (why := _reached_rule(study, ended, now)):
        return None
    return StudyEnd(StudyState.SUCCEEDED, why, drains=not study.spec.stopping.asap)


def _in_order(trials: Sequence[Trial], now: datetime) -> list[Trial]:
    """Those that ended, by their ends: of two that are equally good, only the first was progress."""
    return sorted((t for t in trials if t.is_final), key=lambda t: (t.ended_at or now, t.number))


def _may_end(study: Study, ended: Sequence[Trial], now: datetime) -> bool:
    """Whether the rules hold that must hold before any other counts."""
    rules = study.spec.stopping
    if len(ended) < rules.least_trials:
        return False
    return rules.least_runtime is None or rules.least_runtime.is_reached(study.created_at, now)


def _reached_rule(study: Study, ended: Sequence[Trial], now: datetime) -> str:
    rules = study.spec.stopping
    if rules.target is not None and (why := _reached_target(study, ended, rules.target)):
        return why
    if rules.most_trials and len(ended) >= rules.most_trials:
        return f"{len(ended)} trials have ended: its maxNumTrials."
    if rules.most_runtime is not None and rules.most_runtime.is_reached(study.created_at, now):
        return "Its maximumRuntimeConstraint is reached."
    best = best_trial(study, ended)
    progress_at = _progress_at(study, best)
    if progress_at is None:
        return ""
    since = ended if best is None else ended[ended.index(best) + 1 :]
    if rules.trials_without_progress and len(since) >= rules.trials_without_progress:
        return f"{len(since)} trials in a row brought nothing better."
    limit = rules.time_without_progress
    if limit is not None and now - progress_at >= limit:
        return f"Nothing better came in {limit.total_seconds():g} s."
    return ""


def _progress_at(study: Study, best: Trial | None) -> datetime | None:
    """Since when nothing better came; None before it began, and where several objectives leave no order."""
    if len(study.spec.objectives) != 1 or (started_at := study.status.started_at) is None:
        return None
    return (best.ended_at if best is not None else None) or started_at


def _reached_target(study: Study, ended: Sequence[Trial], target: float) -> str:
    """The sentence where the best trial is at least as good as the target; else empty."""
    best = best_trial(study, ended)
    if best is None or best.final is None:
        return ""
    objective = study.spec.objectives[0]
    value = best.final.values[objective.metric]
    if is_better(target, value, maximize=objective.maximize):
        return ""
    return f"Trial {best.number} reached {objective.metric}={value:g}; {target:g} was asked for."


def best_trial(study: Study, trials: Sequence[Trial]) -> Trial | None:
    """By its first objective; of equal ones the earliest. None where no trial succeeded."""
    objective = study.spec.objectives[0]
    best: Trial | None = None
    for trial in trials:
        if trial.state is not TrialState.SUCCEEDED or trial.final is None:
            continue
        if (
            best is None
            or best.final is None
            or is_better(
                trial.final.values[objective.metric],
                best.final.values[objective.metric],
                maximize=objective.maximize,
            )
        ):
            best = trial
    return best


def is_better(value: float, other: float, *, maximize: bool) -> bool:
    return value > other if maximize else value < other
