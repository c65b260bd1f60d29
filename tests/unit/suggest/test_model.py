"""The model behind the default algorithm: its slopes are true, and no value can break it."""

import math

import numpy as np
import pytest

from tests.studies.suggestions import MIXED
from trainshed.core.tuning.search_space import Parameter, ParameterKind, SearchSpace
from trainshed.suggest.acquisition import Search, best_rows, log_improvement
from trainshed.suggest.encoding import Encoding
from trainshed.suggest.gaussian_process import GaussianProcess, Priors, fit
from trainshed.suggest.kernel import Beside
from trainshed.suggest.selection import distances, neighbourhood, representative
from trainshed.suggest.warping import BENDS, warp

RNG = np.random.default_rng(3)
ROWS = Encoding(MIXED).random(RNG, 30)
LOSSES = ((ROWS - 0.3) ** 2).sum(axis=1)
IS_CATEGORY = Encoding(MIXED).is_category
MODEL, WARPED = fit(ROWS, [warp(LOSSES, bend) for bend in BENDS], IS_CATEGORY, Priors())
SUM, _ = fit(ROWS, [warp(LOSSES, 0.0)], IS_CATEGORY, Priors(beside=Beside.SUM))
BOWL, _ = fit(ROWS, [warp(LOSSES, 0.0)], IS_CATEGORY, Priors(beside=Beside.QUADRATIC))


def test_the_model_interpolates_what_is_measured_and_is_unsure_elsewhere():
    means, variances = MODEL.predict(ROWS)
    assert np.abs(means - WARPED.values).max() < 0.3
    far = np.full((1, ROWS.shape[1]), 5.0)
    assert MODEL.predict(far)[1][0] > 10 * variances.max()


@pytest.mark.parametrize("model", [MODEL, SUM, BOWL], ids=["plain", "sum", "quadratic"])
def test_the_slopes_of_a_prediction_are_those_of_its_values(model: GaussianProcess):
    columns = np.flatnonzero(Encoding(MIXED).is_continuous)
    row = Encoding(MIXED).random(np.random.default_rng(5), 1)[0]
    mean, variance, mean_slope, variance_slope = model.predict_with_slope(row, columns)
    assert model.predict(row[None, :])[0][0] == pytest.approx(mean)
    for index, column in enumerate(columns):
        step = np.zeros(len(row))
        step[column] = 1e-5
        after, before = model.predict((row + step)[None, :]), model.predict((row - step)[None, :])
        assert (after[0][0] - before[0][0]) / 2e-5 == pytest.approx(mean_slope[index], rel=1e-3, abs=1e-5)
        assert (after[1][0] - before[1][0]) / 2e-5 == pytest.approx(variance_slope[index], rel=1e-3, abs=1e-5)
    assert variance > 0


def test_what_is_believed_of_a_pending_trial_makes_the_model_sure_there():
    row = Encoding(MIXED).random(np.random.default_rng(6), 1)
    believed, before = MODEL.predict(row)
    means, after = MODEL.extended(row, believed).predict(row)
    assert means[0] == pytest.approx(believed[0], abs=1e-2)
    assert after[0] < min(before[0], MODEL.noise)  # as sure as of what was measured


def test_the_bottom_of_a_narrow_bowl_that_lies_askew_is_known_from_few_trials():
    rng = np.random.default_rng(7)
    rows, bottom = rng.random((30, 4)), np.array([0.3, 0.6, 0.45, 0.7])
    turn, _ = np.linalg.qr(rng.standard_normal((4, 4)))

    def losses(places: np.ndarray) -> np.ndarray:
        return (np.array([1.0, 10.0, 100.0, 1000.0]) * ((places - bottom) @ turn) ** 2).sum(axis=1)

    warped = warp(losses(rows), 0.0)
    model, _ = fit(rows, [warped], np.zeros(4, dtype=bool), Priors(beside=Beside.QUADRATIC))
    places = rng.random((2000, 4))
    believed = places[np.argmin(model.predict(places)[0])]
    assert losses(believed[None, :])[0] <= 1.2 * losses(places).min()
    assert model.predict(bottom[None, :])[0][0] < warped.values.min()


def test_what_each_parameter_does_by_itself_is_known_from_few_trials():
    rng = np.random.default_rng(8)
    rows, places = rng.random((40, 5)), rng.random((500, 5))

    def losses(at: np.ndarray) -> np.ndarray:  # two valleys along each number, 32 in all
        return (np.cos(4.0 * math.pi * (at - 0.1)) + at).sum(axis=1)

    model, _ = fit(rows, [warp(losses(rows), 0.0)], np.zeros(5, dtype=bool), Priors(beside=Beside.SUM))
    believed = model.predict(places)[0]
    assert np.corrcoef(believed, losses(places))[0, 1] > 0.95


def test_a_model_of_equal_rows_can_be_fitted():
    rows = np.repeat(ROWS[:2], 10, axis=0)
    model, _ = fit(rows, [warp(np.arange(20.0))], IS_CATEGORY, Priors())
    assert np.isfinite(model.predict(ROWS)[0]).all()


