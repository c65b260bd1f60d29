"""Which trials a model sees, where it should not see all: numbers of rows, in the order of the rows.

`bandit.py`, `earlier.py` and `gaussian_process.py` call it.
"""

import numpy as np

from trainshed.suggest.encoding import Bools, Floats, Indexes

_ENOUGH = 8  # trials with the same categories: others need not be looked at


def representative(values: Floats, most: int) -> Indexes:
    """At most so many indexes: half of them the best, half evenly spread over the order of the others."""
    order = np.argsort(values, kind="stable")
    if len(order) <= most:
        return np.arange(len(order))
    best, others = order[: most // 2], order[most // 2 :]
    spread = others[np.linspace(0, len(others) - 1, most - len(best)).astype(int)]
    return np.sort(np.concatenate([best, spread]))


def neighbourhood(rows: Floats, centre: int, is_category: Bools) -> tuple[Indexes, float]:
    """Those nearest to one, enough for a quadratic of the numbers, and how far they are at most.

    Where enough have the same categories, all of them have: then they are at most 1 away.
    """
    width = int((~is_category).sum())
    terms = (width + 1) * (width + 2) // 2
    alike = np.flatnonzero((rows[:, is_category] == rows[centre, is_category]).all(axis=1))
    among = alike if len(alike) >= max(2 * terms, _ENOUGH) else np.arange(len(rows))
    far = distances(rows[among], rows[centre], is_category)
    order = np.argsort(far, kind="stable")[: min(max(3 * terms, 30), 80)]
    return np.sort(among[order]), float(far[order].max())


def distances(rows: Floats, centre: Floats, is_category: Bools) -> Floats:
    """By the number that differs most; each category that differs adds the whole range of a number."""
    apart = np.abs(rows - centre)
    apart[:, is_category] = 0.0
    others = (rows[:, is_category] != centre[is_category]).sum(axis=1)
    return apart.max(axis=1) + others
