"""The port to what suggests the points of trials, and the values that cross it.

`suggest/` implements it; the loop that moves studies calls it. A suggestion depends on its request alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

from trainshed.core.errors import Violation
from trainshed.core.tuning import grid
from trainshed.core.tuning.search_space import ParameterKind, SearchSpace, TrialPoint


class Algorithm(StrEnum):
    DEFAULT = "default"  # a model of the objective: a Gaussian process, TPE where there are too many trials
    GRID = "grid"  # every point once, in order; no doubles
    RANDOM = "random"
    SOBOL = "sobol"  # spreads points more evenly than chance
    CMA_ES = "cma_es"
    TPE = "tpe"


class NoiseLevel(StrEnum):
    LOW = "low"  # the same point gives the same result: none is tried twice
    HIGH = "high"  # a point may be tried again


@dataclass(frozen=True, slots=True)
class Objective:
    metric: str
    maximize: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """A trial, as far as suggestions depend on it. `values` follow the order of the objectives.

    Not pending and without values: it ended without a result. Failed: its values, if any, do not count.
    """

    point: TrialPoint
    values: tuple[float, ...] | None = None
    is_pending: bool = False
    is_failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestionRequest:
    """`number` is that of the first trial asked for, from 1.

    `priors` are results of earlier studies, each study on a scale of its own
    (`core/tuning/earlier_trials.py`).
    """

    space: SearchSpace
    objectives: tuple[Objective, ...]
    algorithm: Algorithm = Algorithm.DEFAULT
    seed: int = 0
    number: int = 1
    count: int = 1
    trials: tuple[TrialResult, ...] = ()
    noise: NoiseLevel = NoiseLevel.LOW
    priors: tuple[TrialResult, ...] = ()

    def violations(self) -> tuple[Violation, ...]:
        """All that is wrong with it, the space included."""
        result = list(self.space.violations())
        if not self.objectives:
            result.append(Violation("objectives", "must not be empty"))
        for name, number in (("number", self.number), ("count", self.count)):
            if number < 1:
                result.append(Violation(name, f"must be at least 1, not {number}"))
        for index, parameter in enumerate(self.space.parameters):
            if self.algorithm is Algorithm.GRID and parameter.kind is ParameterKind.DOUBLE:
                text = "must not be double for grid search: give it a list of discrete values"
                result.append(Violation(f"parameters[{index}].kind", text))
        return tuple(result)

    def after(self, points: Sequence[TrialPoint]) -> "SuggestionRequest":
        """What is left to ask for when these points have been given."""
        pending = tuple(TrialResult(point=point, is_pending=True) for point in points)
        return replace(
            self,
            number=self.number + len(points),
            count=self.count - len(points),
            trials=(*self.trials, *pending),
        )

    @property
    def points_left(self) -> int | None:
        """How many points of the space no trial has had; None where they are countless."""
        size = grid.size(self.space)
        if size is None:
            return None
        return size - len({point_key(t.point) for t in self.trials if self.space.contains(t.point)})


def point_key(point: TrialPoint) -> tuple[tuple[str, float | int | str], ...]:
    """Equal for equal points, whatever their order."""
    return tuple(sorted(point.items()))


class Suggester(Protocol):
    """Chooses the points of the next trials.

    1. the same request gets the same answer, from any process, also after a restart.
    2. every point lies in the space and has a value of each parameter that applies, and of no other.
    3. `count` points are returned, or fewer where no more are left: grid search ends after its last point,
       the others under low noise when every point of the space has been tried.
    4. under low noise no point is returned that a trial has had, pending and failed ones included.
    5. trials that failed and values that are not finite never raise and never stop the search.
    6. a request with violations raises Invalid with all of them; what cannot be computed raises Unavailable.
    7. nothing blocks the event loop.
    """

    async def suggest(self, request: SuggestionRequest) -> Sequence[TrialPoint]: ...