@pytest.mark.parametrize("z", [-1e6, -1e3, -40.0, -5.0, -1.0, -0.999, 0.0, 3.0, 30.0])
def test_the_logarithm_of_the_improvement_is_finite_and_rises(z: float):
    low, high = log_improvement(np.array([-z, -z - abs(z) * 1e-6 - 1e-9]), np.array([1.0, 1.0]), 0.0)
    assert math.isfinite(low) and low <= high
    if -5 <= z <= 3:
        density, share = math.exp(-z * z / 2) / math.sqrt(2 * math.pi), 0.5 * math.erfc(-z / math.sqrt(2))
        assert low == pytest.approx(math.log(density + z * share), rel=1e-6)


@pytest.mark.parametrize("bend", BENDS)
def test_a_warp_keeps_the_order_and_the_unit_spread(bend: float):
    losses = np.array([3.0, -1.0, 1e12, 2.0, math.nan, 0.5, math.inf])
    values = warp(losses, bend).values
    finite = np.isfinite(losses)
    assert (np.argsort(losses[finite]) == np.argsort(values[finite])).all()
    assert values[finite].std() == pytest.approx(1.0)
    assert values[~finite].min() > values[finite].max()


@pytest.mark.parametrize(
    "losses", [[], [1.0], [2.0, 2.0], [math.nan], [1e308, -1e308], [0.0, 5e-324], [math.inf, 1.0]]
)
def test_a_warp_is_finite_whatever_comes(losses: list[float]):
    for bend in BENDS:
        warped = warp(np.array(losses), bend)
        assert np.isfinite(warped.values).all() and math.isfinite(warped.log_slope)


def test_of_many_rows_the_best_and_some_of_all_others_are_taken():
    values = np.arange(1000.0)[::-1]
    some = representative(values, 100)
    assert len(set(some)) == 100
    assert set(range(950, 1000)) <= set(some) and some.min() < 20


def test_neighbours_with_the_same_category_come_before_those_with_another():
    rows = np.array([[0.5, 0.0], [0.9, 0.0], [0.5, 1.0], [0.6, 0.0], [0.0, 1.0]])
    some, reach = neighbourhood(rows, 0, np.array([False, True]))
    assert some.tolist() == [0, 1, 2, 3, 4]
    assert reach == pytest.approx(1.5)
    many = np.vstack([rows, np.column_stack([np.linspace(0.4, 0.7, 8), np.zeros(8)])])
    some, reach = neighbourhood(many, 0, np.array([False, True]))
    assert 2 not in some and 4 not in some
    assert reach == pytest.approx(0.4)


def test_a_column_without_effect_counts_little_beside_one_that_matters():
    rows = np.random.default_rng(8).random((60, 8))
    losses = np.sin(4.0 * rows[:, 2]) + rows[:, 5] ** 2
    model, _ = fit(rows, [warp(losses, 0.0)], np.zeros(8, dtype=bool), Priors())
    idle = np.delete(model.weights, [2, 5])
    assert idle.max() < 0.05 * min(model.weights[2], model.weights[5])


def test_a_model_in_which_all_parameters_matter_discounts_none():
    rows = np.random.default_rng(8).random((20, 6))
    losses = (rows[:, 0] - 0.4) ** 2
    none = np.zeros(6, dtype=bool)
    idle, _ = fit(rows, [warp(losses, 0.0)], none, Priors())
    all_matter, _ = fit(rows, [warp(losses, 0.0)], none, Priors(may_be_idle=False))
    assert all_matter.weights[1:].min() > 3.0 * idle.weights[1:].min()


def test_the_search_comes_to_a_border_only_from_next_to_it():
    encoding = Encoding(SearchSpace((Parameter(id="x", kind=ParameterKind.DOUBLE, low=0.0, high=1.0),)))
    rows = np.array([[0.3], [0.5], [0.7], [0.9]])
    falling, _ = fit(rows, [warp(-rows[:, 0], 0.0)], encoding.is_category, Priors())
    rng = np.random.default_rng(9)
    best = float(falling.predict(rows)[0].min())
    from_afar = best_rows(falling, encoding, best, rows[[2]], rng, Search())
    assert from_afar[0, 0] == pytest.approx(0.95)
    from_beside = best_rows(falling, encoding, best, rows[[3]], rng, Search())
    assert from_beside[0, 0] == pytest.approx(1.0)


def test_a_search_within_reach_of_a_row_keeps_to_it():
    encoding = Encoding(MIXED)
    best = float(MODEL.predict(ROWS)[0].min())
    centre = ROWS[[int(np.argmin(LOSSES))]]
    search = Search(radius=0.2, reach=0.3)
    found = best_rows(MODEL, encoding, best, centre, np.random.default_rng(10), search)
    assert distances(found, centre[0], IS_CATEGORY).max() <= 0.3
