"""Readiness: whether what a job needs before it can start (its runtime, say) is there, on its way, or broken.

A backend tells it (`Backend.prepare`); the scheduler offers only ready jobs to `admit`, and `decide` starts
nothing before. A plain value: it is never stored, and asked for again whenever it matters.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from trainshed.core.event import Reason, Waiting
from trainshed.core.verdict import Verdict


class ReadinessState(StrEnum):
    READY = "READY"
    PREPARING = "PREPARING"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    standing: ReadinessState = ReadinessState.READY
    message: str = ""  # how far it is, or what went wrong
    remedy: str = ""
    verdict: Verdict | None = None  # of a preparation that failed
    notes: tuple[str, ...] = ()  # what is other than was asked for: warnings in the job's history
    installed: tuple[str, ...] = ()  # what exactly it was given: lines of the job's history
    mark: int = 0  # how far it is, coarsely: each higher one is a line of the job's history

    @property
    def is_ready(self) -> bool:
        return self.standing is ReadinessState.READY

    @property
    def waiting(self) -> Waiting:
        return Waiting(reason=Reason.PREPARING, message=self.message, remedy=self.remedy)


READY = Readiness()

_ORDER = (ReadinessState.FAILED, ReadinessState.PREPARING, ReadinessState.READY)


def together(parts: Iterable[Readiness]) -> Readiness:
    """One answer for several parts: failed if one is, else on its way if one is; all notes once."""
    several = tuple(parts)
    worst = min(several, key=lambda part: _ORDER.index(part.standing), default=READY)
    notes = tuple(dict.fromkeys(note for part in several for note in part.notes))
    installed = tuple(dict.fromkeys(line for part in several for line in part.installed))
    if len(several) < 2 or (notes == worst.notes and installed == worst.installed):
        return worst
    return Readiness(
        standing=worst.standing,
        message=worst.message,
        remedy=worst.remedy,
        verdict=worst.verdict,
        notes=notes,
        installed=installed,
        mark=worst.mark,
    )
