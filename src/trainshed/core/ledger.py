"""The ledger: what each second of each CPU and GPU was spent on. Pure.

Every store calls `account` in every guarded write of a status, so no writer can forget it. The intervals of a
run follow each other without gaps, from the moment the run was asked for until its place is free. Each
interval is written once: `Replica.counted_until` is part of the same write and says how far the ledger has
come.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple, assert_never

from trainshed.core.event import Reason
from trainshed.core.jobs.job import Job, JobState, Status, planned_replicas, waits_since
from trainshed.core.jobs.replica import EndedRun, Exit, Phase, Replica
from trainshed.core.names import ReplicaName, RunKey
from trainshed.core.queue.fleet import Placement


class TimeClass(StrEnum):
    """What a run's time was spent on."""

    QUEUED = "QUEUED"  # it holds no resources yet
    PULLED = "PULLED"  # images, environments and packages are prepared
    SET_UP = "SET_UP"  # it holds its resources, its program does not run yet
    WAITED_FOR_GANG = "WAITED_FOR_GANG"  # it runs, others of its attempt have not started yet
    COMPUTED = "COMPUTED"
    CHECKPOINTED = "CHECKPOINTED"  # its outputs are being stored
    LOST = "LOST"  # the backend no longer showed it, and it never came back
    HELD = "HELD"  # it has failed and is held for inspection
    IDLE = "IDLE"  # it holds its resources and nothing runs


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A closed interval of a run's time. It is empty only where a run ended that took no time."""

    key: RunKey
    spent_on: TimeClass
    from_at: datetime
    to_at: datetime
    node: str = ""  # empty while QUEUED: the resources are then those asked for
    cpus: float = 0
    memory: int = 0
    gpus: int = 0
    devices: tuple[str, ...] = ()  # the ids of its GPUs, once it has them
    exit: Exit | None = None  # how the run ended, in the interval at whose end it did


@dataclass(frozen=True, slots=True)
class ResourceTime:
    """For how long a job had resources, times how many of them."""

    cpu_seconds: float = 0
    gpu_seconds: float = 0

    def __add__(self, other: "ResourceTime") -> "ResourceTime":
        return ResourceTime(self.cpu_seconds + other.cpu_seconds, self.gpu_seconds + other.gpu_seconds)


def resource_time(intervals: Iterable[Interval]) -> ResourceTime:
    """The sum of intervals. Those in which a run had no resources yet count nothing."""
    total = ResourceTime()
    for interval in intervals:
        if interval.node:
            seconds = (interval.to_at - interval.from_at).total_seconds()
            total += ResourceTime(seconds * interval.cpus, seconds * interval.gpus)
    return total


def uncounted_time(job: Job, now: datetime) -> ResourceTime:
    """What the runs of a job have had since the ledger last counted them; nothing once the job is final."""
    status, total = job.status, ResourceTime()
    if status.admission is None or job.is_final:
        return total
    places = status.admission.by_replica()
    for replica in status.replicas:
        place = places.get((replica.pool, replica.index))
        since = replica.counted_until or status.admitted_at
        if place is not None and since is not None and since < now:
            seconds = (now - since).total_seconds()
            total += ResourceTime(seconds * place.cpus, seconds * len(place.gpus))
    return total


def open_intervals(job: Job, now: datetime) -> tuple[Interval, ...]:
    """The intervals that would end if all runs were counted up to now; none of a job that holds nothing."""
    status = job.status
    if status.admission is None or job.is_final:
        return ()
    places, intervals = status.admission.by_replica(), list[Interval]()
    for replica in status.replicas:
        turnings = _turnings(job, status, replica, None, None, now)
        intervals += _intervals(
            job, status.attempt, replica, turnings, places.get((replica.pool, replica.index))
        )
    return tuple(intervals)


class Turning(NamedTuple):
    """The moment from which a run's time has another class; None once its resources are free.

    A tuple, because some are made at every write of every job.
    """

    at: datetime
    to: TimeClass | None
    exit: Exit | None = None  # where the run ended at this moment


def account(job: Job, status: Status, now: datetime) -> tuple[Status, tuple[Interval, ...]]:
    """The status with its `counted_until` moved on, and the intervals that end with this change."""
    before = job.status
    if before.state.is_final or (
        before.admission is None and not (status.admission or status.state.is_final)
    ):
        return status, ()
    counted: dict[tuple[int, int], datetime] = {}
    intervals: list[Interval] = []
    if before.admission is None:
        turnings = _until_admitted(job, status, now)
        for replica in status.replicas or planned_replicas(job.spec):
            intervals += _intervals(job, status.attempt, replica, turnings, None)
    else:
        follows = {(r.pool, r.index): r for r in status.replicas}
        places = before.admission.by_replica()
        gang_at = _gang_started_at(before, status)
        now_at = status.admission.by_replica() if status.admission is not None else places
        moved = {place for place, was in places.items() if now_at.get(place, was).node != was.node}
        for replica in before.replicas:
            place = replica.pool, replica.index
            turnings = _turnings(job, status, replica, follows.get(place), gang_at, now)
            last = turnings[-1]
            if place in moved and last.to is not None and last.at < now:
                turnings = (*turnings, Turning(now, last.to))  # what it had until now was on the old node
            intervals += _intervals(job, before.attempt, replica, turnings, places.get(place))
            if turnings[-1].to is not None:
                counted[place] = turnings[-1].at
    if status.state.is_final:
        return status, tuple(intervals)
    kept = tuple(_counted(r, counted.get((r.pool, r.index), now)) for r in status.replicas)
    return replace(status, replicas=kept), tuple(intervals)


def _counted(replica: Replica, until: datetime) -> Replica:
    return replica if replica.counted_until == until else replace(replica, counted_until=until)


