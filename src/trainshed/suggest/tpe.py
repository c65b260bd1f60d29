"""A tree-structured Parzen estimator: likely values of the good trials that are unlikely among the bad.

`choose.py` calls it, and the default algorithm where there are too many trials for a Gaussian process. All
columns are drawn together, so that what depends on each other stays together. Trials under way count as bad:
the next one keeps away from them. Its cost grows with the number of trials, not with its square.
"""

import math

import numpy as np

from trainshed.suggest.encoding import Encoding, Floats
from trainshed.suggest.scipy_functions import log_sum, normal_at, normal_below
from trainshed.suggest.trial_table import TrialTable

_CANDIDATES = 48
_MOST_GOOD = 25
_FIRST = 10  # trials that are drawn at random


def tpe_rows(table: TrialTable, losses: Floats, rng: np.random.Generator) -> Floats:
    """Candidates for the next trial, the best first."""
    encoding = table.encoding
    if np.isfinite(losses).sum() < _FIRST:
        return encoding.random(rng, 8)
    order = np.argsort(np.where(np.isnan(losses), np.inf, losses), kind="stable")
    count = min(math.ceil(0.1 * len(order)), _MOST_GOOD)
    good = _Mixture(encoding, table.rows[order[:count]])
    bad = _Mixture(encoding, np.vstack([table.rows[order[count:]], table.pending]))
    candidates = good.draw(rng, _CANDIDATES)
    scores = good.log_density(candidates) - bad.log_density(candidates)
    return candidates[np.argsort(-scores, kind="stable")]


class _Mixture:
    """A kernel at each row, and one over the whole space. A column that does not apply has no part in it."""

    def __init__(self, encoding: Encoding, rows: Floats) -> None:
        self.encoding, self.rows = encoding, rows
        self.applies = encoding.active(rows) if len(rows) else np.zeros((0, encoding.width), dtype=bool)
        count = len(rows)
        self.width = np.ones((count, encoding.width))
        least = 1.0 / min(100.0, count + 1.0)
        for column in range(encoding.width):
            self.width[:, column] = np.clip(_gaps(rows[:, column]), least, 1.0)

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        rows = self.encoding.random(rng, count)
        chosen = rng.integers(len(self.rows) + 1, size=count)
        low, high = -0.0, 1.0
        for index in np.flatnonzero(chosen < len(self.rows)):
            at, width = self.rows[chosen[index]], self.width[chosen[index]]
            below, above = normal_below((low - at) / width), normal_below((high - at) / width)
            numbers = at + width * normal_at(below + rng.random(len(at)) * (above - below))
            kept = np.where(self.encoding.is_category, at, np.clip(numbers, 0.0, 1.0))
            anew = self.encoding.is_category & (rng.random(len(at)) > self._loyalty())
            rows[index] = np.where(self.applies[chosen[index]] & ~anew, kept, rows[index])
        return self.encoding.snap(rows)

    def log_density(self, rows: Floats) -> Floats:
        """Up to a constant, the same for all mixtures of a space."""
        active = self.encoding.active(rows)
        total = np.zeros((len(rows), len(self.rows) + 1))  # the last is the whole space, of density 1
        for column in range(self.encoding.width):
            part = self._column(column, rows[:, column])
            # Where the kernel's row lacks the column, any value is as likely as another.
            part = np.where(self.applies[None, :, column], part, 0.0)
            total[:, :-1] += np.where(active[:, column, None], part, 0.0)
        return log_sum(total) - math.log(total.shape[1])

    def _column(self, column: int, places: Floats) -> Floats:
        own = self.rows[:, column]
        if self.encoding.is_category[column]:
            levels = self.encoding.levels[column]
            options = len(levels) if levels is not None else 1
            loyal = self._loyalty()
            same = math.log(loyal * options + 1.0 - loyal)
            return np.where(places[:, None] == own[None, :], same, math.log(1.0 - loyal + 1e-12))
        width = self.width[None, :, column]
        z = (places[:, None] - own[None, :]) / width
        mass = normal_below((1.0 - own) / self.width[:, column]) - normal_below(-own / self.width[:, column])
        return -0.5 * z * z - np.log(width * math.sqrt(2.0 * math.pi) * mass[None, :])

    def _loyalty(self) -> float:
        """How often a kernel keeps its category."""
        return len(self.rows) / (len(self.rows) + 2.0)


def _gaps(places: Floats) -> Floats:
    """For each place, the larger of the gaps to its neighbours, the ends of [0, 1] included."""
    order = np.argsort(places, kind="stable")
    ends = np.concatenate([[0.0], np.clip(places[order], 0.0, 1.0), [1.0]])
    gaps = np.diff(ends)
    result = np.empty(len(places))
    result[order] = np.maximum(gaps[:-1], gaps[1:])
    return result
