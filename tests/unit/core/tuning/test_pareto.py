"""The best trials of several objectives are those that no other beats."""

import math

from hypothesis import given
from hypothesis import strategies as st

from trainshed.core.tuning.pareto import beats, optimal_indexes
from trainshed.core.tuning.suggestion_port import Objective

BOTH = (Objective("loss"), Objective("accuracy", maximize=True))


def test_a_trial_that_is_better_in_one_objective_stays():
    assert optimal_indexes([(1.0, 0.9), (0.5, 0.8), (1.1, 0.9), (2.0, 0.95)], BOTH) == [0, 1, 3]


def test_equal_trials_stay_together():
    assert optimal_indexes([(1.0, 1.0), (1.0, 1.0), (2.0, 1.0)], BOTH) == [0, 1]


def test_trials_without_finite_values_are_never_best():
    assert optimal_indexes([None, (math.nan, 1.0), (3.0, math.inf), (9.0, 0.0)], BOTH) == [3]


def test_with_one_objective_the_best_trials_are_left():
    assert optimal_indexes([(1.0,), (3.0,), (3.0,)], [Objective("score", maximize=True)]) == [1, 2]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5)), max_size=30))
def test_every_trial_is_optimal_or_beaten_by_one_that_is(values: list[tuple[int, int, int]]):
    objectives = [Objective("a"), Objective("b"), Objective("c")]
    best = optimal_indexes(values, objectives)
    for index, row in enumerate(values):
        assert (index in best) != any(beats(values[other], row) for other in best)
