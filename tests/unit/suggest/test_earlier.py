"""What a study learns from earlier ones: it begins where they ended, also where its values are shifted."""

import math
from collections.abc import Callable
from functools import cache

import pytest

from trainshed.core.tuning.earlier_trials import MOST, learned
from trainshed.core.tuning.search_space import Parameter, ParameterKind, SearchSpace, TrialPoint
from trainshed.core.tuning.suggestion_port import Objective, SuggestionRequest, TrialResult
from trainshed.suggest.choose import choose

X = Parameter(id="x", kind=ParameterKind.DOUBLE, low=-5, high=10)
Y = Parameter(id="y", kind=ParameterKind.DOUBLE, low=0, high=15)
SPACE = SearchSpace((X, Y))
LOSS = (Objective("loss"),)
Function = Callable[[TrialPoint], float]


def bowl(point: TrialPoint) -> float:
    return (float(point["x"]) - 3.3) ** 2 + 2 * (float(point["y"]) - 7.1) ** 2


def searched(
    function: Function, count: int, seed: int, priors: tuple[TrialResult, ...] = ()
) -> list[TrialResult]:
    trials: list[TrialResult] = []
    for number in range(1, count + 1):
        request = SuggestionRequest(
            space=SPACE, objectives=LOSS, seed=seed, number=number, trials=tuple(trials), priors=priors
        )
        [point] = choose(request)
        trials.append(TrialResult(point=point, values=(function(point),)))
    return trials


@cache
def of_bowl(count: int, seed: int) -> list[TrialResult]:
    return searched(bowl, count, seed)


def best(trials: list[TrialResult]) -> float:
    return min(value for trial in trials for value in trial.values or ())


@pytest.mark.parametrize(("shift", "factor"), [(100.0, 1.0), (-7.0, 1000.0)])
@pytest.mark.parametrize("seed", [1, 2])
def test_ten_trials_after_an_earlier_study_beat_ten_without(shift: float, factor: float, seed: int) -> None:
    earlier = learned([of_bowl(20, seed + 100)], SPACE, LOSS)

    def copy(point: TrialPoint) -> float:
        return shift + factor * bowl(point)

    assert best(searched(copy, 10, seed, earlier)) < best(searched(copy, 10, seed))


@pytest.mark.parametrize("seed", [1, 2])
def test_an_optimum_that_has_moved_a_little_is_found_all_the_same(seed: int) -> None:
    def moved(point: TrialPoint) -> float:
        return (float(point["x"]) - 4.3) ** 2 + 2 * (float(point["y"]) - 6.1) ** 2

    earlier = learned([of_bowl(20, seed + 100)], SPACE, LOSS)
    assert best(searched(moved, 12, seed, earlier)) < 0.1  # it is 3 at the old one


def test_the_third_trial_is_better_than_all_points_that_were_tried_before() -> None:
    earlier = [t for t in of_bowl(12, 5) if bowl(t.point) > 3]  # what was good is not told
    assert len(earlier) >= 5
    warm = searched(lambda point: 100 + bowl(point), 3, 1, learned([earlier], SPACE, LOSS))
    assert best(warm) < 100 + best(earlier)


def test_the_same_request_gets_the_same_point_and_none_of_an_earlier_study_is_forbidden() -> None:
    earlier = learned([of_bowl(12, 5)], SPACE, LOSS)
    first = searched(bowl, 3, 1, earlier)
    assert searched(bowl, 3, 1, earlier) == first
    top = min(earlier, key=lambda trial: trial.values or ())
    assert first[0].point == top.point  # it is tried here, too


def test_an_earlier_study_that_says_the_opposite_is_left_out() -> None:
    opposite = [
        TrialResult(point=trial.point, values=(-(trial.values or (0.0,))[0],)) for trial in of_bowl(12, 5)
    ]
    own = tuple(searched(bowl, 8, 1))

    def asked(priors: tuple[TrialResult, ...]) -> list[TrialPoint]:
        return list(
            choose(SuggestionRequest(space=SPACE, objectives=LOSS, number=9, trials=own, priors=priors))
        )

    assert asked(learned([opposite], SPACE, LOSS)) == asked(())


def test_values_of_any_size_and_studies_without_spread_harm_nobody() -> None:
    for value in (1e308, -1e308, 0.0, 5e-324):
        flat = [TrialResult(point=trial.point, values=(value,)) for trial in of_bowl(6, 5)]
        wild = [TrialResult(point=t.point, values=(value * at,)) for at, t in enumerate(flat)]
        earlier = learned([flat, wild], SPACE, LOSS)
        trials = searched(lambda point, size=value: size * bowl(point) / 1e3, 4, 1, earlier)
        assert all(SPACE.contains(trial.point) for trial in trials)


def test_each_study_has_a_scale_of_its_own() -> None:
    points = [{"x": float(at), "y": 1.0} for at in range(5)]
    small = [TrialResult(point=point, values=(float(at),)) for at, point in enumerate(points)]
    large = [TrialResult(point=point, values=(1e6 * at + 77,)) for at, point in enumerate(points)]
    results = learned([small, large], SPACE, LOSS)
    values = [value for result in results for value in result.values or ()]
    assert values == pytest.approx([-2.0, -1.0, 0.0, 1.0, 2.0] * 2)


def test_only_what_fits_the_space_and_has_a_finite_value_counts() -> None:
    inside: TrialPoint = {"x": 1.0, "y": 1.0}
    results = [
        TrialResult(point=inside, values=(1.0,)),
        TrialResult(point={"x": 1.0}, values=(1.0,)),
        TrialResult(point={"x": 11.0, "y": 1.0}, values=(1.0,)),
        TrialResult(point={"x": "a", "y": 1.0}, values=(1.0,)),
        TrialResult(point=inside, values=(math.nan,)),
        TrialResult(point=inside, is_failed=True),
        TrialResult(point=inside, is_pending=True),
    ]
    assert [r.point for r in learned([results, []], SPACE, LOSS)] == [inside]


@pytest.mark.parametrize("maximize", [False, True])
def test_of_many_trials_the_best_and_the_newest_count(maximize: bool) -> None:
    values = [float(at if maximize else -at) for at in [*range(1000, 500, -1), *range(500)]]
    results = [
        TrialResult(point={"x": at / 100, "y": 1.0}, values=(value,)) for at, value in enumerate(values)
    ]
    kept = learned([results], SPACE, (Objective("loss", maximize=maximize),))
    assert len(kept) == MOST
    assert [round(float(r.point["x"]) * 100) for r in kept] == [*range(100), *range(900, 1000)]
