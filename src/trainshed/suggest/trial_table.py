"""The trials of a request as rows and losses, ready for any algorithm of this package.

`choose.py` makes one for each request. A smaller loss is better. A trial that failed, or has a value that is
not finite, has the loss nan: algorithms count it as bad, never as absent. Trials whose point no longer lies
in the space are left out.
"""

from dataclasses import dataclass, replace

import numpy as np

from trainshed.core.tuning.search_space import TrialPoint
from trainshed.core.tuning.suggestion_port import Objective, SuggestionRequest, TrialResult, point_key
from trainshed.suggest.encoding import Encoding, Floats

Key = tuple[tuple[str, float | int | str], ...]


@dataclass(frozen=True, slots=True)
class TrialTable:
    encoding: Encoding
    rows: Floats  # of finished trials, in order
    losses: Floats  # one column for each objective
    pending: Floats  # rows of trials under way
    tried: frozenset[Key]
    prior_rows: Floats  # of earlier studies, those that succeeded
    prior_losses: Floats

    def with_pending(self, point: TrialPoint) -> "TrialTable":
        row = self.encoding.row(point)[None, :]
        return replace(self, pending=np.vstack([self.pending, row]), tried=self.tried | {point_key(point)})


def tabulate(request: SuggestionRequest) -> TrialTable:
    encoding = Encoding(request.space)
    own = [trial for trial in request.trials if request.space.contains(trial.point)]
    finished = [trial for trial in own if not trial.is_pending]
    earlier = [trial for trial in request.priors if request.space.contains(trial.point)]
    prior_losses = _losses(earlier, request.objectives)
    good = np.isfinite(prior_losses).all(axis=1)
    return TrialTable(
        encoding,
        encoding.rows(trial.point for trial in finished),
        _losses(finished, request.objectives),
        encoding.rows(trial.point for trial in own if trial.is_pending),
        frozenset(point_key(trial.point) for trial in own),
        encoding.rows(trial.point for trial in earlier)[good],
        prior_losses[good],
    )


def _losses(trials: list[TrialResult], objectives: tuple[Objective, ...]) -> Floats:
    signs = np.array([-1.0 if objective.maximize else 1.0 for objective in objectives])
    rows = [
        trial.values
        if trial.values is not None and not trial.is_failed and len(trial.values) == len(signs)
        else None
        for trial in trials
    ]
    table = np.array([row if row is not None else [np.nan] * len(signs) for row in rows], dtype=float)
    table = table.reshape(len(trials), len(signs)) * signs
    table[~np.isfinite(table).all(axis=1)] = np.nan
    return table
