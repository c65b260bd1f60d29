"""Where to try next: the point of highest expected improvement over the best, by the model.

`bandit.py` calls it. Numbers move along analytic slopes, categories and lists are tried value by value, in
turns, from the best of many candidates. Improvement is compared by its logarithm, which has a slope also
where it is tiny.
"""

import math
from dataclasses import dataclass

import numpy as np

from trainshed.suggest.encoding import NEUTRAL, Encoding, Floats, Indexes
from trainshed.suggest.gaussian_process import GaussianProcess
from trainshed.suggest.scipy_functions import minimise, normal_below, scaled_tail
from trainshed.suggest.selection import distances

_HALF_PI_ROOT = math.sqrt(math.pi / 2.0)
_LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)
_INSET = 0.05  # how far from a border numbers stay
_NEXT_TO = 0.1  # unless the best trial is as near to it as this
_FEW = 24  # values of a list that are all tried; of longer ones the neighbours


def log_improvement(mean: Floats, variance: Floats, best: float) -> Floats:
    """The logarithm of the expected improvement below `best`."""
    deviation = np.sqrt(variance)
    z = (best - mean) / deviation
    return _log_h(z) + np.log(deviation)


def _log_h(z: Floats) -> Floats:
    """log(phi(z) + z Phi(z)), exact also far below zero."""
    far = np.minimum(z, -1.0)
    tail = far * _HALF_PI_ROOT * scaled_tail(-far / math.sqrt(2.0))
    inner = np.where(far < -1e4, -2.0 * np.log(-far), np.log1p(np.maximum(tail, -1.0 + 1e-16)))
    low = -0.5 * far * far - _LOG_ROOT_2PI + inner
    near = np.maximum(z, -1.0)
    density = np.exp(-0.5 * near * near - _LOG_ROOT_2PI)
    high = np.log(density + near * normal_below(near))
    return np.where(z < -1.0, low, high)


def _log_h_of(z: float) -> float:
    """The same of one number, which needs no array unless it is far below zero."""
    if z < -20.0:
        return float(_log_h(np.array(z)))
    return math.log(math.exp(-0.5 * z * z - _LOG_ROOT_2PI) + 0.5 * z * math.erfc(-z / math.sqrt(2.0)))


def _slope_h(z: float) -> float:
    """The slope of _log_h."""
    if z < -1e4:
        return -z
    if z < -20.0:
        scaled = _HALF_PI_ROOT * float(scaled_tail(np.array(-z / math.sqrt(2.0))))
        return scaled / (1.0 + z * scaled)
    share = 0.5 * math.erfc(-z / math.sqrt(2.0))
    return share / (math.exp(-0.5 * z * z - _LOG_ROOT_2PI) + z * share)


@dataclass(frozen=True, slots=True)
class Search:
    """How hard to look."""

    spread: int = 600  # candidates anywhere
    near: int = 300  # candidates near the best trials
    starts: int = 4  # candidates that are improved
    steps: int = 40  # evaluations to improve one
    radius: float = 1.0  # how far numbers may be from those of the best trial
    reach: float = math.inf  # how far all of a row may be from it, as `selection.distances` counts


def best_rows(
    model: GaussianProcess,
    encoding: Encoding,
    best: float,
    elite: Floats,
    rng: np.random.Generator,
    search: Search,
) -> Floats:
    """Rows of high expected improvement, the highest first.

    `elite` are the best rows tried, best first.
    """
    box = _Box(elite[0], search, encoding)
    anywhere = box.limit(encoding, encoding.random(rng, search.spread), rng)
    candidates = np.vstack([anywhere, box.clip(encoding, neighbours(encoding, elite, rng, search.near))])
    candidates = box.within(candidates)
    scores = log_improvement(*model.predict(candidates), best)
    order = np.argsort(-scores, kind="stable")
    starts = _apart(candidates[order], search.starts, model)
    improved = [_improve(model, encoding, best, row, search.steps, box) for row in starts]
    rows = np.vstack([*[row for row, _ in improved], candidates[order[:20]]])
    final = np.concatenate([[score for _, score in improved], scores[order[:20]]])
    return rows[np.argsort(-final, kind="stable")]


