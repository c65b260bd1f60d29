"""Functions that were fresh until the default algorithm was changed because of them.

`tuning_quality.py` calls them with those of the set `check`: they no longer tell how it does on others.
"""

import math

import numpy as np

from tests.benchmarks.tuning_functions import CATEGORICAL, DOUBLE, Instance, Make, branin, cube, vector
from trainshed.core.search_space import Parameter, Scale, SearchSpace, TrialPoint


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


ONCE_FRESH: dict[str, Make] = {"few-matter10": few_matter, "kernels": kernels}
