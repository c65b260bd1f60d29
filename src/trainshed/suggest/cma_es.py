"""CMA-ES without a state: each ask replays the generations that the trials make up.

`choose.py` calls it. Trial numbers say which generation a trial belongs to, so the answer depends on the
request alone. A generation counts with those of its trials that have finished; failed ones rank last.
Categories are drawn as a number that is cut into equal parts: for spaces of many categories the other
algorithms are better.
"""

import math
from dataclasses import dataclass

import numpy as np

from trainshed.suggest.encoding import Encoding, Floats
from trainshed.suggest.trial_table import TrialTable

_LEAST_STEP = 1e-8


@dataclass(slots=True)
class _State:
    mean: Floats
    covariance: Floats
    step: float
    path: Floats
    step_path: Floats


def population(width: int) -> int:
    return 4 + int(3 * math.log(max(1, width)))


def cma_rows(table: TrialTable, losses: Floats, number: int, rng: np.random.Generator) -> Floats:
    """Candidates for the trial of that number. The order of finished trials is their order of numbers."""
    encoding = table.encoding
    width, size = encoding.width, population(encoding.width)
    state = _State(
        _stretched(encoding, encoding.centre()[None, :])[0],
        np.eye(width),
        0.3,
        np.zeros(width),
        np.zeros(width),
    )
    generation = (number - 1) // size
    for index in range(generation):
        members = slice(index * size, (index + 1) * size)
        rows, values = table.rows[members], losses[members]
        order = np.argsort(np.where(np.isnan(values), np.inf, values), kind="stable")
        if len(order) >= 2:
            _update(state, _stretched(encoding, rows[order]), index + 1)
    roots, axes = np.linalg.eigh(state.covariance)
    spread = axes * np.sqrt(np.maximum(roots, 1e-20))
    cube = state.mean + state.step * rng.standard_normal((16, width)) @ spread.T
    cube = np.clip(1.0 - np.abs(1.0 - np.abs(cube)), 0.0, 1.0 - 1e-12)  # what leaves the cube is reflected
    return encoding.snap(_cut(encoding, cube))


def _stretched(encoding: Encoding, rows: Floats) -> Floats:
    """Rows within the cube: a category as the middle of its part, what does not apply in the middle."""
    result = rows.copy()
    for column in np.flatnonzero(encoding.is_category):
        levels = encoding.levels[column]
        count = len(levels) if levels is not None else 1
        result[:, column] = np.where(rows[:, column] < 0, 0.5, (rows[:, column] + 0.5) / count)
    return result


def _cut(encoding: Encoding, cube: Floats) -> Floats:
    result = cube.copy()
    for column in np.flatnonzero(encoding.is_category):
        levels = encoding.levels[column]
        result[:, column] = np.floor(cube[:, column] * (len(levels) if levels is not None else 1))
    return result


def _update(state: _State, ranked: Floats, generation: int) -> None:
    """One step of the standard strategy, by the better half of a generation, best first."""
    width, parents = len(state.mean), max(1, len(ranked) // 2)
    weights = math.log(parents + 0.5) - np.log(np.arange(1, parents + 1))
    weights = weights / weights.sum()
    mass = 1.0 / float((weights**2).sum())
    rate_path = (4 + mass / width) / (width + 4 + 2 * mass / width)
    rate_step = (mass + 2) / (width + mass + 5)
    rate_one = 2 / ((width + 1.3) ** 2 + mass)
    rate_many = min(1 - rate_one, 2 * (mass - 2 + 1 / mass) / ((width + 2) ** 2 + mass))
    damping = 1 + 2 * max(0.0, math.sqrt((mass - 1) / (width + 1)) - 1) + rate_step
    usual = math.sqrt(width) * (1 - 1 / (4 * width) + 1 / (21 * width**2))
    steps = (ranked[:parents] - state.mean) / state.step
    move = weights @ steps
    roots, axes = np.linalg.eigh(state.covariance)
    whitened = axes @ ((axes.T @ move) / np.sqrt(np.maximum(roots, 1e-20)))
    state.mean = state.mean + state.step * move
    state.step_path = (1 - rate_step) * state.step_path + math.sqrt(
        rate_step * (2 - rate_step) * mass
    ) * whitened
    length = float(np.linalg.norm(state.step_path))
    calm = length / math.sqrt(1 - (1 - rate_step) ** (2 * generation)) < (1.4 + 2 / (width + 1)) * usual
    state.path = (1 - rate_path) * state.path + calm * math.sqrt(rate_path * (2 - rate_path) * mass) * move
    state.covariance = (
        (1 - rate_one - rate_many) * state.covariance
        + rate_one
        * (np.outer(state.path, state.path) + (not calm) * rate_path * (2 - rate_path) * state.covariance)
        + rate_many * (steps.T * weights) @ steps
    )
    state.step = float(
        np.clip(state.step * math.exp((rate_step / damping) * (length / usual - 1)), _LEAST_STEP, 1.0)
    )