def _until_admitted(job: Job, status: Status, now: datetime) -> tuple[Turning, ...]:
    """From the submit, or the return to the queue, until the job was admitted or ended without that."""
    turnings = [Turning(waits_since(job), TimeClass.QUEUED)]
    if status.preparing_since is not None:
        turnings.append(Turning(status.preparing_since, TimeClass.PULLED))
        if status.prepared_at is not None:
            turnings.append(Turning(status.prepared_at, TimeClass.QUEUED))
    return _in_order((*turnings, Turning(now, None)), now)


def _turnings(
    job: Job, status: Status, replica: Replica, after: Replica | None, gang_at: datetime | None, now: datetime
) -> tuple[Turning, ...]:
    """What a run's time was spent on since it was last counted. The last one is open, or the run's end."""
    before = job.status
    begun_at = (
        replica.counted_until
        or replica.ended_at  # this and the next: for a status that an older version wrote
        or replica.started_at
        or before.admitted_at
        or job.created_at
    )
    spent_on = _spent_on(before, replica)
    backs_off_until = replica.not_before if replica.phase is Phase.PLANNED else None
    if backs_off_until is not None and begun_at < backs_off_until:
        turnings = [Turning(begun_at, TimeClass.IDLE)]
        if backs_off_until <= now:
            turnings.append(Turning(backs_off_until, spent_on))
    else:
        turnings = [Turning(begun_at, spent_on)]
    goes_on = after is not None and (status.attempt, after.run) == (before.attempt, replica.run)
    seen = after if goes_on or after is None else after.previous
    if seen is not None and replica.phase is not Phase.ENDED:
        turnings += _start_and_end(before, replica, seen, gang_at)
    if after is None or not goes_on or status.state.is_final:
        turnings.append(Turning(now, None))
    elif after.phase is not Phase.PLANNED or after.not_before is None or after.not_before <= now:
        turnings.append(Turning(now, _spent_on(status, after)))
    return _in_order(turnings, now)


def _start_and_end(
    before: Status, replica: Replica, seen: Replica | EndedRun, gang_at: datetime | None
) -> Iterator[Turning]:
    """The turnings that follow from what is newly known of a run's start and end."""
    if seen.started_at is None:
        return
    if replica.phase is Phase.PLANNED:
        yield Turning(seen.started_at, _running(before))
    if gang_at is not None and (seen.ended_at is None or gang_at < seen.ended_at):
        yield Turning(gang_at, TimeClass.COMPUTED)
    if seen.exit is None or seen.ended_at is None:
        return
    if seen.exit.lost and replica.missing_since is not None:
        yield Turning(replica.missing_since, TimeClass.LOST)
    yield Turning(seen.ended_at, TimeClass.IDLE, seen.exit)


def _gang_started_at(before: Status, status: Status) -> datetime | None:
    """When the last replica of the attempt had started, where that was not known before."""
    if before.state is not JobState.PENDING:
        return None
    starts: list[datetime] = []
    for replica in status.replicas:
        started_at = replica.started_at if status.attempt == before.attempt else None
        if started_at is None and replica.previous and replica.previous.attempt == before.attempt:
            started_at = replica.previous.started_at
        if started_at is None:
            return None
        starts.append(started_at)
    return max(starts, default=None)


def _spent_on(status: Status, replica: Replica) -> TimeClass:
    """The class of a run's time, as far as the status alone shows it."""
    reason = status.waiting.reason if status.waiting else None
    match replica.phase:
        case Phase.PLANNED:
            if status.closing is not None:
                return TimeClass.IDLE
            return TimeClass.PULLED if reason is Reason.PREPARING else TimeClass.SET_UP
        case Phase.RUNNING | Phase.MISSING:
            return _running(status)
        case Phase.ENDED:
            if reason is Reason.STORING_OUTPUTS:
                return TimeClass.CHECKPOINTED
            return TimeClass.HELD if reason is Reason.HELD else TimeClass.IDLE
        case _:
            assert_never(replica.phase)


def _running(status: Status) -> TimeClass:
    waits = status.state is JobState.PENDING and len(status.replicas) > 1
    return TimeClass.WAITED_FOR_GANG if waits else TimeClass.COMPUTED


def _in_order(turnings: Iterable[Turning], now: datetime) -> tuple[Turning, ...]:
    """In order of time: moments of a backend's clock are limited to the times of our own clock.

    Turnings that change nothing, or last no time and end no run, are left out.
    """
    ordered: list[Turning] = []
    for moment, to, exit in turnings:
        if not ordered:
            ordered.append(Turning(moment, to, exit))
            continue
        last = ordered[-1]
        at = max(last.at, min(moment, now))
        if exit is not None:
            ordered.append(Turning(at, to, exit))
        elif to is last.to:
            continue
        elif at == last.at:
            ordered[-1] = Turning(at, to, last.exit)
        else:
            ordered.append(Turning(at, to))
    return tuple(ordered)


def _intervals(
    job: Job, attempt: int, replica: Replica, turnings: tuple[Turning, ...], place: Placement | None
) -> Iterator[Interval]:
    if len(turnings) < 2:
        return
    pool = job.spec.pools[replica.pool]
    key = RunKey(ReplicaName(job.id, attempt, replica.pool, replica.index), replica.run)
    for begin, end in pairwise(turnings):
        assert begin.to is not None
        yield Interval(
            key=key,
            spent_on=begin.to,
            from_at=begin.at,
            to_at=end.at,
            node=place.node if place else "",
            cpus=place.cpus if place else pool.cpus,
            memory=place.memory if place else pool.memory,
            gpus=len(place.gpus) if place else pool.accelerators,
            devices=place.gpus if place else (),
            exit=end.exit,
        )
