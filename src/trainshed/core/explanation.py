"""An explanation: why a job stands where it stands, what would start it now, and when it may start.

Values only, and the World they are found in: what one cycle of the scheduler would see, and what has been.
The answers are made in `why.py`, `change.py` and `foresee.py`. Nothing here looks at a clock or a store.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from trainshed.core.admit import Snapshot
from trainshed.core.event import Reason
from trainshed.core.history import History
from trainshed.core.job import Job, JobState
from trainshed.core.machine import Catalogue
from trainshed.core.readiness import READY, Readiness

NEWEST = "~"  # the id of a job that is not submitted yet: behind all others, as ids sort by age


class Fact(StrEnum):
    """What stands behind a reason. Scripts may rely on these words, as on those of Reason."""

    NEEDS = "NEEDS"
    FREE = "FREE"
    HOLDS = "HOLDS"
    BEFORE = "BEFORE"
    WOULD_DELAY = "WOULD_DELAY"
    DEADLINE = "DEADLINE"
    REPLICA = "REPLICA"
    VERDICT = "VERDICT"
    MORE = "MORE"  # there are others like the ones told


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """A sentence with numbers, and the grounds behind it."""

    reason: Reason | Fact
    message: str
    remedy: str = ""
    job: str = ""  # the other job it is about
    at: datetime | None = None  # until when, or when, where that is known
    grounds: tuple["Ground", ...] = ()


class ChangeCost(StrEnum):
    """Whom a change costs something, the cheapest first."""

    NOBODY = "NOBODY"
    ITSELF = "ITSELF"
    QUEUE = "QUEUE"  # it goes before others
    OTHER = "OTHER"  # another job ends for it


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One field that, set so, starts the job now: not a guess, the scheduler's rule has said yes to it.

    A field of the job means: cancel it and submit it again so. The field `cancel` is about another job.
    """

    field: str
    before: str
    after: str
    sentence: str
    toll: ChangeCost
    loss: float = 0  # how much of it goes, from 0 to 1: what makes one change smaller than another
    job: str = ""  # the other job, where it is about one


@dataclass(frozen=True, slots=True, kw_only=True)
class Eta:
    """When a job may start, and from what that is known. A bound that nothing tells is None."""

    earliest: datetime
    likely: datetime | None
    latest: datetime | None
    basis: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    state: JobState
    ground: Ground
    starts_now: bool = False
    position: int | None = None  # in the queue, from 1; None for a job that is not in it
    queue: int = 0  # how many wait
    changes: tuple[Change, ...] = ()  # the smallest first
    eta: Eta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """All that an explanation is made from."""

    snapshot: Snapshot
    waiting: tuple[Job, ...]
    running: tuple[Job, ...]  # those that hold something
    history: History
    catalogue: Catalogue = field(repr=False)
    now: datetime
    readiness: Readiness = READY  # of the job that is asked about; of the others only ready ones wait


def lasting(length: timedelta) -> str:
    """A length of time in its two largest units at most; a short one to a tenth of a second."""
    seconds = max(0.0, length.total_seconds())
    if 0 < seconds < 9.95 and seconds % 1:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    units = (
        (whole // 86400, "d"),
        (whole // 3600 % 24, "h"),
        (whole // 60 % 60, "min"),
        (whole % 60, "s"),
    )
    first = next((at for at, (count, _) in enumerate(units) if count), len(units) - 1)
    told = [f"{count} {unit}" for count, unit in units[first : first + 2] if count]
    return " ".join(told) or "0 s"


def clock(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"
