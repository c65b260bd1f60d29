"""The functions of scipy that this package uses, with types: scipy has none.

Matrices go to LAPACK and BLAS as they are, without the checks and copies of scipy's own wrappers: these take
longer than the work on matrices of this size.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
# By name: what is imported this way may have any type.
_lapack: Any = import_module("scipy.linalg.lapack")
_blas: Any = import_module("scipy.linalg.blas")
_optimize: Any = import_module("scipy.optimize")
_special: Any = import_module("scipy.special")


def cholesky(matrix: Floats) -> Floats | None:
    """The lower factor; None where the matrix is not positive definite."""
    factor, failed = _lapack.dpotrf(matrix, lower=1, clean=1)
    return None if failed else factor


def solve(factor: Floats, right: Floats) -> Floats:
    """The solution for a matrix, by its factor."""
    return _lapack.dpotrs(factor, right, lower=1)[0]


def inverse(factor: Floats) -> Floats:
    """The lower triangle of the inverse of a matrix, by its factor; in the order of Fortran."""
    return _lapack.dpotri(factor, lower=1)[0]


def forward(factor: Floats, right: Floats) -> Floats:
    """factor x = right, for one column or many."""
    if right.ndim == 1:
        return _blas.dtrsv(factor, right, lower=1)
    return _blas.dtrsm(1.0, factor, right, lower=1)


def backward(factor: Floats, right: Floats) -> Floats:
    """The same with the factor transposed, for one column."""
    return _blas.dtrsv(factor, right, lower=1, trans=1)


def minimise(
    loss: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    bounds: Sequence[tuple[float, float]],
    most_steps: int,
    tolerance: float = 1e7,
) -> tuple[Floats, float]:
    """The best place within bounds that L-BFGS reaches, and the loss there. `loss` returns its slope too."""
    place, value, _ = _optimize.fmin_l_bfgs_b(
        loss, start, bounds=bounds, maxfun=most_steps, maxiter=most_steps, factr=tolerance
    )
    return place, float(value)


def normal_below(z: Floats) -> Floats:
    """The share of a normal variable below z."""
    return _special.ndtr(z)


def normal_at(share: Floats) -> Floats:
    """The inverse of normal_below."""
    return _special.ndtri(share)


def scaled_tail(z: Floats) -> Floats:
    """exp(z²) erfc(z): finite where the two are not."""
    return _special.erfcx(z)


def log_sum(exponents: Floats) -> Floats:
    """log(sum(exp(x))) of each row."""
    return _special.logsumexp(exponents, axis=1)


def sobol_places(width: int, rng: np.random.Generator, index: int) -> Floats:
    """The point of a scrambled Sobol sequence at an index, as one row."""
    qmc: Any = import_module("scipy.stats.qmc")  # slow to import, and not always needed
    sequence = qmc.Sobol(width, scramble=True, rng=rng)
    if index:
        sequence.fast_forward(index)
    return sequence.random(1)
