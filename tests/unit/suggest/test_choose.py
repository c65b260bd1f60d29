"""Suggestions: what each algorithm promises, beyond what the properties show for all spaces."""

import math
from collections.abc import Callable

import pytest

from tests.studies.suggestions import MIXED, SMALL, finished, loss, random_trials, request_of
from trainshed.core.errors import Invalid
from trainshed.core.tuning.search_space import Parameter, ParameterKind, SearchSpace, TrialPoint
from trainshed.core.tuning.suggestion_port import Algorithm, NoiseLevel, Objective, TrialResult, point_key
from trainshed.suggest.choose import choose


def tuned(algorithm: Algorithm, trials: int, value: Callable[[TrialPoint], float] = loss) -> list[float]:
    results: tuple[TrialResult, ...] = ()
    for _ in range(trials):
        [point] = choose(request_of(trials=results, algorithm=algorithm))
        results = (*results, TrialResult(point=point, values=(value(point),)))
    return [result.values[0] for result in results if result.values]


@pytest.mark.parametrize("algorithm", [Algorithm.DEFAULT, Algorithm.TPE, Algorithm.CMA_ES])
def test_an_algorithm_that_learns_beats_chance(algorithm: Algorithm):
    assert sum(tuned(algorithm, 40)[-20:]) < sum(tuned(Algorithm.RANDOM, 40)[-20:])


def test_the_default_algorithm_finds_the_best_branch_and_its_optimum():
    assert min(tuned(Algorithm.DEFAULT, 30)) < 0.01


def test_a_metric_to_maximize_is_maximized():
    results: tuple[TrialResult, ...] = ()
    for _ in range(20):
        request = request_of(trials=results, objectives=(Objective("score", maximize=True),))
        [point] = choose(request)
        results = (*results, TrialResult(point=point, values=(-loss(point),)))
    assert max(result.values[0] for result in results if result.values) > -0.05


def test_grid_search_visits_every_point_once_in_order_and_then_ends():
    request = request_of(SMALL, algorithm=Algorithm.GRID, count=10)
    points = choose(request)
    assert points == [{"a": "x"}, {"a": "y", "b": 1}, {"a": "y", "b": 2}, {"a": "y", "b": 3}]
    trials = tuple(TrialResult(point=point, values=(1.0,)) for point in points)
    assert choose(request_of(SMALL, trials, Algorithm.GRID)) == []


def test_grid_search_fills_what_users_left_out():
    trials = (TrialResult(point={"a": "y", "b": 1}, values=(1.0,)),)
    points = choose(request_of(SMALL, trials, Algorithm.GRID, count=10))
    assert sorted(map(point_key, points)) == sorted(
        map(point_key, [{"a": "x"}, {"a": "y", "b": 2}, {"a": "y", "b": 3}])
    )


def test_grid_search_refuses_doubles():
    with pytest.raises(Invalid) as caught:
        choose(request_of(MIXED, algorithm=Algorithm.GRID))
    assert [v.field for v in caught.value.violations] == ["parameters[1].kind", "parameters[2].kind"]


@pytest.mark.parametrize("algorithm", [a for a in Algorithm if a is not Algorithm.GRID])
def test_a_small_space_is_exhausted_without_a_repetition(algorithm: Algorithm):
    assert len(choose(request_of(SMALL, algorithm=algorithm, count=10))) == 4


def test_under_high_noise_a_point_may_come_again():
    trials = tuple(TrialResult(point=point, values=(0.0,)) for point in choose(request_of(SMALL, count=4)))
    assert len(choose(request_of(SMALL, trials, noise=NoiseLevel.HIGH, count=3))) == 3


def test_points_asked_for_together_are_those_asked_for_one_by_one():
    trials = random_trials(12)
    together = choose(request_of(trials=trials, count=3))
    one_by_one: list[TrialPoint] = []
    for _ in range(3):
        pending = tuple(TrialResult(point=point, is_pending=True) for point in one_by_one)
        one_by_one += choose(request_of(trials=(*trials, *pending)))
    assert together == one_by_one


