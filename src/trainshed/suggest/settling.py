"""Whether a search near the best trial still gains anything, how far it looks, and what it has left out.

`bandit.py` calls it. All follows from the finished trials and their order: nothing is remembered.
"""

import numpy as np

from trainshed.suggest.encoding import Encoding, Floats
from trainshed.suggest.selection import distances
from trainshed.suggest.warping import median_gap

NEAR = 0.2  # of the range of a number
_PATIENCE = 3  # trials near the best that may gain little
_LITTLE = 1e-3  # of the median gap to the best
_STRIDE = 3.0  # steps as long as the one that led to the best trial: how far the next one may be from it
_LEAST_STRIDE = 0.0125
_LEAST_RADIUS = 0.003
_INSIDE = 0.05  # how far from a border the first trial off it is
_BESIDE = 0.15  # what is nearer to a border than this tells what lies next to it,
_LIKE = 0.05  # where it differs in all other numbers by less than this


def is_settled(rows: Floats, losses: Floats, best: int, encoding: Encoding) -> bool:
    """Whether enough of the trials near the best came after one that was about as good."""
    near = np.flatnonzero(distances(rows, rows[best], encoding.is_category) <= NEAR)
    as_good = losses[near] <= losses[best] + _LITTLE * median_gap(losses)
    return len(near) - 1 - int(np.argmax(as_good)) >= _PATIENCE


def trusted_radius(rows: Floats, losses: Floats, best: int, encoding: Encoding) -> float:
    """How far from the best trial the next one near it may be.

    A model of a bent valley is right for some steps of the size that succeeded last, not for all the range.
    Each trial near the best that is no better halves it: what it promised further away was not there.
    """
    far = distances(rows, rows[best], encoding.is_category)
    failed = int((far[best + 1 :] <= NEAR).sum())
    before = losses[:best]
    radius = NEAR
    if np.isfinite(before).any():
        step = float(far[int(np.nanargmin(before))])
        radius = min(max(_STRIDE * step, _LEAST_STRIDE), NEAR)
    return max(radius * 0.5**failed, _LEAST_RADIUS)


def off_border(rows: Floats, best: int, encoding: Encoding) -> Floats | None:
    """The row of the best trial with a number moved off its border, where nothing like it was tried."""
    row = rows[best]
    for column in np.flatnonzero(encoding.is_continuous & ((row == 0.0) | (row == 1.0))):
        apart = np.abs(rows[:, column] - row[column])
        others = rows.copy()
        others[:, column] = row[column]
        alike = distances(others, row, encoding.is_category) < _LIKE
        if not ((apart > 0.0) & (apart < _BESIDE) & alike).any():
            moved = row.copy()
            moved[column] = abs(row[column] - _INSIDE)
            return encoding.snap(moved[None, :])
    return None
