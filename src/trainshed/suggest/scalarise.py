"""Several objectives as one: the weighted distance from the best of each, with other weights for each trial.

`choose.py` calls it. Trials of different weights aim at different parts of the Pareto set, so together they
cover it.
"""

import numpy as np

from trainshed.suggest.encoding import Floats
from trainshed.suggest.warping import warp


def scalarise(losses: Floats, rng: np.random.Generator) -> Floats:
    """One loss for each row. One objective stays as it is; nan stays nan."""
    if losses.shape[1] == 1:
        return losses[:, 0]
    weights = rng.dirichlet(np.ones(losses.shape[1]))
    failed = np.isnan(losses).any(axis=1)
    result = np.full(len(losses), np.nan)
    if failed.all():
        return result
    # Warped, objectives of different size weigh the same.
    columns = np.stack([warp(column).values for column in losses[~failed].T], axis=1)
    gaps = (columns - columns.min(axis=0)) * weights
    result[~failed] = gaps.max(axis=1) + 0.05 * gaps.sum(axis=1)
    return result