PLANE = SearchSpace(tuple(Parameter(id=name, kind=ParameterKind.DOUBLE, low=0.0, high=1.0) for name in "xy"))


def on_plane(places: list[tuple[float, float]]) -> tuple[TrialResult, ...]:
    """Trials of a bowl around (0.5, 0.6)."""
    return tuple(
        TrialResult(point={"x": x, "y": y}, values=((x - 0.5) ** 2 + (y - 0.6) ** 2,)) for x, y in places
    )


def gap(left: TrialPoint, right: TrialPoint) -> float:
    return max(abs(float(left[name]) - float(right[name])) for name in "xy")


def test_trials_asked_for_together_are_apart_where_the_best_place_is_known():
    trials = on_plane([(0.1 + 0.2 * (i % 5), 0.1 + 0.2 * (i // 5)) for i in range(10)])
    points = choose(request_of(PLANE, trials, count=4))
    assert min(gap(a, b) for i, a in enumerate(points) for b in points[:i]) > 0.01


SCATTERED = [(0.1 + 0.16 * (i % 6), 0.15 + 0.22 * (i // 6)) for i in range(21)]


def test_one_trial_in_four_takes_what_little_is_left_to_gain():
    [point] = choose(request_of(PLANE, on_plane([*SCATTERED[:20], (0.51, 0.61)])))
    assert gap(point, {"x": 0.5, "y": 0.6}) < 0.005


def test_a_trial_near_the_best_keeps_close_to_it_where_others_failed():
    best = {"x": 0.45, "y": 0.65}
    trials = list(on_plane([*SCATTERED[:18], (0.45, 0.65)]))
    worse = [(0.55, 0.7), (0.4, 0.5), (0.6, 0.55), (0.35, 0.65), (0.6, 0.5)]
    trials += [TrialResult(point={"x": x, "y": y}, values=(0.5,)) for x, y in worse]
    [point] = choose(request_of(PLANE, tuple(trials)))
    assert gap(point, best) < 0.01


def test_the_first_trial_has_the_defaults():
    lr = Parameter(id="lr", kind=ParameterKind.DOUBLE, low=0.0, high=1.0, default=0.125)
    units = Parameter(id="units", kind=ParameterKind.INTEGER, low=0, high=10)
    assert choose(request_of(SearchSpace((lr, units)))) == [{"lr": 0.125, "units": 5}]


def test_the_best_points_of_earlier_studies_are_tried_first():
    earlier = random_trials(20)
    best = min(earlier, key=lambda trial: loss(trial.point))
    assert choose(request_of(priors=earlier)) == [best.point]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e308, -1e308])
def test_one_strange_result_does_not_change_where_the_search_goes(value: float):
    trials = random_trials(25)
    strange = TrialResult(point=choose(request_of(trials=trials))[0], values=(value,))
    [point] = choose(request_of(trials=(*trials, strange)))
    assert MIXED.contains(point)


def test_trials_outside_of_the_space_are_left_out():
    stray = TrialResult(point={"model": "svm"}, values=(0.0,))
    assert MIXED.contains(choose(request_of(trials=(*random_trials(12), stray)))[0])


def test_two_objectives_are_both_approached():
    results: tuple[TrialResult, ...] = ()
    both = (Objective("left"), Objective("right", maximize=True))
    space = SearchSpace((Parameter(id="x", kind=ParameterKind.DOUBLE, low=-2, high=3),))
    for _ in range(20):
        [point] = choose(request_of(space, results, objectives=both))
        x = float(point["x"])
        results = (*results, TrialResult(point=point, values=(x * x, -((x - 1) ** 2))))
    inside = [result for result in results[6:] if -0.1 <= float(result.point["x"]) <= 1.1]
    assert len(inside) >= 10


@pytest.mark.parametrize("count", [260, 1010])
def test_many_trials_are_no_obstacle(count: int):
    points = choose(request_of(trials=random_trials(count)))
    assert MIXED.contains(points[0])


def test_finished_trials_are_those_of_the_test_function():
    assert finished([{"model": "net", "lr": 0.01, "momentum": 0.5, "batch": 32.0, "units": 8}])[0].values == (
        0.0,
    )
