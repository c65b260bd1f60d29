"""The default algorithm: a Gaussian process says where the expected improvement is highest.

`choose.py` calls it. The first trials spread over the space, beginning with the best of earlier studies or
with the defaults; while earlier studies explain what is measured, the model chooses from the second trial on.
Then trials look anywhere, and in turn with it near the best; later that look has a model of its own, which
sees finer differences. Pending trials count as if they had come out as predicted. Failed ones count as bad,
but finite. Beyond some hundred trials the model sees the best and an even choice of the others; beyond
_MOST_TRIALS the Parzen estimator takes over.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from trainshed.suggest.acquisition import Search, best_rows
from trainshed.suggest.earlier import can_learn, with_earlier
from trainshed.suggest.encoding import Encoding, Floats, Indexes
from trainshed.suggest.gaussian_process import Priors, fit
from trainshed.suggest.selection import nearest, representative
from trainshed.suggest.sobol import sobol_row
from trainshed.suggest.tpe import tpe_rows
from trainshed.suggest.trial_table import TrialTable
from trainshed.suggest.warping import BENDS, median_gap, warp

_MANY = 120  # rows from which on fewer candidates are improved
_MOST_MODELLED = 250
_MOST_TRIALS = 1000
_NEAR = 0.2
_LEAST_NOISE_NEAR = math.log(1e-10)
_EARLY = 20  # trials before any looks only at the neighbours of the best: it might be in the wrong valley
_SMALL = 1e-4  # of the median gap to the best: an improvement that is worth only every fourth trial
_WORTHWHILE = 0.01  # of the spread of warped losses: what a place far from the best must promise
_MOST_EARLIER = 3  # of the best points of earlier studies that are tried first
_FEW_KNOWN = Priors(amplitude_spread=1.0)  # a few trials say little about the size of what is not seen yet


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
        # Far corners of a space are uncertain for long, and seldom good: every second trial stays away.
        radius = _NEAR if number % 2 == 1 else 1.0
        return _look_far(table, losses, rng, _FEW_KNOWN, radius, 0.0).rows
    if number % 2 == 1:
        near = _look_near(table, losses, rng)
        # Where little is to be had, every second of these trials is of more use elsewhere.
        if number % 4 == 1 or near.promise > _SMALL * median_gap(losses):
            return near.rows
    return _look_far(table, losses, rng, Priors(), 1.0, _WORTHWHILE).rows


@dataclass(frozen=True, slots=True)
class _Found:
    """Candidates, the best first, and by how much the first may improve the loss."""

    rows: Floats
    promise: float


def _look_far(
    table: TrialTable,
    losses: Floats,
    rng: np.random.Generator,
    priors: Priors,
    radius: float,
    worthwhile: float,
) -> _Found:
    """By a model of all trials, within a radius of the best, where an improvement would be worthwhile."""
    some = representative(warp(losses).values, _MOST_MODELLED)
    search = Search(radius=radius, starts=4 if len(some) <= _MANY else 2)
    return _look(table, losses, some, priors, rng, search, worthwhile)


def _look_near(table: TrialTable, losses: Floats, rng: np.random.Generator) -> _Found:
    """Around the best trial, by a model of its neighbours alone: what differs little still differs there."""
    width = table.encoding.width
    terms = (width + 1) * (width + 2) // 2  # of a quadratic
    best = int(np.nanargmin(losses))
    some, reach = nearest(table.rows, best, table.encoding.is_category, min(max(3 * terms, 30), 80))
    priors = Priors(least_noise=_LEAST_NOISE_NEAR, has_quadratic=True)
    # No further than the neighbours: what is tried beyond them would not be one, and be tried again.
    return _look(table, losses, some, priors, rng, Search(radius=min(_NEAR, reach)), 0.0)


def _look(
    table: TrialTable,
    all_losses: Floats,
    some: Indexes,
    priors: Priors,
    rng: np.random.Generator,
    search: Search,
    worthwhile: float,
) -> _Found:
    encoding, rows, losses = table.encoding, table.rows[some], all_losses[some]
    model, warped = fit(rows, [warp(losses, bend) for bend in BENDS], encoding.is_category, priors)
    elite = rows[np.argsort(warped.values, kind="stable")[:5]]
    # The lowest prediction, not the lowest measurement: that one may be luck.
    best = float(model.predict(rows)[0].min()) - worthwhile
    if len(table.pending):
        believed, _ = model.predict(table.pending)
        model = model.extended(table.pending, believed)
    candidates, score = best_rows(model, encoding, best, elite, rng, search)
    promise = math.exp(min(score, 0.0)) * median_gap(losses) / warped.steepness if warped.steepness else 0.0
    return _Found(candidates, promise)


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
