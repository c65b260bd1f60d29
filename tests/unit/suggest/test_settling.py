"""When a search near the best gains nothing any more, how far it looks, and what it tries at a border."""

import numpy as np
import pytest

from trainshed.core.tuning.search_space import Parameter, ParameterKind, SearchSpace
from trainshed.suggest.encoding import Encoding
from trainshed.suggest.settling import NEAR, is_settled, off_border, trusted_radius

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


def test_a_look_near_the_best_trial_goes_some_steps_like_the_last_one_that_succeeded():
    rows, losses = np.array([[0.3, 0.3], [0.32, 0.31]]), np.array([2.0, 1.0])
    assert trusted_radius(rows, losses, 1, PLANE) == pytest.approx(3 * 0.02)
    assert trusted_radius(rows[::-1], losses[::-1], 0, PLANE) == pytest.approx(NEAR / 2)
    leap = np.array([[0.3, 0.3], [0.9, 0.3]])
    assert trusted_radius(leap, losses, 1, PLANE) == NEAR


def test_a_look_near_the_best_trial_goes_half_as_far_after_each_that_failed_there():
    rows, losses = np.array([[0.9, 0.9], [0.3, 0.3], [0.3, 0.4], [0.9, 0.1], [0.2, 0.3]]), np.arange(5.0)
    losses[0] = np.nan  # a failed trial is no step
    assert trusted_radius(rows[:2], losses[:2], 1, PLANE) == NEAR
    assert trusted_radius(rows[:4], losses[:4], 1, PLANE) == NEAR / 2  # the last is elsewhere
    assert trusted_radius(rows, losses, 1, PLANE) == NEAR / 4
    many = np.vstack([rows, np.full((50, 2), 0.31)])
    assert 0.0 < trusted_radius(many, np.append(losses, np.full(50, 9.0)), 1, PLANE) < 0.01


def test_a_best_trial_on_a_border_is_followed_by_one_just_inside_of_it():
    rows = np.vstack([FAR, [[1.0, 0.4]]])
    inside = off_border(rows, 3, PLANE)
    assert inside is not None and inside.tolist() == [[0.95, 0.4]]
    assert off_border(np.vstack([rows, inside]), 3, PLANE) is None


def test_a_best_trial_off_all_borders_is_followed_by_none():
    assert off_border(np.array([[0.5, 0.4], [0.0, 1.0]]), 0, PLANE) is None
