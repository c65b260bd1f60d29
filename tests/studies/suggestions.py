"""Search spaces and requests for tests of suggestions, also as hypothesis makes them up."""

import math

from hypothesis import strategies as st

from tests import one_core
from trainshed.core.tuning.search_space import Parameter, ParameterKind, Scale, SearchSpace, TrialPoint
from trainshed.core.tuning.suggestion_port import (
    Algorithm,
    NoiseLevel,
    Objective,
    SuggestionRequest,
    TrialResult,
)
from trainshed.suggest.random_search import random_points

__all__ = ["one_core"]  # its import is its effect

DOUBLE, INTEGER = ParameterKind.DOUBLE, ParameterKind.INTEGER
CATEGORICAL, DISCRETE = ParameterKind.CATEGORICAL, ParameterKind.DISCRETE

MIXED = SearchSpace(
    (
        Parameter(id="model", kind=CATEGORICAL, values=("net", "trees", "linear")),
        Parameter(id="lr", kind=DOUBLE, low=1e-5, high=1.0, scale=Scale.LOG),
        Parameter(id="momentum", kind=DOUBLE, low=0.1, high=0.999, scale=Scale.REVERSE_LOG),
        Parameter(id="batch", kind=DISCRETE, values=(16.0, 32.0, 64.0), scale=Scale.LOG),
        Parameter(
            id="units",
            kind=INTEGER,
            low=8,
            high=512,
            scale=Scale.LOG,
            parent="model",
            parent_values=("net",),
        ),
        Parameter(id="depth", kind=INTEGER, low=1, high=9, parent="model", parent_values=("trees",)),
        Parameter(id="bins", kind=DISCRETE, values=(8.0, 16.0), parent="depth", parent_values=(8, 9)),
    )
)
SMALL = SearchSpace(
    (
        Parameter(id="a", kind=CATEGORICAL, values=("x", "y")),
        Parameter(id="b", kind=INTEGER, low=1, high=3, parent="a", parent_values=("y",)),
    )
)


def loss(point: TrialPoint) -> float:
    """Least at 0: a good net, or a worse one of the others."""
    base = {"net": 0.0, "trees": 0.2, "linear": 0.4}[str(point["model"])]
    return base + (math.log10(float(point["lr"])) + 2) ** 2 + abs(float(point["batch"]) - 32) / 32


def request_of(
    space: SearchSpace = MIXED,
    trials: tuple[TrialResult, ...] = (),
    algorithm: Algorithm = Algorithm.DEFAULT,
    count: int = 1,
    noise: NoiseLevel = NoiseLevel.LOW,
    objectives: tuple[Objective, ...] = (Objective("loss"),),
    priors: tuple[TrialResult, ...] = (),
) -> SuggestionRequest:
    return SuggestionRequest(
        space=space,
        objectives=objectives,
        algorithm=algorithm,
        seed=7,
        number=len(trials) + 1,
        count=count,
        trials=trials,
        noise=noise,
        priors=priors,
    )


def finished(points: list[TrialPoint]) -> tuple[TrialResult, ...]:
    return tuple(TrialResult(point=point, values=(loss(point),)) for point in points)


def random_trials(count: int) -> tuple[TrialResult, ...]:
    return finished(list(random_points(request_of(count=count, algorithm=Algorithm.RANDOM))))


numbers = st.floats(-1e6, 1e6, allow_nan=False)
any_value = st.floats(allow_nan=True, allow_infinity=True)


@st.composite
def ranges(draw: st.DrawFn, id_: str) -> Parameter:
    kind = draw(st.sampled_from([DOUBLE, INTEGER]))
    scale = draw(st.sampled_from(list(Scale)))
    low = draw(st.floats(1e-6, 1e3) if kind is DOUBLE else st.integers(1, 1000))
    high = low + draw(st.floats(0, 1e6) if kind is DOUBLE else st.integers(0, 10**7))
    return Parameter(id=id_, kind=kind, low=low, high=high, scale=scale)


@st.composite
def lists(draw: st.DrawFn, id_: str) -> Parameter:
    if draw(st.booleans()):
        values = draw(st.lists(st.text("abcdef", min_size=1), min_size=1, max_size=5, unique=True))
        return Parameter(id=id_, kind=CATEGORICAL, values=tuple(values))
    numbers = draw(st.lists(st.integers(1, 10**6), min_size=1, max_size=6, unique=True))
    scale = draw(st.sampled_from(list(Scale)))
    return Parameter(id=id_, kind=DISCRETE, values=tuple(sorted(map(float, numbers))), scale=scale)


@st.composite
def spaces(draw: st.DrawFn) -> SearchSpace:
    """One to five parameters, some of them below an earlier list."""
    parameters: list[Parameter] = []
    for index in range(draw(st.integers(1, 5))):
        made = draw(st.one_of(ranges(f"p{index}"), lists(f"p{index}")))
        parents = [p for p in parameters if p.values]
        if parents and draw(st.booleans()):
            parent = draw(st.sampled_from(parents))
            some = draw(st.lists(st.sampled_from(parent.values), min_size=1, unique=True))
            fields = {name: getattr(made, name) for name in ("id", "kind", "low", "high", "values", "scale")}
            made = Parameter(**fields, parent=parent.id, parent_values=tuple(some))
        parameters.append(made)
    return SearchSpace(tuple(parameters))


@st.composite
def requests(draw: st.DrawFn, most_trials: int = 25) -> SuggestionRequest:
    """Trials of any result: finished with any value at all, failed, pending."""
    space = draw(spaces())
    count = draw(st.integers(0, most_trials))
    objectives = tuple(
        Objective(f"m{i}", draw(st.booleans())) for i in range(draw(st.sampled_from([1, 1, 1, 2])))
    )
    drawn = random_points(request_of(space, count=count or 1, algorithm=Algorithm.RANDOM))[:count]
    trials = tuple(
        TrialResult(
            point=point,
            values=draw(st.one_of(st.none(), st.tuples(*[any_value] * len(objectives)))),
            is_pending=draw(st.sampled_from([False, False, False, True])),
            is_failed=draw(st.sampled_from([False, False, False, True])),
        )
        for point in drawn
    )
    return SuggestionRequest(
        space=space,
        objectives=objectives,
        algorithm=draw(st.sampled_from([a for a in Algorithm if a is not Algorithm.GRID])),
        seed=draw(st.integers(-(2**40), 2**70)),
        number=len(trials) + 1,
        count=draw(st.integers(1, 3)),
        trials=trials,
        priors=trials[: draw(st.integers(0, 3))],
    )
