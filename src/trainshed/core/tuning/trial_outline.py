"""A trial in short, and queries for trials: what lists, histories and analyses need of thousands of them.

The store gives outlines without reading measurements, which may be a thousand for each trial.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from trainshed.core.tuning.search_space import TrialPoint
from trainshed.core.tuning.study import Study, Trial, TrialState


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialOutline:
    number: int
    point: TrialPoint
    state: TrialState = TrialState.REQUESTED
    job: str = ""
    values: tuple[float, ...] | None = None  # final ones, in the order of the objectives
    is_stopped: bool = False  # it was ended early
    started_at: datetime | None = None
    ended_at: datetime | None = None

    @property
    def value(self) -> float | None:
        """By the first objective; None unless it succeeded."""
        return self.values[0] if self.values else None

    @property
    def seconds(self) -> float | None:
        if self.started_at is None or self.ended_at is None:
            return None
        return max(0.0, (self.ended_at - self.started_at).total_seconds())


def outline(study: Study, trial: Trial) -> TrialOutline:
    values: tuple[float, ...] | None = None
    if trial.state is TrialState.SUCCEEDED and trial.final is not None:
        known = trial.final.values
        metrics = [objective.metric for objective in study.spec.objectives]
        values = tuple(known[metric] for metric in metrics) if all(m in known for m in metrics) else None
    return TrialOutline(
        number=trial.number,
        point=trial.point,
        state=trial.state,
        job=trial.job,
        values=values,
        is_stopped=bool(trial.stopped),
        started_at=trial.started_at,
        ended_at=trial.ended_at,
    )


class TrialOrder(StrEnum):
    """What trials are listed by. Those that lack it come last."""

    NUMBER = "number"
    VALUE = "value"
    STARTED = "started_at"
    SECONDS = "seconds"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialQuery:
    study: str
    states: tuple[TrialState, ...] = ()  # empty: all
    order: TrialOrder = TrialOrder.NUMBER
    is_descending: bool = False
    limit: int = 100
    offset: int = 0


@dataclass(frozen=True, slots=True)
class TrialPage:
    trials: tuple[Trial, ...]
    total: int  # of all pages


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyFigures:
    """How many trials a study has, by state, and the best one by its first objective."""

    by_state: Mapping[TrialState, int] = field(default_factory=dict[TrialState, int])
    waiting: int = 0  # of the active ones: their jobs have not started
    best: TrialOutline | None = None

    @property
    def total(self) -> int:
        return sum(self.by_state.values())
