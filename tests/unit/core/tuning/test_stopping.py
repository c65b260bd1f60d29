"""Rules that stop trials early: each waits until a trial has had its chance, and says why it stops."""

import math

import pytest

from trainshed.core.curve import Curve
from trainshed.core.tuning.stopping import (
    AshaRule,
    ConvexRule,
    DecayCurveRule,
    HyperbandRule,
    JudgedTrial,
    JudgingRule,
    MedianRule,
    bracket_of,
    should_stop,
)


def rising(height: float, steps: int = 20, number: int = 1, whole: bool = False) -> JudgedTrial:
    """A learning curve that flattens towards a height."""
    values = [height * (1 - math.exp(-step / 8)) for step in range(1, steps + 1)]
    return JudgedTrial(number, Curve(list(range(1, steps + 1)), values), is_completed=whole)


def flipped(trial: JudgedTrial) -> JudgedTrial:
    curve = Curve(trial.curve.places, [-value for value in trial.curve.values])
    return JudgedTrial(trial.number, curve, trial.is_completed)


DONE = [rising(height, 40, number, whole=True) for number, height in enumerate((0.8, 0.9, 1.0), 10)]
RULES: list[JudgingRule] = [
    MedianRule(),
    DecayCurveRule(),
    ConvexRule(last_step=40),
    AshaRule(first_rung=5),
    HyperbandRule(first_rung=15, last_step=40),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_a_hopeless_trial_is_stopped_and_a_good_one_goes_on(rule: JudgingRule):
    reason = should_stop(rule, rising(0.2), DONE, maximize=True)
    assert reason is not None and reason.endswith(".")
    assert should_stop(rule, rising(1.2), DONE, maximize=True) is None


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_a_loss_is_judged_as_its_negative_is(rule: JudgingRule):
    others = [flipped(trial) for trial in DONE]
    assert should_stop(rule, flipped(rising(0.2)), others, maximize=False) is not None
    assert should_stop(rule, flipped(rising(1.2)), others, maximize=False) is None


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_nothing_is_stopped_without_others_or_without_measurements(rule: JudgingRule):
    assert should_stop(rule, rising(0.2), [], maximize=True) is None
    assert should_stop(rule, JudgedTrial(1, Curve([], [])), DONE, maximize=True) is None


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_values_that_are_not_finite_are_left_out(rule: JudgingRule):
    broken = JudgedTrial(1, Curve([1, 2], [math.nan, math.inf]))
    assert should_stop(rule, broken, DONE, maximize=True) is None
    mixed = Curve([*DONE[0].curve.places, 41], [*DONE[0].curve.values, math.nan])
    others = [JudgedTrial(10, mixed, is_completed=True), *DONE[1:], broken]
    assert should_stop(rule, rising(0.2), others, maximize=True) is not None


def test_the_median_counts_only_what_others_had_by_the_same_place():
    # At its second step the trial is ahead of what the others had on average by then.
    early = JudgedTrial(1, Curve([1, 2], [0.2, 0.25]))
    assert should_stop(MedianRule(), early, DONE, maximize=True) is None


def test_the_median_rule_waits_for_measurements_and_completed_trials():
    bad = rising(0.2, steps=4)
    for rule in (MedianRule(least_measurements=5), MedianRule(least_trials=4)):
        assert should_stop(rule, bad, DONE, maximize=True) is None
    assert should_stop(MedianRule(least_measurements=4, least_trials=3), bad, DONE, maximize=True)


def test_a_slow_starter_whose_curve_still_climbs_is_not_stopped_by_its_extrapolation():
    climbing = JudgedTrial(1, Curve(list(range(1, 11)), [0.08 * step for step in range(1, 11)]))
    assert should_stop(DecayCurveRule(), climbing, DONE, maximize=True) is None
    assert should_stop(ConvexRule(last_step=40), climbing, DONE, maximize=True) is None


def test_the_convex_rule_waits_for_steps_and_measurements():
    rule = ConvexRule(last_step=400)
    assert should_stop(rule, rising(0.1), DONE, maximize=True) is None
    assert should_stop(ConvexRule(last_step=40), rising(0.1, steps=4), DONE, maximize=True) is None


def test_halving_compares_at_the_last_rung_that_was_reached():
    others = [rising(height, 20, number) for number, height in enumerate((0.5, 0.6, 0.7), 2)]
    rule = AshaRule(first_rung=3, reduction=2)
    assert should_stop(rule, rising(0.2, 2), others, maximize=True) is None
    reason = should_stop(rule, rising(0.2, 7), others, maximize=True)
    assert reason is not None and reason.startswith("At 6 ")


def test_a_share_that_is_no_whole_number_of_trials_is_rounded_up():
    better, worse = (
        rising(0.9, 20, 2),
        [rising(height, 20, number) for number, height in enumerate((0.2, 0.3), 3)],
    )
    rule = AshaRule(first_rung=3)
    assert should_stop(rule, rising(0.5, 7), [better, *worse], maximize=True) is None  # two of four go on
    assert should_stop(rule, rising(0.5, 7), [better, worse[0]], maximize=True) is not None  # one of three


def test_a_trial_that_passed_a_rung_first_is_judged_there_again_when_others_come():
    rule = AshaRule(first_rung=3)
    first, second, third = rising(0.2, 8), rising(0.9, 4, 2), rising(0.8, 3, 3)
    assert should_stop(rule, first, [second], maximize=True) is None
    reason = should_stop(rule, first, [second, third], maximize=True)
    assert reason is not None and "2 of 3 trials" in reason


@pytest.mark.parametrize(
    "rule", [AshaRule(first_rung=5, last_step=20), HyperbandRule(first_rung=7, last_step=20)]
)
def test_halving_stops_nobody_at_the_last_step(rule: JudgingRule):
    others = [rising(height, 20, number) for number, height in enumerate((0.5, 0.6, 0.7), 2)]
    assert should_stop(rule, rising(0.2, 19), others, maximize=True) is not None
    assert should_stop(rule, rising(0.2, 20), others, maximize=True) is None


def test_trials_of_hyperband_are_compared_within_their_bracket():
    rule = HyperbandRule(first_rung=1, last_step=9, reduction=3)
    brackets = [bracket_of(rule, number) for number in range(1, 18)]
    assert set(brackets) == {0, 1, 2}
    assert brackets.count(0) > brackets.count(1) > 0
    alone = brackets.index(2) + 1
    others = [rising(1.0, 9, number) for number in range(1, 10) if bracket_of(rule, number) != 2]
    assert should_stop(rule, rising(0.1, 9, alone), others, maximize=True) is None
