"""The rule by which a study ends trials early, as data. `core/tuning/stopping.py` applies it."""

from dataclasses import dataclass
from enum import StrEnum


class StoppingKind(StrEnum):
    MEDIAN = "median"  # worse than the median of the others at the same step
    DECAY_CURVE = "decay_curve"  # very unlikely to become the best
    CONVEX = "convex"  # its curve has become flat
    ASHA = "asha"  # not among the best of a rung
    HYPERBAND = "hyperband"  # the same, with several brackets of rungs


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingRule:
    """Steps are seconds since the trial's start where `use_elapsed` is set. 0: the rule decides."""

    kind: StoppingKind
    use_elapsed: bool = False
    least_step: int = 0
    most_step: int = 0
    least_measurements: int = 0
    least_trials: int = 0  # of the median rule: how many must have completed
    reduction: int = 3  # of ASHA and Hyperband: one of so many goes on
    learning_rate: str = ""  # the parameter's id, of the convex rule
    updates_stopped: bool = False  # of the convex rule: whether its guess counts as the final value
