"""The values of an explanation: why a job is in its state, what would start it now, and when it may start.

`why.py`, `change.py` and `foresee.py` compute them from a `World`: what a scheduling cycle would see, and the
history of earlier jobs. `service/why.py` builds the World. Nothing here reads a clock or a store.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from trainshed.core.event import Reason
from trainshed.core.explain.arrivals import NOBODY, Arrivals
from trainshed.core.explain.history import History
from trainshed.core.jobs.job import Job, JobState
from trainshed.core.jobs.readiness import READY, Readiness
from trainshed.core.queue.machine import Catalogue
from trainshed.core.queue.refusal import UNNAMED
from trainshed.core.queue.snapshot import Snapshot

NEWEST = "~"  # the id of a job that is not submitted yet; it sorts after all other ids


class Fact(StrEnum):
    """The kind of a fact that supports a reason. Scripts may rely on these words, as on those of Reason."""

    NEEDS = "NEEDS"
    FREE = "FREE"
    HOLDS = "HOLDS"
    BEFORE = "BEFORE"
    WOULD_DELAY = "WOULD_DELAY"
    DEADLINE = "DEADLINE"
    REPLICA = "REPLICA"
    SITE = "SITE"  # where it was placed, and why there
    VERDICT = "VERDICT"
    MORE = "MORE"  # there are more like those listed


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """A sentence with numbers, and the facts that support it."""

    reason: Reason | Fact
    message: str
    remedy: str = ""
    job: str = ""  # the other job it is about
    at: datetime | None = None  # when, or until when, where that is known
    grounds: tuple["Ground", ...] = ()


class ChangeCost(StrEnum):
    """Who pays for a change, the cheapest first."""

    NOBODY = "NOBODY"
    ITSELF = "ITSELF"
    QUEUE = "QUEUE"  # the job passes others
    OTHER = "OTHER"  # another job is cancelled


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One field that starts the job now if it is set so. The scheduler's rule has been tried with it.

    For a field of the job: cancel the job and submit it again. The field `cancel` is about another job.
    """

    field: str
    before: str
    after: str
    sentence: str
    toll: ChangeCost
    loss: float = 0  # the share that is lost, from 0 to 1: a smaller loss is a smaller change
    job: str = ""  # the other job, where it is about one


@dataclass(frozen=True, slots=True, kw_only=True)
class Eta:
    """When a job may start, and what the estimate is based on. What is unknown is None."""

    earliest: datetime
    likely: datetime | None  # where the simulations agree on it
    latest: datetime | None
    basis: str
    between: tuple[datetime, datetime] | None = None  # the first and the last time of the simulations


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    state: JobState
    ground: Ground
    starts_now: bool = False
    position: int | None = None  # in the queue, from 1; None for a job that is not in it
    queue: int = 0  # how many jobs wait
    changes: tuple[Change, ...] = ()  # the smallest first
    eta: Eta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The input of an explanation."""

    snapshot: Snapshot
    waiting: tuple[Job, ...]
    running: tuple[Job, ...]  # those that hold something
    history: History
    catalogue: Catalogue = field(repr=False)
    now: datetime
    readiness: Readiness = READY  # of the job that is asked about; `waiting` has only ready jobs
    hidden: frozenset[str] = frozenset()  # ids of jobs that who asks may not see
    arrivals: Arrivals = NOBODY  # of late: as many are still to come

    def shown(self, job: str) -> str:
        """The id of a job; empty where it may not be seen."""
        return "" if job in self.hidden else job

    def called(self, job: str, name: str) -> str:
        """A job, at the beginning of a sentence."""
        return f"Job {job} '{name}'" if self.shown(job) else f"{UNNAMED[:1].upper()}{UNNAMED[1:]}"


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
    parts = [f"{count} {unit}" for count, unit in units[first : first + 2] if count]
    return " ".join(parts) or "0 s"


def more(count: int, listed: int) -> tuple[Ground, ...]:
    """The ground that counts what a list of `listed` grounds leaves out."""
    return (Ground(reason=Fact.MORE, message=f"And {count - listed} more."),) if count > listed else ()


def clock(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"
