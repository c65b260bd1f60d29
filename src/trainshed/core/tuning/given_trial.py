"""A trial of a person's own, with its point. `wire/vizier.py` reads it, `service/trials.py` stores it."""

from dataclasses import dataclass

from trainshed.core.tuning.measurement import Measurement
from trainshed.core.tuning.search_space import TrialPoint


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenTrial:
    """It waits for a client, is run by one, or has ended already."""

    point: TrialPoint
    client: str = ""  # who runs it
    measurements: tuple[Measurement, ...] = ()
    is_completed: bool = False
    final: Measurement | None = None  # of a completed one; without it a measurement is chosen
    infeasible: str | None = None  # why
