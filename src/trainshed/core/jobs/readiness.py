"""Readiness: whether what a job needs before it can start is ready, in preparation, or failed.

`Backend.prepare` returns it, for example for a runtime. The scheduler offers only ready jobs to `admit`, and
`decide` starts nothing before. It is never stored: callers ask for it whenever they need it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from trainshed.core.event import Reason, Waiting
from trainshed.core.jobs.verdict import Verdict


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
    notes: tuple[str, ...] = ()  # what differs from the request: warnings in the job's history
    installed: tuple[str, ...] = ()  # what exactly was installed: lines of the job's history
    sites: tuple[str, ...] = ()  # where it may be placed, the best first; empty: on any node
    elsewhere: str = ""  # why it cannot be placed at other sites; empty: it can, or there are none
    mark: int = 0  # coarse progress: each higher value becomes a line of the job's history

    @property
    def is_ready(self) -> bool:
        return self.standing is ReadinessState.READY

    @property
    def waiting(self) -> Waiting:
        return Waiting(reason=Reason.PREPARING, message=self.message, remedy=self.remedy)


READY = Readiness()


class PreparationKind(StrEnum):
    """What is being prepared. Scripts may rely on these words."""

    RUNTIME = "RUNTIME"  # an environment is built
    PACKAGES = "PACKAGES"  # packages of a job are fetched
    IMAGE = "IMAGE"  # an image is pulled
    DERIVED_IMAGE = "DERIVED_IMAGE"  # packages are installed on top of an image


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparationProgress:
    """One thing that is being prepared, and how far it is."""

    kind: PreparationKind
    name: str  # of the runtime, the image or the package
    message: str
    percent: int | None = None  # None: not known
    took: float = 0.0  # seconds so far; 0 while it waits for its turn
    jobs: tuple[str, ...] = ()  # ids of those that wait for it


_ORDER = (ReadinessState.FAILED, ReadinessState.PREPARING, ReadinessState.READY)


def together(parts: Iterable[Readiness]) -> Readiness:
    """One Readiness for several parts: FAILED if one is, else PREPARING if one is; each note once."""
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