class _Box:
    """Where numbers may be: near those of a row, and at a border only where that row is next to it.

    Before anything is known of its neighbourhood, a border looks better than it is, and what lies just inside
    of it is never tried.
    """

    def __init__(self, centre: Floats, search: Search, encoding: Encoding) -> None:
        numbers = encoding.is_continuous
        radius = np.where(numbers, search.radius, search.reach)
        self.low, self.high = np.maximum(centre - radius, 0.0), np.minimum(centre + radius, 1.0)
        self.low[numbers & (centre > _NEXT_TO) & (self.low < _INSET)] = _INSET
        self.high[numbers & (centre < 1.0 - _NEXT_TO) & (self.high > 1.0 - _INSET)] = 1.0 - _INSET
        self.centre, self.reach = centre, search.reach
        self.is_category = encoding.is_category
        self.is_whole = search.radius >= 1.0

    def within(self, rows: Floats) -> Floats:
        """Those in reach; all, where none is."""
        inside = distances(rows, self.centre, self.is_category) <= self.reach
        return rows[inside] if inside.any() else rows

    def limit(self, encoding: Encoding, rows: Floats, rng: np.random.Generator) -> Floats:
        """Rows of the whole cube shrunk into the box; of their categories one in four is kept."""
        shrunk = self.low + rows * (self.high - self.low)
        if self.is_whole:
            return np.where(encoding.is_continuous & (rows != NEUTRAL), shrunk, rows)
        kept = (rng.random(rows.shape) < 0.25) | (self.centre < 0)
        return encoding.snap(np.where(encoding.is_category, np.where(kept, rows, self.centre), shrunk))

    def clip(self, encoding: Encoding, rows: Floats) -> Floats:
        return encoding.snap(np.where(encoding.is_category, rows, np.clip(rows, self.low, self.high)))

    def bounds(self, columns: Indexes) -> list[tuple[float, float]]:
        return list(zip(self.low[columns], self.high[columns], strict=True))


def neighbours(encoding: Encoding, elite: Floats, rng: np.random.Generator, count: int) -> Floats:
    """Rows near those of the best: some columns moved a little, some chosen anew."""
    if not len(elite):
        return encoding.random(rng, count)
    width = encoding.width
    base = elite[np.minimum(rng.geometric(0.35, count) - 1, len(elite) - 1)]
    anew = encoding.random(rng, count)
    share = rng.choice([1.0, 2.0, width / 2, float(width)], count)[:, None] / width
    moved = rng.random((count, width)) < share
    moved[np.arange(count), rng.integers(width, size=count)] = True
    size = 10.0 ** rng.uniform(-2.5, -0.5, (count, 1))
    numbers = base + size * rng.standard_normal((count, width))
    numbers = 1.0 - np.abs(1.0 - np.abs(numbers))  # what leaves the cube is reflected
    stepped = np.where(encoding.is_category, anew, numbers)
    stepped = np.where(base < 0, anew, stepped)
    return encoding.snap(np.where(moved, stepped, base))


def _apart(rows: Floats, count: int, model: GaussianProcess) -> list[Floats]:
    """The first rows that are not next to each other."""
    chosen: list[Floats] = []
    for row in rows[:200]:
        if all(model.gap(row, other) > 0.01 for other in chosen):
            chosen.append(row)
        if len(chosen) == count:
            break
    return chosen


def _improve(
    model: GaussianProcess, encoding: Encoding, best: float, row: Floats, steps: int, box: _Box
) -> tuple[Floats, float]:
    """Climb from a row: along numbers, then value by value, until neither helps."""
    score = float(log_improvement(*model.predict(row[None, :]), best)[0])
    for _ in range(3):
        before = score
        row, score = _climb(model, encoding, best, row, score, steps, box)
        row, score = _exchange(model, encoding, best, row, score, box)
        if score <= before + 1e-3 or encoding.is_continuous.all():
            break
    return row, score


def _climb(
    model: GaussianProcess, encoding: Encoding, best: float, row: Floats, score: float, steps: int, box: _Box
) -> tuple[Floats, float]:
    active = encoding.active(row[None, :])[0]
    columns = np.flatnonzero(encoding.is_continuous & active)
    if not len(columns):
        return row, score
    trial = row.copy()

    def loss(places: Floats) -> tuple[float, Floats]:
        trial[columns] = places
        mean, variance, mean_slope, variance_slope = model.predict_with_slope(trial, columns)
        deviation = math.sqrt(variance)
        z = (best - mean) / deviation
        log_slope = variance_slope / (2.0 * variance)
        slope = _slope_h(z) * (-mean_slope / deviation - z * log_slope) + log_slope
        return -(_log_h_of(z) + math.log(deviation)), -slope

    places, _ = minimise(loss, row[columns], box.bounds(columns), steps)
    moved = row.copy()
    moved[columns] = places
    moved = encoding.snap(moved[None, :])
    value = float(log_improvement(*model.predict(moved), best)[0])
    return (moved[0], value) if value > score else (row, score)


def _exchange(
    model: GaussianProcess, encoding: Encoding, best: float, row: Floats, score: float, box: _Box
) -> tuple[Floats, float]:
    """Try other values of each category and list; take the best single change."""
    active = encoding.active(row[None, :])[0]
    options: list[Floats] = []
    for column in np.flatnonzero(~encoding.is_continuous & active):
        levels = encoding.levels[column]
        if levels is None:
            continue
        if len(levels) > _FEW and not encoding.is_category[column]:
            at = int(np.argmin(np.abs(levels - row[column])))
            steps = np.unique(
                np.clip(at + np.array([-16, -8, -4, -2, -1, 1, 2, 4, 8, 16]), 0, len(levels) - 1)
            )
            levels = levels[steps]
        block = np.repeat(row[None, :], len(levels), axis=0)
        block[:, column] = levels
        options.append(block)
    rows = box.within(encoding.snap(np.vstack([row, *options])))
    scores = log_improvement(*model.predict(rows), best)
    top = int(np.argmax(scores))
    return (rows[top], float(scores[top])) if scores[top] > score else (row, score)
