"""Points that fill a space more evenly than chance: a scrambled Sobol sequence.

`choose.py` calls it for the algorithm of that name and for the first trials of others.
"""

import numpy as np

from trainshed.suggest.encoding import Encoding, Floats
from trainshed.suggest.scipy_functions import sobol_places

_PLACES = 2**30  # the sequence repeats beyond


def sobol_row(encoding: Encoding, seed: int, index: int) -> Floats:
    """The row at a position of the sequence of a seed, counted from 0."""
    rng = np.random.default_rng([seed, 1])
    return encoding.spread(sobol_places(encoding.width, rng, index % _PLACES))[0]
