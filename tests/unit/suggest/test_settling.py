"""When a search near the best gains nothing any more, and what it tries next at a border."""

import numpy as np

from trainshed.core.search_space import Parameter, ParameterKind, SearchSpace
from trainshed.suggest.encoding import Encoding
from trainshed.suggest.settling import is_settled, off_border

PLANE = Encoding(
    SearchSpace(tuple(Parameter(id=name, kind=ParameterKind.DOUBLE, low=0.0, high=1.0) for name in "xy"))
)
FAR = np.array([[0.9, 0.9], [0.1, 0.9], [0.9, 0.1]])


def test_a_best_trial_settles_when_trials_near_it_gain_next_to_nothing():
    rows = np.vstack([np.repeat(FAR, 4, axis=0), np.full((9, 2), 0.3)])
    elsewhere = np.arange(5.0, 17.0)
    gaining = np.concatenate([elsewhere, np.linspace(1.0, 0.1, 9)])
    assert not is_settled(rows, gaining, 20, PLANE)
    creeping = np.concatenate([elsewhere, 1.0 - 1e-6 * np.arange(9)])
    assert is_settled(rows, creeping, 20, PLANE)


def test_trials_far_from_the_best_do_not_settle_it():
    rows = np.vstack([[[0.3, 0.3]], np.repeat(FAR, 5, axis=0)])
    assert not is_settled(rows, np.arange(16.0), 0, PLANE)


def test_a_best_trial_on_a_border_is_followed_by_one_just_inside_of_it():
    rows = np.vstack([FAR, [[1.0, 0.4]]])
    inside = off_border(rows, 3, PLANE)
    assert inside is not None and inside.tolist() == [[0.95, 0.4]]
    assert off_border(np.vstack([rows, inside]), 3, PLANE) is None


def test_a_best_trial_off_all_borders_is_followed_by_none():
    assert off_border(np.array([[0.5, 0.4], [0.0, 1.0]]), 0, PLANE) is None
