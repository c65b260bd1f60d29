"""Trials of earlier studies as further observations, on the scale of the study that asks.

`bandit.py` calls it. Earlier values come on a scale of their own (`core/tuning/earlier_trials.py`). What a
model of them predicts at the points of finished trials says how the scales belong together: a value is a
shift plus a factor times the earlier value. Where that explains too little of what was measured, the earlier
trials are left out: a study of something else costs a few trials, not the search. Near the best trial the
study soon knows better itself. With several objectives, whose weights differ from trial to trial, earlier
trials only give the first points.
"""

import numpy as np

from trainshed.suggest.encoding import Bools, Floats
from trainshed.suggest.gaussian_process import Priors, fit
from trainshed.suggest.selection import distances
from trainshed.suggest.trial_table import TrialTable
from trainshed.suggest.warping import Warped

_LEAST = 4  # earlier trials, for a model of them
_KNOWN = 4  # own trials from which on they count alone near the best of them
_NEAR = 0.2  # of the range of a number
_EXPLAINED = 0.5  # of the variance of own trials, by what earlier ones predict: with less they are left out


def can_learn(table: TrialTable) -> bool:
    """Whether there is enough to learn from."""
    return len(table.prior_rows) >= _LEAST and table.prior_losses.shape[1] == 1


def with_earlier(table: TrialTable, losses: Floats) -> tuple[Floats, Floats]:
    """The rows and losses of earlier studies and, as they came later, behind them those of own trials."""
    if not can_learn(table):
        return table.rows, losses
    earlier = _rescaled(table, losses)
    if earlier is None or not np.isfinite(earlier).all():
        return table.rows, losses
    kept = _far_enough(table, losses)
    return np.vstack([table.prior_rows[kept], table.rows]), np.concatenate([earlier[kept], losses])


def _rescaled(table: TrialTable, losses: Floats) -> Floats | None:
    """The earlier losses as this study would measure them; None where they do not help to predict it."""
    finite = np.isfinite(losses)
    own, earlier = losses[finite], table.prior_losses[:, 0]
    if not len(own):
        return earlier
    model, _ = fit(table.prior_rows, [Warped(earlier, 0.0)], table.encoding.is_category, Priors())
    predicted, _ = model.predict(table.rows[finite])
    with np.errstate(all="ignore"):  # values may be as large as numbers are
        unit = float(np.abs(own).max()) or 1.0
        own = own / unit
        spread, expected = own - own.mean(), predicted - predicted.mean()
        factor = 1.0
        if len(own) > 1:
            size = float(expected @ expected)
            factor = float(spread @ expected) / size if size > 0.0 else 0.0
            left = spread - factor * expected
            is_explained = _variance(left, 2) <= (1.0 - _EXPLAINED) * _variance(spread, 1)
            if not factor > 0.0 or not is_explained:
                return None
        shift = float(np.median(own - factor * predicted))
        return (shift + factor * earlier) * unit


def _far_enough(table: TrialTable, losses: Floats) -> Bools:
    """Where the optimum is exactly, which may have moved, own trials around the best of them know better."""
    if np.isfinite(losses).sum() < _KNOWN:
        return np.ones(len(table.prior_rows), dtype=bool)
    best = table.rows[int(np.nanargmin(losses))]
    return distances(table.prior_rows, best, table.encoding.is_category) > _NEAR


def _variance(gaps: Floats, known: int) -> float:
    """Of gaps from so many numbers that were fitted to them; nothing is left of as many gaps."""
    return float(gaps @ gaps) / (len(gaps) - known) if len(gaps) > known else 0.0
