"""How long earlier jobs like this one took: those of the same display name, else of the same program. Pure.

Where none of these ran for so long, the others of its project count: each name once, with the middle of its
runs, and a job that still runs with twice as long as it has run. Long jobs end late: without those that still
run jobs would seem to be shorter than they are.

`service/past_runs.py` builds a History from ended jobs; `core/explain/foresee.py`, `core/explain/change.py`
and `core/explain/why.py` read it. Cancelled jobs are left out: they do not show how long they would have
taken.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeAlias

from trainshed.core.jobs.job import Job, JobState, Outcome

Lengths: TypeAlias = tuple[timedelta, ...]
Kin: TypeAlias = tuple[object, ...]

SOON, MIDDLE = 0.1, 0.5  # quantiles: nearly the earliest, and the median
FEW = 5  # runs: fewer do not show how much they differ


@dataclass(frozen=True, slots=True)
class History:
    """Lengths of earlier runs, shortest first; of a project, of each name the middle one."""

    by_name: Mapping[Kin, Lengths] = field(default_factory=dict[Kin, Lengths])
    by_program: Mapping[Kin, Lengths] = field(default_factory=dict[Kin, Lengths])
    by_project: Mapping[Kin, Lengths] = field(default_factory=dict[Kin, Lengths])
    running: Mapping[Kin, Mapping[str, timedelta]] = field(
        default_factory=dict[Kin, Mapping[str, timedelta]]
    )  # of a project, by the job's id: how long it has run

    def of(self, job: Job) -> Lengths:
        return self.by_name.get(named(job)) or self.by_program.get(program(job)) or ()

    def longer(self, job: Job, elapsed: timedelta) -> tuple[list[timedelta], bool]:
        """Of the runs most like the job's, those that took longer than it has run; whether they are like it.

        Where none like it did, of those of its project.
        """
        own, project = self.of(job), (job.project,)
        if own and own[-1] > elapsed:
            return [length for length in own if length > elapsed], True
        lengths = [*self.by_project.get(project, ())]
        if lengths:
            running = self.running.get(project, {}).items()
            lengths += [2 * so_far for id, so_far in running if id != job.id]
        return sorted([length for length in lengths if length > elapsed]), False


@dataclass(frozen=True, slots=True)
class RemainingTime:
    """How much longer a job may run. `likely` is None where no job of its project has run for so long."""

    least: timedelta
    likely: timedelta | None
    most: timedelta
    is_own: bool = True  # known from jobs like it; else from others of its project
    longer: Lengths = ()  # of those runs that took longer than it has run, the rest; shortest first

    def at(self, share: float) -> timedelta:
        """So long, or shorter, so many of such jobs go on; `most` where nobody knows.

        Of few runs each counts as half and as twice as long too.
        """
        if not self.longer:
            return self.most if self.likely is None else self.likely
        lengths = self.longer
        if self.is_own and len(lengths) < FEW:
            lengths = tuple(sorted([part for n in lengths for part in (n / 2, n, n, n, n * 2)]))
        return min(quantile(lengths, share), self.most)


def history_of(ended: Iterable[Job], running: Iterable[Job] = (), now: datetime | None = None) -> History:
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
    by_project: dict[Kin, list[timedelta]] = defaultdict(list)
    for (project, _), lengths in by_name.items():
        by_project[project,].append(quantile(sorted(lengths), MIDDLE))
    so_far: dict[Kin, dict[str, timedelta]] = defaultdict(dict)
    for job in running:
        if now is not None and job.status.started_at is not None and job.status.closing is None:
            so_far[job.project,][job.id] = max(now - job.status.started_at, timedelta())
    return History(_sorted(by_name), _sorted(by_program), _sorted(by_project), so_far)


def _sorted(lists: Mapping[Kin, list[timedelta]]) -> dict[Kin, Lengths]:
    return {kin: tuple(sorted(lengths)) for kin, lengths in lists.items()}


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
    lengths, is_own = history.longer(job, elapsed)
    longer = tuple([length - elapsed for length in lengths])
    if not longer:
        return RemainingTime(zero, None, most)
    least = quantile(longer, SOON) if is_own else zero
    return RemainingTime(min(least, most), min(quantile(longer, MIDDLE), most), most, is_own, longer)


def quantile(lengths: Sequence[timedelta], share: float) -> timedelta:
    """The given quantile of lengths in order: always one of them, never interpolated."""
    return lengths[min(len(lengths) - 1, int(share * len(lengths)))]
