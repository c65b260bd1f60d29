"""What a job had of a node on one day, by what the time was spent on: the ledger, summed up day by day. Pure.

Every store keeps these sums together with the intervals they are made of, in the same write, so no time is
counted twice or lost (`core/ledger.py`). A day is one of UTC. Only time in which a run held resources counts,
and at its end a job stops counting the moment its last replica has ended: what the server does after that is
not the job's.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from typing import NamedTuple

from trainshed.core.event import Reason
from trainshed.core.jobs.job import Job, Status
from trainshed.core.ledger import Interval, TimeClass, open_intervals

_AFTER_THE_END = (TimeClass.IDLE, TimeClass.CHECKPOINTED)  # classes of time that follow a replica's end
_MICRO = timedelta(microseconds=1)


class DayUse(NamedTuple):
    """Time of one class, with the resources that were held all through it. Fields not asked for are empty.

    A tuple, because a report may be made of hundreds of thousands.
    """

    spent_on: TimeClass
    day: date | None = None
    project: str = ""
    location: str = ""
    job: str = ""
    label: str = ""  # the value of the label that was asked for
    user: str = ""  # who submitted the job
    node: str = ""
    machine_type: str = ""
    cpus: float = 0
    memory: int = 0
    gpus: int = 0
    accelerator: str = ""  # the type of its GPUs, as the job asked for them
    is_spot: bool = False
    micros: int = 0  # microseconds, of all replicas together


class UseField(StrEnum):
    """What sums can be kept apart by. Classes and resources always are."""

    DAY = "day"
    PROJECT = "project"
    JOB = "job"
    NODE = "node"
    LABEL = "label"
    USER = "user"


@dataclass(frozen=True, slots=True, kw_only=True)
class UseQuery:
    project: str = "-"  # "-": all
    location: str = "-"
    job: str = ""
    since: date | None = None
    until: date | None = None  # the first day after
    apart: frozenset[UseField] = frozenset()
    label: str = ""  # the key whose values are meant by UseField.LABEL

    def takes(self, use: DayUse) -> bool:
        return (
            self.project in ("-", use.project)
            and self.location in ("-", use.location)
            and self.job in ("", use.job)
            and (self.since is None or use.day is None or self.since <= use.day)
            and (self.until is None or use.day is None or use.day < self.until)
        )

    def reduced(self, use: DayUse) -> DayUse:
        """The use without what is not kept apart."""
        apart = self.apart
        return use._replace(
            day=use.day if UseField.DAY in apart else None,
            project=use.project if UseField.PROJECT in apart else "",
            location="",
            job=use.job if UseField.JOB in apart else "",
            node=use.node if UseField.NODE in apart else "",
            label=use.label if UseField.LABEL in apart else "",
            user=use.user if UseField.USER in apart else "",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobUses:
    """Uses of very many jobs, told briefly: what they had once, and the time that a job had it in a row."""

    kinds: Mapping[int, DayUse] = field(default_factory=dict[int, DayUse])  # without job and time, by number
    rows: Sequence[tuple[int, str, int]] = ()  # the number of a kind, the job, microseconds


NO_JOBS = JobUses()


def day_uses(job: Job, status: Status, intervals: Iterable[Interval]) -> tuple[DayUse, ...]:
    """The sums of intervals that end with the write of this status; none without time."""
    ended_at = _ended_at(status)
    sums: Counter[DayUse] = Counter()
    is_spot = job.spec.scheduling.is_spot
    for interval in intervals:
        if not interval.node:
            continue
        to_at = interval.to_at
        if ended_at is not None and interval.spent_on in _AFTER_THE_END:
            to_at = min(to_at, ended_at)
        pool = job.spec.pools[interval.key.name.pool]
        for day, micros in _days(interval.from_at, to_at):
            use = DayUse(
                day=day,
                project=job.project,
                location=job.location,
                job=job.id,
                node=interval.node,
                spent_on=interval.spent_on,
                machine_type=pool.machine_type,
                cpus=interval.cpus,
                memory=interval.memory,
                gpus=interval.gpus,
                accelerator=pool.accelerator if interval.gpus else "",
                is_spot=is_spot,
            )
            sums[use] += micros
    return added_up(sums)


def open_uses(job: Job, now: datetime) -> tuple[DayUse, ...]:
    """What a job has had since the ledger last counted it; nothing once the job is final."""
    return day_uses(job, job.status, open_intervals(job, now))


def added_up(sums: Counter[DayUse]) -> tuple[DayUse, ...]:
    """Uses by their time, where each key has none."""
    return tuple(use._replace(micros=micros) for use, micros in sums.items() if micros)


def _ended_at(status: Status) -> datetime | None:
    """When the last replica of a job ended that is over, or that only stores its outputs."""
    stores = status.waiting is not None and status.waiting.reason is Reason.STORING_OUTPUTS
    if not (status.state.is_final or stores):
        return None
    return max((r.ended_at for r in status.replicas if r.ended_at is not None), default=None)


def _days(from_at: datetime, to_at: datetime) -> Iterator[tuple[date, int]]:
    """The time between two moments, day by day."""
    while from_at < to_at:
        day = from_at.astimezone(UTC).date()
        midnight = datetime.combine(day + timedelta(days=1), time(), UTC)
        yield day, (min(midnight, to_at) - from_at) // _MICRO
        from_at = midnight
