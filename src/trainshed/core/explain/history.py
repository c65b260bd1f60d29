"""How long earlier jobs like this one took: those of the same display name, else of the same program. Pure.

Where none of these ran for so long, those of its user in the project count, else those of the project.

`service/past_runs.py` builds a History from ended jobs; `core/explain/foresee.py`, `core/explain/change.py`
and `core/explain/why.py` read it. Cancelled jobs are left out: they do not show how long they would have
taken.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeAlias

from trainshed.core.jobs.job import Job, JobState, Outcome

Lengths: TypeAlias = tuple[timedelta, ...]
Kin: TypeAlias = tuple[object, ...]

SOON, MIDDLE = 0.1, 0.5  # quantiles: nearly the earliest, and the median


@dataclass(frozen=True, slots=True)
class History:
    """Lengths of earlier runs, shortest first."""

    by_name: Mapping[Kin, Lengths] = field(default_factory=dict[Kin, Lengths])
    by_program: Mapping[Kin, Lengths] = field(default_factory=dict[Kin, Lengths])
    by_user: Mapping[Kin, Lengths] = field(default_factory=dict[Kin, Lengths])
    by_project: Mapping[Kin, Lengths] = field(default_factory=dict[Kin, Lengths])

    def of(self, job: Job) -> Lengths:
        return self.by_name.get(named(job)) or self.by_program.get(program(job)) or ()

    def longer(self, job: Job, elapsed: timedelta) -> tuple[list[timedelta], bool]:
        """Of the runs most like the job's, those that took longer than it has run; whether they are like it.

        Where none like it did, of those of its user, else of its project.
        """
        own = self.of(job)
        for lengths in (own, self.by_user.get(used_by(job)), self.by_project.get((job.project,))):
            if lengths and lengths[-1] > elapsed:
                return [length for length in lengths if length > elapsed], lengths is own
        return [], False


@dataclass(frozen=True, slots=True)
class RemainingTime:
    """How much longer a job may run. `likely` is None where no job of its project has run for so long."""

    least: timedelta
    likely: timedelta | None
    most: timedelta
    is_own: bool = True  # known from jobs like it; else from others of its user or project


def history_of(ended: Iterable[Job]) -> History:
    by_name: dict[Kin, list[timedelta]] = defaultdict(list)
    by_program: dict[Kin, list[timedelta]] = defaultdict(list)
    by_user: dict[Kin, list[timedelta]] = defaultdict(list)
    by_project: dict[Kin, list[timedelta]] = defaultdict(list)
    for job in ended:
        status = job.status
        since = status.started_at or status.admitted_at
        if status.state is JobState.CANCELLED or since is None or status.ended_at is None:
            continue
        length = max(status.ended_at - since, timedelta())
        by_name[named(job)].append(length)
        by_program[program(job)].append(length)
        by_user[used_by(job)].append(length)
        by_project[job.project,].append(length)
    kins = by_name, by_program, by_user, by_project
    return History(*({kin: tuple(sorted(lengths)) for kin, lengths in lists.items()} for lists in kins))


def named(job: Job) -> Kin:
    return job.project, job.display_name


def program(job: Job) -> Kin:
    """What the job runs, without its machines and counts."""
    parts = tuple((p.image, p.command, p.args, p.module) for p in job.spec.pools if not p.is_empty)
    return job.project, parts


def used_by(job: Job) -> Kin:
    return job.project, job.submitter


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
    lengths, is_own = history.longer(job, elapsed)
    longer = [length - elapsed for length in lengths]
    if not longer:
        return RemainingTime(zero, None, most)
    least = quantile(longer, SOON) if is_own else zero
    return RemainingTime(min(least, most), min(quantile(longer, MIDDLE), most), most, is_own)


def quantile(lengths: list[timedelta], share: float) -> timedelta:
    """The given quantile: always one of the lengths, never interpolated."""
    return sorted(lengths)[min(len(lengths) - 1, int(share * len(lengths)))]
