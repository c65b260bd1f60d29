"""The default algorithm: a Gaussian process says where the expected improvement is highest.

`choose.py` calls it. The first trials spread over the space, beginning with the best of earlier studies or
with the defaults; while earlier studies explain what is measured, the model chooses from the second trial on.
Trials look anywhere; later every second one looks near the best, by a model of its neighbours alone, which
sees finer differences, and every fourth one takes any improvement anywhere, by a model in which all
parameters matter. The others look by a model in which what single parameters do may add up. Pending trials
count as if they had come out as predicted, also for what the next one has to improve on. Failed ones count as
bad, but finite. Beyond some hundred trials the model sees the best and an even choice of the others; beyond
_MOST_TRIALS the Parzen estimator takes over.
"""

import math
from dataclasses import replace

import numpy as np

from trainshed.suggest.acquisition import Search, best_rows
from trainshed.suggest.earlier import can_learn, with_earlier
from trainshed.suggest.encoding import Encoding, Floats, Indexes
from trainshed.suggest.gaussian_process import GaussianProcess, Priors, fit
from trainshed.suggest.kernel import Beside
from trainshed.suggest.selection import neighbourhood, representative
from trainshed.suggest.settling import NEAR, is_settled, off_border, trusted_radius
from trainshed.suggest.sobol import sobol_row
from trainshed.suggest.tpe import tpe_rows
from trainshed.suggest.trial_table import TrialTable
from trainshed.suggest.warping import BENDS, warp

_MANY = 120  # trials from which on fewer candidates are improved
_MOST_MODELLED = 250
_MOST_TRIALS = 1000
_LEAST_NOISE_NEAR = math.log(1e-10)
_EARLY = 20  # trials before any looks only at the neighbours of the best: it might be in the wrong valley
_WORTHWHILE = 0.01  # of the spread of warped losses: what a place far from the best must promise
_SAME_CATEGORIES = 0.999  # as far as rows without another category are apart; see `selection.distances`
_MOST_EARLIER = 3  # of the best points of earlier studies that are tried first
_FEW_KNOWN = Priors(amplitude_spread=1.0)  # a few trials say little about the size of what is not seen yet
_ALL_MATTER = Priors(length_spread=0.8, may_be_idle=False)  # else what seems idle is never tried again
_ADDING_UP = Priors(beside=Beside.SUM)  # else each of many valleys would have to be found by itself


def bandit_rows(
    table: TrialTable, losses: Floats, seed: int, number: int, rng: np.random.Generator
) -> Floats:
    """Candidates for the next trial, the best first."""
    if len(losses) > _MOST_TRIALS:
        return tpe_rows(table, losses, rng)
    known, losses = with_earlier(table, losses)
    is_warm = number > 1 and len(known) > len(table.rows)
    if not is_warm and (number <= starting_trials(table.encoding) or np.isfinite(losses).sum() < 2):
        return _spread(table, seed, number)
    table = replace(table, rows=known)
    if number <= _EARLY:
        return _look_far(table, losses, rng, _FEW_KNOWN, 0.0)
    if number % 2 == 1:
        return _look_closely(table, losses, number, rng)
    if number % 4 == 2:
        return _look_far(table, losses, rng, _ALL_MATTER, 0.0)
    return _look_far(table, losses, rng, _ADDING_UP, _WORTHWHILE)


def _look_closely(table: TrialTable, losses: Floats, number: int, rng: np.random.Generator) -> Floats:
    """Near the best trial, as far as the model is trusted there. Every second time further, and other
    categories may be tried; or, where all that no longer gains anything, what lies next to a border, then any
    place.
    """
    best = int(np.nanargmin(losses))
    if number % 4 == 1:
        radius = trusted_radius(table.rows, losses, best, table.encoding)
        return _look_near(table, losses, best, rng, radius, _SAME_CATEGORIES)
    if not is_settled(table.rows, losses, best, table.encoding):
        return _look_near(table, losses, best, rng, NEAR)
    inside = off_border(table.rows, best, table.encoding)
    return inside if inside is not None else _look_far(table, losses, rng, _ADDING_UP, _WORTHWHILE)


def _look_far(
    table: TrialTable, losses: Floats, rng: np.random.Generator, priors: Priors, worthwhile: float
) -> Floats:
    """Anywhere, by a model of all trials, where an improvement would be worthwhile."""
    some = representative(warp(losses).values, _MOST_MODELLED)
    model, warped = _model(table, losses, some, priors)
    elite = table.rows[some][np.argsort(warped, kind="stable")[:5]]
    model = _with_pending(model, table.pending)
    best = _lowest(model) - worthwhile
    search = Search(starts=_starts(table))
    return best_rows(model, table.encoding, best, elite, rng, search)


def _look_near(
    table: TrialTable,
    losses: Floats,
    centre: int,
    rng: np.random.Generator,
    radius: float,
    most: float = math.inf,
) -> Floats:
    """Around a trial, by a model of its neighbours alone: what differs little still differs there.

    Numbers may differ by the radius, the whole row by `most`.
    """
    encoding = table.encoding
    some, reach = neighbourhood(table.rows, centre, encoding.is_category)
    priors = Priors(least_noise=_LEAST_NOISE_NEAR, beside=Beside.QUADRATIC)
    model, warped = _model(table, losses, some, priors)
    elite = table.rows[some][np.argsort(warped, kind="stable")[:5]]
    model = _with_pending(model, table.pending)
    # No further than the neighbours: what is tried beyond them would not be one, and be tried again.
    search = Search(radius=min(radius, reach), reach=min(reach, most), starts=_starts(table))
    return best_rows(model, encoding, _lowest(model), elite, rng, search)


def _starts(table: TrialTable) -> int:
    return 4 if len(table.rows) <= _MANY else 2


def _model(
    table: TrialTable, losses: Floats, some: Indexes, priors: Priors
) -> tuple[GaussianProcess, Floats]:
    """Of some of the trials, and their losses as it sees them."""
    options = [warp(losses[some], bend) for bend in BENDS]
    model, warped = fit(table.rows[some], options, table.encoding.is_category, priors)
    return model, warped.values


def _lowest(model: GaussianProcess) -> float:
    """The lowest prediction, not the lowest measurement: that one may be luck.

    Where trials are under way theirs count too: else the next one gains what they will have gained already,
    and is put beside them.
    """
    return float(model.predict(model.rows)[0].min())


def _with_pending(model: GaussianProcess, pending: Floats) -> GaussianProcess:
    return model.extended(pending, model.predict(pending)[0]) if len(pending) else model


def starting_trials(encoding: Encoding) -> int:
    """How many trials spread over the space before the model chooses."""
    return max(4, min(encoding.width + 1, 8))


def _spread(table: TrialTable, seed: int, number: int) -> Floats:
    most = 1 if can_learn(table) else _MOST_EARLIER
    order = np.argsort(table.prior_losses[:, 0], kind="stable")[:most]
    earlier = table.prior_rows[order]
    if number <= len(earlier):
        return earlier[number - 1 :]
    row = sobol_row(table.encoding, seed, number)[None, :]
    return np.vstack([table.encoding.centre(), row]) if number == len(earlier) + 1 else row
