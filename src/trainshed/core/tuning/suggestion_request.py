"""What a suggester is asked for a study: its trials as results. Pure; `control` and `service` use it."""

from collections.abc import Sequence

from trainshed.core.tuning.earlier_trials import learned
from trainshed.core.tuning.study import Study, Trial, TrialState, next_number
from trainshed.core.tuning.suggestion_port import Objective, SuggestionRequest, TrialResult


def suggestion_request(
    study: Study, trials: Sequence[Trial], count: int, priors: Sequence[Sequence[Trial]] = ()
) -> SuggestionRequest:
    """The request for the next `count` points. `priors` are the trials of each earlier study."""
    spec = study.spec
    earlier = [[trial_result(trial, spec.objectives) for trial in some] for some in priors]
    return SuggestionRequest(
        space=spec.space,
        objectives=spec.objectives,
        algorithm=spec.algorithm,
        seed=study.seed,
        number=next_number(study, trials),
        count=count,
        trials=tuple(trial_result(trial, spec.objectives) for trial in trials),
        noise=spec.noise,
        priors=learned(earlier, spec.space, spec.objectives),
    )


def trial_result(trial: Trial, objectives: Sequence[Objective]) -> TrialResult:
    values = None
    if trial.state is TrialState.SUCCEEDED and trial.final is not None:
        known = trial.final.values
        if all(objective.metric in known for objective in objectives):
            values = tuple(known[objective.metric] for objective in objectives)
    return TrialResult(
        point=trial.point,
        values=values,
        is_pending=not trial.is_final,
        is_failed=trial.is_final and values is None,
    )
