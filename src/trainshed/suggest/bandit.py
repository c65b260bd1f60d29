"""The default algorithm: a Gaussian process says where the expected improvement is highest.

`choose.py` calls it. The first trials spread over the space, beginning with the best of earlier studies or
with the defaults; while earlier studies explain what is measured, the model chooses from the second trial on.
Pending trials count as if they had come out as predicted. Failed ones count as bad, but finite. Beyond some
hundred trials the model sees the best and an even choice of the others; beyond _MOST_TRIALS the Parzen
estimator takes over.
"""

import numpy as np

from trainshed.suggest.acquisition import Search, best_rows
from trainshed.suggest.earlier import can_learn, with_earlier
from trainshed.suggest.encoding import Encoding, Floats
from trainshed.suggest.gaussian_process import Priors, fit, representative
from trainshed.suggest.sobol import sobol_row
from trainshed.suggest.tpe import tpe_rows
from trainshed.suggest.trial_table import TrialTable
from trainshed.suggest.warping import BENDS, warp

_MANY = 120  # rows from which on fewer candidates are improved
_MOST_MODELLED = 250
_MOST_TRIALS = 1000
_NEAR = 0.2
_EARLY = 40  # trials of which every second stays near the best, later every third
_MOST_EARLIER = 3  # of the best points of earlier studies that are tried first


def bandit_rows(
    table: TrialTable, losses: Floats, seed: int, number: int, rng: np.random.Generator
) -> Floats:
    """Candidates for the next trial, the best first."""
    encoding = table.encoding
    if len(losses) > _MOST_TRIALS:
        return tpe_rows(table, losses, rng)
    known, losses = with_earlier(table, losses)
    is_warm = number > 1 and len(known) > len(table.rows)
    if not is_warm and (number <= starting_trials(encoding) or np.isfinite(losses).sum() < 2):
        return _spread(table, seed, number)
    some = representative(warp(losses).values, _MOST_MODELLED)
    rows = known[some]
    options = [warp(losses[some], bend) for bend in BENDS]
    model, warped = fit(rows, options, encoding.is_category, Priors())
    elite = rows[np.argsort(warped, kind="stable")[:5]]
    # The lowest prediction, not the lowest measurement: that one may be luck.
    best = float(model.predict(rows)[0].min())
    if len(table.pending):
        believed, _ = model.predict(table.pending)
        model = model.extended(table.pending, believed)
    return best_rows(model, encoding, best, elite, rng, _search(number, len(rows)))


def _search(number: int, rows: int) -> Search:
    """Some trials stay near the best: far corners of a space are uncertain for long, and seldom good."""
    is_local = number % 2 == 1 if number <= _EARLY else number % 3 == 0
    return Search(radius=_NEAR if is_local else 1.0, starts=4 if rows <= _MANY else 2)


def starting_trials(encoding: Encoding) -> int:
    """How many trials spread over the space before the model chooses."""
    return max(4, min(encoding.width + 1, 8))


def _spread(table: TrialTable, seed: int, number: int) -> Floats:
    most = 1 if can_learn(table) else _MOST_EARLIER
    order = np.argsort(table.prior_losses[:, 0], kind="stable")[:most]
    earlier = table.prior_rows[order]
    if number <= len(earlier):
        return earlier[number - 1 :]
    if number == len(earlier) + 1:
        return np.vstack([table.encoding.centre(), sobol_row(table.encoding, seed, number)])
    return sobol_row(table.encoding, seed, number)[None, :]
