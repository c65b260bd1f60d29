"""A Gaussian process over rows of an encoding: fitted to finished trials, it predicts the others.

`bandit.py` and `earlier.py` call it. Kernel: Matern 5/2 with a weight for each column, where a category
counts as equal or different, and perhaps a second part beside it (`kernel.py`): the sum of what each column
does by itself, or a quadratic of the numbers. The weights, both amplitudes and the noise are those of highest
posterior density, found by L-BFGS with analytic gradients from fixed starts: the same data always give the
same model. Values must be finite and of about unit scale.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from trainshed.suggest.encoding import Bools, Floats, Indexes
from trainshed.suggest.kernel import ROOT_FIVE, Beside, alone, lift, lifted, matern, quadratic, steep_matern
from trainshed.suggest.scipy_functions import backward, cholesky, forward, inverse, minimise, solve
from trainshed.suggest.selection import representative
from trainshed.suggest.warping import Warped

_JITTER = 1e-11
_LEAST_VARIANCE = 1e-14
_HARDLY = -6.0  # the logarithm of the amplitude of a second part that hardly counts
_TAIL = 2.0  # how heavy the tail of a prior is; smaller is heavier
_MOST_STEPS = 30
_FEW_STEPS = 10
_MOST_COMPARED = 45  # rows by which a warp is chosen
_MOST_FITTED = 90  # rows; of more, the kernel is fitted to some


@dataclass(frozen=True, slots=True)
class Priors:
    """Normal in the logarithm: where weights, amplitudes and noise are expected, and how far off."""

    length: float = -0.5
    length_spread: float = 0.6
    may_be_idle: bool = True  # whether a number may have next to no effect
    category: float = 0.0  # the weight of a category, in the logarithm
    amplitude: float = 0.0
    amplitude_spread: float = 2.0
    beside: Beside = Beside.NOTHING
    second: float = -1.0  # the amplitude of what is beside
    second_spread: float = 2.0
    noise: float = math.log(1e-4)
    noise_spread: float = 2.5
    least_noise: float = math.log(1e-7)
    most_noise: float = 0.0


@dataclass(frozen=True, slots=True)
class GaussianProcess:
    """A fitted model. `factor` is the Cholesky factor of the covariance of the rows."""

    rows: Floats
    is_category: Bools
    weights: Floats  # inverse squared length of each column
    amplitude: float
    beside: Beside
    second: float  # the amplitude of what is beside
    noise: float
    factor: Floats
    alpha: Floats

    def predict(self, rows: Floats) -> tuple[Floats, Floats]:
        """Mean and variance of the objective, without noise, at each row."""
        cross, own = self.covariance(rows)
        solved = forward(self.factor, cross.T)
        variance = own - np.einsum("ij,ij->j", solved, solved)
        return cross @ self.alpha, np.maximum(variance, _LEAST_VARIANCE)

    def predict_with_slope(self, row: Floats, columns: Indexes) -> tuple[float, float, Floats, Floats]:
        """Mean and variance at one row, and their slopes along the given columns of numbers."""
        apart = row - self.rows
        squared = np.where(self.is_category, apart != 0.0, apart * apart)
        cross, steep = steep_matern(ROOT_FIVE * np.sqrt(squared @ self.weights))
        cross, steep = self.amplitude * cross, self.amplitude * steep
        slopes = 2.0 * steep[:, None] * (self.weights[columns] * apart[:, columns])
        own, own_slope = self.amplitude, np.zeros(len(columns))
        if self.beside is Beside.QUADRATIC:
            by = lift(self.is_category)
            lifted_rows, lifted_row = lifted(self.rows, by), lifted(row, by)
            products, square = lifted_rows @ lifted_row, float(lifted_row @ lifted_row)
            cross += self.second * quadratic(products)
            slopes += (0.5 * self.second * (1.0 + products))[:, None] * (lifted_rows * by)[:, columns]
            own += self.second * 0.25 * (1.0 + square) ** 2
            own_slope = self.second * (1.0 + square) * (lifted_row * by)[columns]
        elif self.beside is Beside.SUM:
            weights, share = self.weights * alone(self.is_category), self.second / len(row)
            single, steep = steep_matern(ROOT_FIVE * np.sqrt(weights * squared))
            cross += share * single.sum(axis=1)
            slopes += (2.0 * share) * (weights * apart * steep)[:, columns]
            own += self.second
        solved = forward(self.factor, cross)
        back = backward(self.factor, solved)
        variance = own - float(solved @ solved)
        mean_slope, variance_slope = self.alpha @ slopes, own_slope - 2.0 * (back @ slopes)
        return float(cross @ self.alpha), max(variance, _LEAST_VARIANCE), mean_slope, variance_slope

    def extended(self, rows: Floats, values: Floats) -> "GaussianProcess":
        """The same model with more data, as if these values had been measured; nothing is fitted again."""
        measured = self.factor @ (self.factor.T @ self.alpha)
        return conditioned(self, np.vstack([self.rows, rows]), np.concatenate([measured, values]))

    def covariance(self, rows: Floats) -> tuple[Floats, Floats]:
        """That of each row with the model's own rows, and with itself."""
        cross = self.amplitude * matern(ROOT_FIVE * np.sqrt(self.distances(rows)))
        own = np.full(len(rows), self.amplitude)
        if self.beside is Beside.QUADRATIC:
            by = lift(self.is_category)
            lifted_rows = lifted(rows, by)
            cross += self.second * quadratic(lifted_rows @ lifted(self.rows, by).T)
            own += self.second * quadratic(np.einsum("ij,ij->i", lifted_rows, lifted_rows))
        elif self.beside is Beside.SUM:
            scale = ROOT_FIVE * np.sqrt(self.weights * alone(self.is_category))
            for column, is_category in enumerate(self.is_category):
                apart = np.abs(rows[:, column, None] - self.rows[None, :, column])
                root = scale[column] * (apart != 0.0 if is_category else apart)
                cross += (self.second / rows.shape[1]) * matern(root)
            own += self.second
        return cross, own

    def gap(self, left: Floats, right: Floats) -> float:
        """The squared distance of two rows, as the kernel sees it."""
        difference = left - right
        squared = np.where(self.is_category, difference != 0.0, difference * difference)
        return float(self.weights @ squared)

    def distances(self, rows: Floats) -> Floats:
        numbers = ~self.is_category
        scale = np.sqrt(self.weights[numbers])
        left, right = rows[:, numbers] * scale, self.rows[:, numbers] * scale
        squared = (left * left).sum(1)[:, None] + (right * right).sum(1)[None, :] - 2.0 * left @ right.T
        np.maximum(squared, 0.0, out=squared)
        for column in np.flatnonzero(self.is_category):
            squared += self.weights[column] * (rows[:, column, None] != self.rows[None, :, column])
        return squared


