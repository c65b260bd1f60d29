"""What a study may learn from earlier ones: their trials as results, each study on a scale of its own. Pure.

`suggestion_request.py` calls it. Values are told as distances from the median of their study, in units of the
typical distance: an objective that is shifted or measured in other units does no harm. Only trials whose
point lies in the new space count, so parameters match by name and kind.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace

from trainshed.core.tuning.search_space import SearchSpace
from trainshed.core.tuning.suggestion_port import Objective, TrialResult

MOST = 200  # of all earlier studies together: half of them the best, half the newest
FARTHEST = 10.0  # units: how bad a very bad trial was says nothing


def learned(
    studies: Sequence[Sequence[TrialResult]], space: SearchSpace, objectives: Sequence[Objective]
) -> tuple[TrialResult, ...]:
    """The results that count, in the order of the studies and their trials."""
    fitting = [
        standardised([result for result in results if space.contains(result.point)]) for results in studies
    ]
    results = [result for some in fitting for result in some]
    if len(results) <= MOST:
        return tuple(results)
    sign = -1.0 if objectives[0].maximize else 1.0
    by_value = sorted(range(len(results)), key=lambda at: sign * (results[at].values or (0.0,))[0])
    best = set(by_value[: MOST // 2])
    newest = [at for at in reversed(range(len(results))) if at not in best][: MOST - len(best)]
    return tuple(results[at] for at in sorted({*best, *newest}))


def standardised(results: Sequence[TrialResult]) -> list[TrialResult]:
    """Those that have finite values, with values around zero, of about unit spread."""
    kept = [r for r in results if r.values is not None and all(map(math.isfinite, r.values))]
    columns = [_column(values) for values in zip(*(r.values for r in kept if r.values), strict=True)]
    return [replace(r, values=tuple(column[at] for column in columns)) for at, r in enumerate(kept)]


def _column(values: Sequence[float]) -> list[float]:
    largest = max(map(abs, values)) or 1.0  # divided by it, no difference of two values is infinite
    scaled = [value / largest for value in values]
    middle = statistics.median(scaled)
    gaps = [abs(value - middle) for value in scaled]
    unit = statistics.median(gaps) or statistics.fmean(gaps)
    if not unit > 0.0 or not math.isfinite(1.0 / unit):
        return [0.0] * len(values)
    return [max(-FARTHEST, min(FARTHEST, (value - middle) / unit)) for value in scaled]
