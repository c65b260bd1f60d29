"""When a study ends by itself: enough trials, too many failures, or a rule of its StudyStopping. Pure."""

from collections.abc import Sequence
from datetime import datetime

from trainshed.core.study import Study, StudyState, Trial, TrialState

FAILED_AT_FIRST = 5  # trials: where none has succeeded, the program is probably wrong
FAILED_AT_LEAST = 20  # trials: where half of those that ended failed


def study_end(study: Study, trials: Sequence[Trial], now: datetime) -> tuple[StudyState, str] | None:
    """The outcome and its sentence; None while the study goes on. For a study that is not final."""
    if why := _too_many_failed(study, trials):
        return StudyState.FAILED, why
    if study.template is not None:
        most = study.limits.trials
        if all(trial.is_final for trial in trials):
            if len(trials) >= most:
                return _counted(study, trials, f"All {most} trials have ended.")
            if study.status.is_exhausted:
                return _counted(study, trials, f"All {len(trials)} points of its grid were tried.")
    return _by_its_rules(study, trials, now)


def _counted(study: Study, trials: Sequence[Trial], why: str) -> tuple[StudyState, str]:
    """A study of which no trial succeeded has failed."""
    if any(trial.state is TrialState.SUCCEEDED for trial in trials):
        return StudyState.SUCCEEDED, why
    last = trials[-1].infeasible if trials else ""
    return StudyState.FAILED, f"{why} None of them succeeded. The last one: {last}"


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


def _by_its_rules(study: Study, trials: Sequence[Trial], now: datetime) -> tuple[StudyState, str] | None:
    rules, started_at = study.spec.stopping, study.status.started_at
    ended = [trial for trial in trials if trial.is_final]
    if rules.asap:
        return StudyState.SUCCEEDED, "Its shouldStopAsap is set."
    if started_at is None or len(ended) < rules.least_trials:
        return None
    if rules.least_runtime is not None and not rules.least_runtime.is_reached(started_at, now):
        return None
    if rules.most_trials and len(ended) >= rules.most_trials:
        return StudyState.SUCCEEDED, f"{len(ended)} trials have ended: its maxNumTrials."
    if rules.most_runtime is not None and rules.most_runtime.is_reached(started_at, now):
        return StudyState.SUCCEEDED, "Its maximumRuntimeConstraint is reached."
    if len(study.spec.objectives) != 1:
        return None
    since = _since_progress(study, ended)
    if rules.trials_without_progress and len(since) >= rules.trials_without_progress:
        return StudyState.SUCCEEDED, f"{len(since)} trials in a row brought nothing better."
    if (limit := rules.time_without_progress) is not None:
        best = best_trial(study, ended)
        at = (best.ended_at if best is not None else None) or started_at
        if now - at >= limit:
            return StudyState.SUCCEEDED, f"Nothing better came in {limit.total_seconds():g} s."
    return None


def _since_progress(study: Study, ended: Sequence[Trial]) -> Sequence[Trial]:
    """The trials that ended after the best one."""
    best = best_trial(study, ended)
    if best is None or best.ended_at is None:
        return ended
    return [trial for trial in ended if trial.ended_at is not None and trial.ended_at > best.ended_at]


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
