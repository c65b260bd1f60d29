"""The points for a request: the one function that the process of the suggester calls.

It keeps what holds for all algorithms: every point lies in the space, and none is tried twice under low
noise. It has no state and draws from generators that the seed and the number of the trial determine: the same
request gets the same points.
"""

from collections.abc import Iterable, Sequence
from typing import assert_never

import numpy as np

from trainshed.core.errors import Invalid
from trainshed.core.tuning import grid
from trainshed.core.tuning.search_space import TrialPoint
from trainshed.core.tuning.suggestion_port import Algorithm, NoiseLevel, SuggestionRequest, point_key
from trainshed.suggest.bandit import bandit_rows
from trainshed.suggest.cma_es import cma_rows
from trainshed.suggest.encoding import Floats
from trainshed.suggest.scalarise import scalarise
from trainshed.suggest.sobol import sobol_row
from trainshed.suggest.tpe import tpe_rows
from trainshed.suggest.trial_table import TrialTable, tabulate

_DRAWS = 200  # random points that are tried before a finite space is searched for one that is left
_MOST_WALKED = 1_000_000


def choose(request: SuggestionRequest) -> Sequence[TrialPoint]:
    """The points of the next trials; fewer than asked for where no more are left."""
    if violations := request.violations():
        raise Invalid(violations)
    table = tabulate(request)
    points: list[TrialPoint] = []
    for number in range(request.number, request.number + request.count):
        rng = np.random.default_rng([request.seed % 2**63, number])
        point = _next_point(request, table, number, rng)
        if point is None:
            break
        points.append(point)
        table = table.with_pending(point)
    return points


def _next_point(
    request: SuggestionRequest, table: TrialTable, number: int, rng: np.random.Generator
) -> TrialPoint | None:
    if request.algorithm is Algorithm.GRID:
        return _grid_point(request, table)
    size = grid.size(request.space)
    may_repeat = request.noise is NoiseLevel.HIGH
    if not may_repeat and size is not None and len(table.tried) >= size:
        return None
    points = map(table.encoding.point, _candidates(request, table, number, rng))
    if may_repeat:
        return next(iter(points))
    drawn = map(table.encoding.point, table.encoding.random(rng, _DRAWS))
    return _untried(points, table) or _untried(drawn, table) or _left(request, table, rng)


def _untried(points: Iterable[TrialPoint], table: TrialTable) -> TrialPoint | None:
    return next((point for point in points if point_key(point) not in table.tried), None)


def _left(request: SuggestionRequest, table: TrialTable, rng: np.random.Generator) -> TrialPoint | None:
    """A point of a finite space that no trial has had: from a random position onwards."""
    size = grid.size(request.space)
    if size is None:
        return None
    start = int(rng.integers(min(size, 2**62)))
    walk = range(min(size, _MOST_WALKED))
    return _untried((grid.point_at(request.space, (start + step) % size) for step in walk), table)


def _grid_point(request: SuggestionRequest, table: TrialTable) -> TrialPoint | None:
    """The first point that no trial has had, from the number of trials on, then from the beginning."""
    size = grid.size(request.space) or 0
    if len(table.tried) >= size:
        return None
    walk = range(len(table.tried), len(table.tried) + size)
    return _untried((grid.point_at(request.space, index % size) for index in walk), table)


def _candidates(
    request: SuggestionRequest, table: TrialTable, number: int, rng: np.random.Generator
) -> Floats:
    """Rows for the next trial, the best first. At least one."""
    match request.algorithm:
        case Algorithm.RANDOM | Algorithm.GRID:
            return table.encoding.random(rng, 8)
        case Algorithm.SOBOL:
            return sobol_row(table.encoding, request.seed % 2**63, number - 1)[None, :]
        case Algorithm.CMA_ES:
            return cma_rows(table, scalarise(table.losses, rng), number, rng)
        case Algorithm.TPE:
            return tpe_rows(table, scalarise(table.losses, rng), rng)
        case Algorithm.DEFAULT:
            return bandit_rows(table, scalarise(table.losses, rng), request.seed % 2**63, number, rng)
        case _:
            assert_never(request.algorithm)
