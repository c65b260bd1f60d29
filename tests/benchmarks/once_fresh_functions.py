"""Functions that were fresh until the default algorithm was changed because of them.

`tuning_quality.py` calls them with those of the set `check`: they no longer tell how it does on others.
"""

import math
from functools import cache

import numpy as np

from tests.benchmarks.tuning_functions import (
    CATEGORICAL,
    DOUBLE,
    Floats,
    Instance,
    Make,
    branin,
    cube,
    mirrored,
    vector,
)
from trainshed.core.tuning.search_space import Parameter, Scale, SearchSpace, TrialPoint

_LEAST_WELL = -39.16616570377142  # of a coordinate of Styblinski and Tang


def _styblinski(x: Floats) -> float:
    return float(0.5 * (x**4 - 16.0 * x**2 + 5.0 * x).sum())


def _michalewicz_parts(x: Floats, index: Floats) -> Floats:
    return -np.sin(x) * np.sin(index * x * x / math.pi) ** 20


def _michalewicz(x: Floats) -> float:
    return float(_michalewicz_parts(x, np.arange(1, len(x) + 1)).sum())


@cache
def _least_michalewicz(width: int) -> float:
    places = np.linspace(0.0, math.pi, 2_000_001)
    return float(sum(_michalewicz_parts(places, np.array(i)).min() for i in range(1, width + 1)))


def michalewicz(rng: np.random.Generator) -> Instance:
    """Narrow valleys across each other on a flat plain."""
    return mirrored(4, 0.0, math.pi, _michalewicz, _least_michalewicz(4))(rng)


def ackley_log(rng: np.random.Generator) -> Instance:
    """Many small valleys within one large, over four parameters of six decades each."""
    space = SearchSpace(
        tuple(Parameter(id=f"x{i}", kind=DOUBLE, low=1e-6, high=1.0, scale=Scale.LOG) for i in range(4))
    )
    at = rng.uniform(-5.0, -1.0, 4)

    def value(p: TrialPoint) -> float:
        z = np.log10(vector(p)) - at
        bowl = -20.0 * math.exp(-0.2 * math.sqrt(float(z @ z) / 4.0))
        return bowl - math.exp(float(np.cos(2.0 * math.pi * z).mean())) + 20.0 + math.e

    return Instance(space, value)


def few_matter(rng: np.random.Generator) -> Instance:
    """Ten parameters, two of which matter."""
    first, second = rng.choice(10, 2, replace=False)
    inner = branin(rng)

    def value(p: TrialPoint) -> float:
        x = vector(p)
        return inner.value({"x0": float(-5.0 + 15.0 * x[first]), "x1": float(15.0 * x[second])})

    return Instance(cube(10, 0.0, 1.0), value, inner.least)


def kernels(rng: np.random.Generator) -> Instance:
    """Two long lists of words, most of them bad, and two numbers that matter less."""
    words = tuple(f"k{i}" for i in range(10))
    space = SearchSpace(
        (
            Parameter(id="left", kind=CATEGORICAL, values=words),
            Parameter(id="right", kind=CATEGORICAL, values=words[:6]),
            Parameter(id="x0", kind=DOUBLE, low=0.01, high=100.0, scale=Scale.LOG),
            Parameter(id="x1", kind=DOUBLE, low=0.0, high=1.0),
        )
    )
    table = rng.gamma(2.0, 0.2, (10, 6)) + rng.gamma(1.5, 0.3, (10, 1)) + rng.gamma(1.5, 0.3, (1, 6))
    at = rng.uniform(0.1, 0.9, 2)

    def value(p: TrialPoint) -> float:
        effect = table[words.index(str(p["left"])), words.index(str(p["right"]))]
        z = (math.log10(float(p["x0"])) + 2.0) / 4.0 - at[0]
        return float(
            effect + z * z + 0.7 * (float(p["x1"]) - at[1]) ** 2 + 0.5 * z * (float(p["x1"]) - at[1])
        )

    return Instance(space, value, float(table.min()))


ONCE_FRESH: dict[str, Make] = {
    "few-matter10": few_matter,
    "kernels": kernels,
    "styblinski4": mirrored(4, -5.0, 5.0, _styblinski, 4 * _LEAST_WELL),
    "michalewicz4": michalewicz,
    "ackley4-log": ackley_log,
}
