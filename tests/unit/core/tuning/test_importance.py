"""Importance: what decides the result counts, what does not hardly counts."""

import math
import random

from trainshed.core.tuning.importance import importances
from trainshed.core.tuning.search_space import Parameter, ParameterKind, Scale, SearchSpace, TrialPoint

SPACE = SearchSpace(
    (
        Parameter(id="lr", kind=ParameterKind.DOUBLE, low=1e-5, high=1.0, scale=Scale.LOG),
        Parameter(id="idle", kind=ParameterKind.DOUBLE, low=0.0, high=1.0),
        Parameter(id="act", kind=ParameterKind.CATEGORICAL, values=("relu", "tanh", "gelu")),
        Parameter(id="layers", kind=ParameterKind.INTEGER, low=1, high=6),
    )
)


def points(count: int) -> list[TrialPoint]:
    draw = random.Random(3)
    return [
        {
            "lr": 10 ** draw.uniform(-5, 0),
            "idle": draw.random(),
            "act": draw.choice(("relu", "tanh", "gelu")),
            "layers": draw.randint(1, 6),
        }
        for _ in range(count)
    ]


def test_the_parameter_that_decides_is_the_most_important():
    tried = points(200)
    losses = [(math.log10(float(p["lr"])) + 2) ** 2 + 0.01 * float(p["idle"]) for p in tried]
    result = importances(SPACE, tried, losses)
    assert max(result, key=lambda id_: result[id_]) == "lr"
    assert result["lr"] > 5 * result["idle"]
    assert math.isclose(sum(result.values()), 1.0)


def test_a_category_that_decides_counts_too():
    tried = points(200)
    losses = [{"relu": 0.0, "tanh": 1.0, "gelu": 2.0}[str(p["act"])] + 0.1 * float(p["idle"]) for p in tried]
    result = importances(SPACE, tried, losses)
    assert result["act"] > result["lr"] and result["act"] > result["layers"]


def test_results_that_are_not_finite_do_not_count():
    tried = points(60)
    losses = [(math.log10(float(p["lr"])) + 2) ** 2 for p in tried]
    extra: list[TrialPoint] = [dict(tried[0]), dict(tried[1])]
    assert importances(SPACE, [*tried, *extra], [*losses, math.nan, math.inf]) == importances(
        SPACE, tried, losses
    )


def test_too_few_trials_or_equal_results_say_nothing():
    assert importances(SPACE, points(3), [1.0, 2.0, 3.0]) == {}
    assert importances(SPACE, points(9), [1.0] * 9) == {}


def test_a_conditional_parameter_is_judged_by_the_trials_that_have_it():
    model = Parameter(id="model", kind=ParameterKind.CATEGORICAL, values=("a", "b"))
    depth = Parameter(
        id="depth", kind=ParameterKind.INTEGER, low=1, high=9, parent="model", parent_values=("a",)
    )
    with_depth: list[TrialPoint] = [{"model": "a", "depth": 1 + i % 9} for i in range(50)]
    without: list[TrialPoint] = [{"model": "b"}] * 50
    tried = with_depth + without
    losses = [float(p.get("depth", 5)) for p in tried]
    result = importances(SearchSpace((model, depth)), tried, losses)
    assert set(result) == {"model", "depth"} and result["depth"] > 0