def conditioned(model: GaussianProcess, rows: Floats, values: Floats) -> GaussianProcess:
    """The model with other data and the same kernel."""
    bare = replace(model, rows=rows)
    factor = _factor(bare.covariance(rows)[0], model.noise)
    return replace(bare, factor=factor, alpha=solve(factor, values))


def fit(
    rows: Floats, options: Sequence[Warped], is_category: Bools, priors: Priors
) -> tuple[GaussianProcess, Warped]:
    """The likeliest model, and what it models: `options` are the same losses, warped in different ways.

    Of many rows, the kernel is fitted to the best and an even choice of the others.
    """
    theta, warped = None, options[0]
    if len(options) > 1:
        some = representative(options[0].values, _MOST_COMPARED)
        compared = _Posterior(rows[some], is_category, priors)
        share = len(some) / len(rows)
        starts = compared.likeliest_starts([option.values[some] for option in options])
        results = [
            compared.improved(option.values[some], start, _FEW_STEPS, -share * option.log_slope)
            for option, start in zip(options, starts, strict=True)
        ]
        best = min(range(len(options)), key=lambda index: results[index][1])
        theta, warped = results[best][0], options[best]
    some = representative(warped.values, _MOST_FITTED)
    theta, _ = _Posterior(rows[some], is_category, priors).improved(
        warped.values[some], theta, _MOST_STEPS, 0.0
    )
    width = rows.shape[1]
    weights, (amplitude, second, noise) = np.exp(theta[:width]), np.exp(theta[width:]).tolist()
    beside, values = priors.beside, warped.values
    draft = GaussianProcess(rows, is_category, weights, amplitude, beside, second, noise, rows, values)
    return conditioned(draft, rows, warped.values), warped


