"""How a learning curve may go on: power laws and exponentials, fitted to it and weighed by how well they fit.
Pure.

`stopping.py` calls it. It is a light stand-in for a Gaussian process over curves: all fits are linear
regressions of the values on one shape of decay, so each has a closed form, and their disagreement is part of
the uncertainty.
"""

import math
from collections.abc import Iterator, Sequence

from trainshed.core.curve import Curve

_POWERS = (0.25, 0.5, 1.0, 2.0)
_RATES = (1.0, 3.0, 8.0)  # of an exponential decay over the length of the curve so far
_WHOLE = 0.05  # of what the curve moved: nobody knows a curve's end better than this


def chance_to_reach(curve: Curve, end: float, target: float) -> float | None:
    """The probability that the curve is above the target at `end`. None: too little is known to tell."""
    fits = [fit for shape in _shapes(curve.places, end) if (fit := _regression(shape, curve.values))]
    if not fits:
        return None
    least = min(loss for _, _, loss in fits)
    weights = [math.exp(-0.5 * (loss - least)) for _, _, loss in fits]
    moved = max(curve.values) - min(curve.values)
    chances = [
        0.5 * math.erfc((target - mean) / (math.sqrt(2.0) * math.hypot(deviation, _WHOLE * moved) or 1e-300))
        for mean, deviation, _ in fits
    ]
    return math.fsum(w * c for w, c in zip(weights, chances, strict=True)) / math.fsum(weights)


def _shapes(places: Sequence[float], end: float) -> Iterator[list[float]]:
    """Decays from 1 towards 0: at each place, and last at the end."""
    first, last = places[0], places[-1]
    length = last - first
    if length <= 0:
        return
    # From 1 on, in units of the usual step: a curve may begin at 0.
    unit = length / (len(places) - 1)
    every = [*((place - first) / unit + 1.0 for place in places), (end - first) / unit + 1.0]
    for power in _POWERS:
        yield [at**-power for at in every]
    for rate in _RATES:
        yield [math.exp(-rate * (at - 1.0) * unit / length) for at in every]


def _regression(shape: Sequence[float], values: Sequence[float]) -> tuple[float, float, float] | None:
    """(mean, deviation) at the end, and how badly it fits: values = a + b shape, later ones counting more."""
    count = len(values)
    if count < 3:
        return None
    weights = [(index + 1.0) / count for index in range(count)]
    total = math.fsum(weights)
    x_mean = math.fsum(w * x for w, x in zip(weights, shape, strict=False)) / total
    y_mean = math.fsum(w * y for w, y in zip(weights, values, strict=True)) / total
    spread = math.fsum(w * (x - x_mean) ** 2 for w, x in zip(weights, shape, strict=False))
    if spread <= 1e-300:
        return None
    slope = (
        math.fsum(w * (x - x_mean) * (y - y_mean) for w, x, y in zip(weights, shape, values, strict=False))
        / spread
    )
    errors = [y - y_mean - slope * (x - x_mean) for x, y in zip(shape, values, strict=False)]
    scale = max(abs(y - y_mean) for y in values) or 1.0
    squares = math.fsum(w * (error / scale) ** 2 for w, error in zip(weights, errors, strict=True))
    variance = squares * count / total / max(1, count - 2)
    reach = 1.0 + 1.0 / total + (shape[-1] - x_mean) ** 2 / spread
    loss = count * math.log(squares / count + 1e-6)
    return y_mean + slope * (shape[-1] - x_mean), scale * math.sqrt(variance * reach), loss
