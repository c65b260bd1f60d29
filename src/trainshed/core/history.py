"""How long earlier jobs like this one took: those of the same display name, else of the same program. Pure.

`service/past_runs.py` builds a History from ended jobs; `core/foresee.py`, `core/change.py` and `core/why.py`
read it. Cancelled jobs are left out: they do not show how long they would have taken.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeAlias

from trainshed.core.job import Job, JobState, Outcome

Lengths: TypeAlias = tuple[timedelta, ...]
Kin: TypeAlias = tuple[object, ...]

SOON, MIDDLE = 0.1, 0.5  # quantiles: nearly the earliest, and the median


@dataclass(frozen=True, slots=True)
class History:
    """Lengths of earlier runs, shortest first."""

    by_name: Mapping[Kin, Lengths] = field(default_factory=dict[Kin, Lengths])
    by_program: Mapping[Kin, Lengths] = field(default_factory=dict[Kin, Lengths])

    def of(self, job: Job) -> Lengths:
        return self.by_name.get(named(job)) or self.by_program.get(program(job)) or ()


@dataclass(frozen=True, slots=True)
class RemainingTime:
    """How much longer a job may run. `likely` is None where no job like it has ended."""

    least: timedelta
    likely: timedelta | None
    most: timedelta


def history_of(ended: Iterable[Job]) -> History:
    by_name: dict[Kin, list[timedelta]] = defaultdict(list)
    by_program: dict[Kin, list[timedelta]] = defaultdict(list)
    for job in ended:
        status = job.status
        since = status.started_at or status.admitted_at
        if status.state is JobState.CANCELLED or since is None or status.ended_at is None:
            continue
        length = max(status.ended_at - since, timedelta())
        by_name[named(job)].append(length)
        by_program[program(job)].append(length)
    return History(
        {kin: tuple(sorted(lengths)) for kin, lengths in by_name.items()},
        {kin: tuple(sorted(lengths)) for kin, lengths in by_program.items()},
    )


def named(job: Job) -> Kin:
    return job.project, job.display_name


def program(job: Job) -> Kin:
    """What the job runs, without its machines and counts."""
    parts = tuple((p.image, p.command, p.args, p.module) for p in job.spec.pools if not p.is_empty)
    return job.project, parts


def rest(history: History, job: Job, now: datetime) -> RemainingTime:
    """The remaining time of a running job; the whole time of one that would start now."""
    scheduling, status = job.spec.scheduling, job.status
    zero = timedelta()
    ends = status.closing is not None and status.closing.outcome is not Outcome.RETRY
    if ends or status.cancel_asked_at is not None:
        asked = status.closing.since if status.closing else status.cancel_asked_at or now
        return RemainingTime(zero, zero, max(asked + scheduling.grace - now, zero))
    since = status.started_at or status.admitted_at or now
    elapsed = max(now - since, zero)
    most = max(scheduling.timeout - elapsed, zero) + scheduling.grace
    longer = [length - elapsed for length in history.of(job) if length > elapsed]
    if not longer:
        return RemainingTime(zero, None, most)
    return RemainingTime(min(quantile(longer, SOON), most), min(quantile(longer, MIDDLE), most), most)


def quantile(lengths: list[timedelta], share: float) -> timedelta:
    """The given quantile: always one of the lengths, never interpolated."""
    return sorted(lengths)[min(len(lengths) - 1, int(share * len(lengths)))]
