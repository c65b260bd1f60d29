"""The stored rule of a study, with what it leaves open: it follows from the trials that have completed."""

from dataclasses import replace

import pytest

from tests.studies.study_builders import a_study, active, done
from trainshed.core.tuning.early_stop import early_stops, judging_rule
from trainshed.core.tuning.measurement import Measurement
from trainshed.core.tuning.stopping import AshaRule, ConvexRule, HyperbandRule, MedianRule
from trainshed.core.tuning.stopping_rule import StoppingKind, StoppingRule
from trainshed.core.tuning.study import Trial

STEPPED = [StoppingKind.CONVEX, StoppingKind.ASHA, StoppingKind.HYPERBAND]


def curve(trial: Trial, height: float, steps: int) -> Trial:
    """The trial with a curve that rises to a height in 900 steps, a measurement at every tenth."""
    measurements = [
        Measurement(elapsed=float(step), step=step, values={"accuracy": height * (1 - 2 ** (-step / 100))})
        for step in range(10, steps + 1, 10)
    ]
    return replace(trial, measurements=tuple(measurements))


@pytest.mark.parametrize("kind", STEPPED)
def test_a_rule_without_steps_stops_nobody_before_a_trial_has_completed(kind: StoppingKind) -> None:
    study = a_study(trial_stopping=StoppingRule(kind=kind))
    running = [curve(active(number), number / 10, 500) for number in range(1, 7)]
    assert early_stops(study, running, running) == {}


@pytest.mark.parametrize("kind", STEPPED)
def test_a_rule_without_steps_judges_by_how_far_completed_trials_came(kind: StoppingKind) -> None:
    study = a_study(trial_stopping=StoppingRule(kind=kind))
    completed = [curve(done(number), 0.9, 900) for number in (5, 6, 7, 8)]
    late, early = curve(active(1), 0.1, 500), curve(active(2), 0.1, 40)
    assert early_stops(study, [late, early, *completed], [late, early]).keys() == {1}


def test_rungs_begin_at_a_ninth_of_the_last_step_unless_the_study_says_where() -> None:
    asha = StoppingRule(kind=StoppingKind.ASHA)
    assert judging_rule(asha, 900) == AshaRule(first_rung=100, last_step=900)
    assert judging_rule(replace(asha, least_step=5), 900) == AshaRule(first_rung=5, last_step=900)
    assert judging_rule(replace(asha, least_step=5), 0) == AshaRule(first_rung=5)
    hyperband = StoppingRule(kind=StoppingKind.HYPERBAND, reduction=4)
    assert judging_rule(hyperband, 900) == HyperbandRule(first_rung=100, last_step=900, reduction=4)


def test_the_median_rule_waits_for_what_the_study_says() -> None:
    median = StoppingRule(kind=StoppingKind.MEDIAN)
    assert judging_rule(median, 0) == MedianRule()
    assert judging_rule(replace(median, least_measurements=4, least_trials=3), 0) == MedianRule(4, 3)


def test_the_convex_rule_continues_curves_to_where_completed_trials_ended() -> None:
    assert judging_rule(StoppingRule(kind=StoppingKind.CONVEX), 900) == ConvexRule(last_step=900)
    assert judging_rule(StoppingRule(kind=StoppingKind.CONVEX), 0) is None
