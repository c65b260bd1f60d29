"""Measured values as a model likes them: finite, of unit spread, without far outliers. Smaller is better.

`bandit.py` calls it, and `scalarise.py`. A loss is bent by log(1 + bend * gap) of its gap to the best:
strongly bent, the differences among good values count more, and how bad a bad trial was counts less. Which
bend suits a function, its model tells by the likelihood; so each warped column comes with the logarithm of
its derivative. The order of values is kept. A value that is not finite counts as a little worse than the
worst.
"""

import math
from dataclasses import dataclass

import numpy as np

from trainshed.suggest.encoding import Floats

BENDS = (0.0, 1.0, 10.0, 100.0)


@dataclass(frozen=True, slots=True)
class Warped:
    values: Floats
    log_slope: float  # the sum over all finite values


def warp(losses: Floats, bend: float = 1.0) -> Warped:
    """Losses of any size as values around zero, of unit spread."""
    finite = np.isfinite(losses)
    if not finite.any():
        return Warped(np.zeros(len(losses)), 0.0)
    # Halved, so that the difference of two numbers of any size is finite.
    gaps = losses[finite] / 2 - losses[finite].min() / 2
    unit = _unit(gaps)
    if not unit > 0.0 or not math.isfinite(1.0 / unit):
        return Warped(np.where(finite, 0.0, 1.0), 0.0)
    with np.errstate(over="ignore"):  # what is beyond all numbers is cut with the rest
        scaled = np.minimum(gaps / unit, 1e6)
    bent = np.log1p(bend * scaled) / bend if bend else scaled
    spread = float(bent.std())
    values = np.empty(len(losses))
    values[finite] = (bent - bent.mean()) / spread
    values[~finite] = values[finite].max() + 0.5
    log_slope = -float(np.log1p(bend * scaled).sum()) - len(bent) * math.log(spread)
    return Warped(values, log_slope)


def median_gap(losses: Floats) -> float:
    """That of finite losses to the best, halved so that it is finite; where it is 0, the mean gap."""
    finite = losses[np.isfinite(losses)]
    return _unit(finite / 2 - finite.min() / 2) if len(finite) else 0.0


def _unit(gaps: Floats) -> float:
    return float(np.median(gaps)) or float(gaps.mean())
