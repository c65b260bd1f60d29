"""Which trials a model sees, where it should not see all: numbers of rows, in the order of the rows.

`bandit.py`, `earlier.py` and `gaussian_process.py` call it.
"""

import numpy as np

from trainshed.suggest.encoding import Bools, Floats, Indexes


def representative(values: Floats, most: int) -> Indexes:
    """At most so many indexes: half of them the best, half evenly spread over the order of the others."""
    order = np.argsort(values, kind="stable")
    if len(order) <= most:
        return np.arange(len(order))
    best, others = order[: most // 2], order[most // 2 :]
    spread = others[np.linspace(0, len(others) - 1, most - len(best)).astype(int)]
    return np.sort(np.concatenate([best, spread]))


def nearest(rows: Floats, centre: int, is_category: Bools, most: int) -> tuple[Indexes, float]:
    """At most so many, those nearest to one, and how far they are at most."""
    far = distances(rows, rows[centre], is_category)
    some = np.argsort(far, kind="stable")[:most]
    return np.sort(some), float(far[some].max())


def distances(rows: Floats, centre: Floats, is_category: Bools) -> Floats:
    """By the number that differs most; each category that differs adds the whole range of a number."""
    apart = np.abs(rows - centre)
    apart[:, is_category] = 0.0
    others = (rows[:, is_category] != centre[is_category]).sum(axis=1)
    return apart.max(axis=1) + others
