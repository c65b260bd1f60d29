"""How alike the losses of two rows are, by the model: a Matern 5/2 part and a quadratic part.

`gaussian_process.py` calls it. The quadratic part is that of all polynomials of second degree in the numbers.
With it a model finds the bottom of a bowl from few trials, however narrow the bowl is and however it lies.
"""

import math

import numpy as np

from trainshed.suggest.encoding import Bools, Floats


def matern(squared: Floats) -> Floats:
    """The part that knows only distances, by their squares."""
    root = np.sqrt(5.0 * squared)
    return (1.0 + root + root * root / 3.0) * np.exp(-root)


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