@dataclass(frozen=True, slots=True)
class _Kernel:
    """The covariance of all rows, and of each pair both parts and what their slopes are made of."""

    covariance: Floats
    correlation: Floats
    steepness: Floats
    second: Floats
    single: Floats  # the steepness of each column of the sum


class _Posterior:
    """Minus the log posterior density of (log weights, log amplitudes, log noise), and its slope."""

    def __init__(self, rows: Floats, is_category: Bools, priors: Priors) -> None:
        self.values: Floats = np.zeros(len(rows))
        self.priors = priors
        self.count, self.width = rows.shape
        first, second = np.tril_indices(self.count, -1)
        self.pairs = first, second
        self.flat = second * self.count + first  # in the order of Fortran, as LAPACK leaves matrices
        difference = rows[first] - rows[second]
        squared = np.where(is_category, difference != 0, difference * difference)
        self.squared = np.ascontiguousarray(squared.T, dtype=float)
        self.apart = np.sqrt(self.squared)
        places = lifted(rows, lift(is_category))
        products = places @ places.T
        self.bowl, self.own_second = np.zeros(len(first)), np.zeros(self.count)
        if priors.beside is Beside.SUM:
            self.own_second += 1.0
        elif priors.beside is Beside.QUADRATIC:
            self.bowl += quadratic(products[first, second])
            self.own_second += quadratic(np.diag(products))
        self.alone = alone(is_category)
        # A weight is the inverse square of a length; lengths are expected to grow with the root of the width.
        # Categories are few and usually matter: theirs does not shrink with the width.
        middle = -2.0 * (priors.length + 0.5 * math.log(self.width))
        weights = np.where(is_category, priors.category, middle)
        amplitude = _HARDLY if priors.beside is Beside.NOTHING else priors.second
        self.expected = np.array([*weights, priors.amplitude, amplitude, priors.noise])
        spreads = priors.amplitude_spread, priors.second_spread, priors.noise_spread
        self.spread = np.array([*[2.0 * priors.length_spread] * self.width, *spreads])
        self.heavy = np.array([*[priors.may_be_idle] * self.width, False, False, False])

    def improved(
        self, values: Floats, start: Floats | None, most_steps: int, extra: float
    ) -> tuple[Floats, float]:
        """The parameters found within so many steps from the start, and their loss plus `extra`."""
        self.values = values
        if start is None:
            [start] = self.likeliest_starts([values])
        theta, loss = minimise(self, start, self.bounds(), most_steps, 1e8)
        return theta, loss + extra

    def likeliest_starts(self, options: Sequence[Floats]) -> list[Floats]:
        """For each option of the values the start of least loss. A start is factored once for all of them."""
        columns = np.array(options).T
        starts = self.starts()
        losses = np.array([self._losses(start, columns) for start in starts])
        return [starts[int(np.argmin(column))] for column in losses.T]

    def _losses(self, theta: Floats, columns: Floats) -> Floats:
        factor = cholesky(self._kernel(theta).covariance)
        if factor is None:
            return 1e10 * np.ones(columns.shape[1])
        fits: Floats = 0.5 * (columns * solve(factor, columns)).sum(axis=0)
        return fits + float(np.log(np.diag(factor)).sum()) + self._prior(theta)[0]

    def starts(self) -> list[Floats]:
        """Lengths of three sizes, sums or a bowl, quiet and noisy: the likeliest is improved."""
        result: list[Floats] = []
        lengths = {Beside.NOTHING: (), Beside.SUM: (-1.5, 0.0, 1.5), Beside.QUADRATIC: (0.0,)}
        for noise in (math.log(1e-5), math.log(1e-2)):
            for shorter, higher in ((-1.5, 3.0), (0.0, 0.0), (2.5, 0.0)):
                result.append(self._start(shorter, higher, _HARDLY, noise))
            for shorter in lengths[self.priors.beside]:  # what the second part leaves is small
                result.append(self._start(shorter, -3.0, 1.0, noise))
        return result

    def _start(self, shorter: float, higher: float, second: float, noise: float) -> Floats:
        start = self.expected.copy()
        start[: self.width] += shorter
        start[-3] += higher
        start[-2:] = second, noise
        return start

    def bounds(self) -> list[tuple[float, float]]:
        noise = self.priors.least_noise, self.priors.most_noise
        return [*[(-9.0, 9.0)] * self.width, (-12.0, 6.0), (-12.0, 6.0), noise]

    def _kernel(self, theta: Floats) -> "_Kernel":
        width, count = self.width, self.count
        weights, (amplitude, second, noise) = np.exp(theta[:width]), np.exp(theta[width:]).tolist()
        correlation, steepness = steep_matern(ROOT_FIVE * np.sqrt(weights @ self.squared))
        beside, single = self.bowl, np.empty(0)
        if self.priors.beside is Beside.SUM:
            scale = ROOT_FIVE * np.sqrt(weights * self.alone)
            each, single = steep_matern(scale[:, None] * self.apart)
            beside = each.mean(axis=0)
        entries = np.zeros(count * count)
        entries[self.flat] = amplitude * correlation + second * beside
        entries[:: count + 1] = amplitude + second * self.own_second + noise + _JITTER
        covariance = entries.reshape((count, count), order="F")
        return _Kernel(covariance, correlation, steepness, beside, single)

    def __call__(self, theta: Floats) -> tuple[float, Floats]:
        width = self.width
        weights, (amplitude, second, noise) = np.exp(theta[:width]), np.exp(theta[width:]).tolist()
        kernel = self._kernel(theta)
        factor = cholesky(kernel.covariance)
        if factor is None:
            return 1e10, np.zeros_like(theta)
        alpha = solve(factor, self.values)
        inverted = inverse(factor)
        prior, prior_slope = self._prior(theta)
        loss = 0.5 * float(self.values @ alpha) + float(np.log(np.diag(factor)).sum()) + prior
        # Each pair stands for two entries of the symmetric matrices.
        left, right = self.pairs
        pull = inverted.ravel(order="F")[self.flat] - alpha[left] * alpha[right]
        diagonal = np.diag(inverted) - alpha * alpha
        slope = np.empty_like(theta)
        slope[:width] = amplitude * weights * (self.squared @ (pull * kernel.steepness))
        if self.priors.beside is Beside.SUM:
            slope[:width] += second / width * weights * self.alone * ((self.squared * kernel.single) @ pull)
        slope[width] = amplitude * (float(pull @ kernel.correlation) + 0.5 * float(diagonal.sum()))
        slope[width + 1] = second * (float(pull @ kernel.second) + 0.5 * float(diagonal @ self.own_second))
        slope[width + 2] = 0.5 * noise * float(diagonal.sum())
        return loss, slope + prior_slope

    def _prior(self, theta: Floats) -> tuple[float, Floats]:
        """Normal, but for weights below the expected where a parameter may well have no effect at all."""
        z = (theta - self.expected) / self.spread
        below = self.heavy & (z < 0.0)
        inner = 1.0 + z * z / _TAIL
        loss = np.where(below, 0.5 * _TAIL * np.log(inner), 0.5 * z * z)
        return float(loss.sum()), np.where(below, z / inner, z) / self.spread


def _factor(covariance: Floats, noise: float) -> Floats:
    """The Cholesky factor, with as little added to the diagonal as it needs."""
    jitter = _JITTER
    while True:
        matrix = covariance + (noise + jitter) * np.eye(len(covariance))
        factor = cholesky(matrix)
        if factor is not None:
            return factor
        jitter *= 10.0
