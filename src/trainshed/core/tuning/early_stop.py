"""Which trials of a study should end early: its stored rule, applied to its trials' curves. Pure.

`core/tuning/advance.py` and `service/trials.py` call it; `core/tuning/stopping.py` judges. What a rule leaves
open follows from how far completed trials came. A rule that needs to know this stops nobody before one has
completed.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import assert_never

from trainshed.core.curve import Curve
from trainshed.core.tuning.stopping import (
    AshaRule,
    ConvexRule,
    DecayCurveRule,
    HyperbandRule,
    JudgedTrial,
    JudgingRule,
    MedianRule,
    should_stop,
)
from trainshed.core.tuning.stopping_rule import StoppingKind, StoppingRule
from trainshed.core.tuning.study import Study, Trial, TrialState

FIRST = 9  # rungs begin at this part of the last step, where the study does not say


def early_stops(study: Study, trials: Sequence[Trial], running: Iterable[Trial]) -> Mapping[int, str]:
    """Why trials of `running` should be stopped now, by number. Those that go on are not in it."""
    rule = study.spec.trial_stopping
    if rule is None:
        return {}
    objective = study.spec.objectives[0]
    judged = {trial.number: _judged(trial, rule, objective.metric) for trial in trials if trial.measurements}
    ends = [item.curve.places[-1] for item in judged.values() if item.is_completed and item.curve.places]
    judging = judging_rule(rule, rule.most_step or max(ends, default=0.0))
    if judging is None:
        return {}
    reasons: dict[int, str] = {}
    for trial in running:
        own = judged.get(trial.number)
        why = None
        if own is not None:
            why = should_stop(judging, own, list(judged.values()), maximize=objective.maximize)
        if why:
            reasons[trial.number] = why
    return reasons


def _judged(trial: Trial, rule: StoppingRule, metric: str) -> JudgedTrial:
    known = [m for m in trial.measurements if metric in m.values]
    places = [m.elapsed if rule.use_elapsed else float(m.step) for m in known]
    is_completed = trial.state is TrialState.SUCCEEDED and not trial.stopped
    return JudgedTrial(trial.number, Curve(places, [m.values[metric] for m in known]), is_completed)


def judging_rule(rule: StoppingRule, last: float) -> JudgingRule | None:
    """The rule with what it leaves open filled in. `last`: where trials end; 0: nobody knows yet.

    None where it cannot judge without that.
    """
    first = rule.least_step or max(1.0, last / FIRST)
    match rule.kind:
        case StoppingKind.MEDIAN:
            return MedianRule(rule.least_measurements or 1, rule.least_trials or 1)
        case StoppingKind.DECAY_CURVE:
            return DecayCurveRule()
        case StoppingKind.ASHA if rule.least_step:
            return AshaRule(first_rung=first, last_step=last or math.inf, reduction=rule.reduction)
        case _ if not last:
            return None
        case StoppingKind.CONVEX:
            return ConvexRule(
                last_step=last,
                least_step=rule.least_step or None,
                least_measurements=rule.least_measurements or 5,
            )
        case StoppingKind.ASHA:
            return AshaRule(first_rung=first, last_step=last, reduction=rule.reduction)
        case StoppingKind.HYPERBAND:
            return HyperbandRule(first_rung=first, last_step=last, reduction=rule.reduction)
        case _:
            assert_never(rule.kind)
