"""How alike the losses of two rows are, by the model: a Matern 5/2 part, a sum or a quadratic beside it.

`gaussian_process.py` calls it. The sum has a Matern part for each column: with it a model learns from few
trials what each parameter does by itself, whatever the others are. The quadratic is that of all polynomials
of second degree in the numbers: with it a model finds the bottom of a bowl from few trials, however narrow
the bowl is and however it lies.
"""

import math
from enum import Enum, auto

import numpy as np

from trainshed.suggest.encoding import Bools, Floats

ROOT_FIVE = math.sqrt(5.0)


class Beside(Enum):
    """The second part of a kernel."""

    NOTHING = auto()
    SUM = auto()
    QUADRATIC = auto()


def matern(root: Floats) -> Floats:
    """The part that knows only distances, by ROOT_FIVE times these."""
    return (1.0 + root * (1.0 + root / 3.0)) * np.exp(-root)


def steep_matern(root: Floats) -> tuple[Floats, Floats]:
    """The same, and its slopes along the squares of distances."""
    decay = np.exp(-root)
    slope = (1.0 + root) * decay
    return slope + root * root * decay / 3.0, (-5.0 / 6.0) * slope


def alone(is_category: Bools) -> Floats:
    """What a weight is multiplied by where its column counts alone: beside others lengths are larger."""
    return np.where(is_category, 1.0, float(len(is_category)))


def lift(is_category: Bools) -> Floats:
    """What the distance of a number from the middle is multiplied by; 0 for categories."""
    numbers = float((~is_category).sum())
    return np.where(is_category, 0.0, 2.0 / math.sqrt(max(numbers / 3.0, 1.0)))


def lifted(rows: Floats, by: Floats) -> Floats:
    """Rows around the middle: what does not apply lies there and has no part in the quadratic."""
    return (rows - 0.5) * by


def quadratic(products: Floats) -> Floats:
    """The part that knows only the inner products of lifted rows."""
    return 0.25 * (1.0 + products) ** 2
