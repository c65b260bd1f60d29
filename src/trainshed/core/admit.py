"""admit: one scheduling cycle. All replicas of a job or none, by priority and then age. Pure.

`control/scheduler.py` runs a `Cycle`; `core/why.py` calls `admit`. The first job that does not fit is the
head. A smaller job behind it may pass only if that does not delay the head: even if every running job uses
its whole timeout, the head can start as early as without the smaller one. Each refusal has a typed reason.

Jobs of one *shape* (the same demand, the same timeout) get the same answer: once one is refused, the others
of its shape are refused for the rest of the cycle. So the cost of a cycle depends on the number of shapes,
and behind the head it tries at most MOST_BEHIND of them. `admit` answers every job; the scheduler asks a
`Cycle` only about jobs whose shape is not refused yet. Both make the same decisions.
"""

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TypeAlias

from trainshed.core.event import Reason, Waiting
from trainshed.core.fleet import Admission, Fit, Node, Placement
from trainshed.core.job import Job, JobState
from trainshed.core.place import Fitted, ReplicaNeed, Room, capacity, fitted, needs, total
from trainshed.core.refusal import Refusal, in_words

MOST_BEHIND = 200  # how many shapes behind the head are refused before a cycle ends: bounds its cost
NAMED = 3  # how many jobs a refusal names

Order: TypeAlias = tuple[int, datetime, str]  # a place in the queue; the last is the job's id
Demand: TypeAlias = tuple[tuple[int, float, int, int, str], ...]  # of each pool
Shape: TypeAlias = tuple[Demand, timedelta]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """The placements of an admitted job, and when they are free again at the latest."""

    job: str
    display_name: str
    placements: tuple[Placement, ...]
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    nodes: tuple[Node, ...]
    held: tuple[Reservation, ...]
    fit: Fit = Fit.SHRINK


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionResult:
    """The answer for one waiting job: an admission (without ports yet), or why not."""

    job: Job
    admission: Admission | None = None
    refusal: Refusal | None = None

    @property
    def waiting(self) -> Waiting | None:
        """The refusal in words."""
        return None if self.refusal is None else in_words(self.refusal)


def shape_of(job: Job) -> Shape:
    """The part of a job that decides where it fits and whether it may pass the head."""
    spec = job.spec
    pools = [(p.replicas, p.cpus, p.memory, p.accelerators, p.accelerator) for p in spec.pools]
    return tuple(pools), spec.scheduling.timeout


def order(job: Job) -> Order:
    return (-job.spec.scheduling.priority, job.created_at, job.id)


def held_by(job: Job, now: datetime) -> Reservation:
    admission = job.status.admission
    since = job.status.started_at or job.status.admitted_at or now
    return Reservation(
        job=job.id,
        display_name=job.display_name,
        placements=admission.placements if admission else (),
        until=since + job.spec.scheduling.timeout,
    )


def is_waiting(job: Job) -> bool:
    """Whether the job is in the queue: a cycle looks at these jobs only."""
    return job.status.state is JobState.QUEUED and job.status.admission is None


def snapshot_of(active: Iterable[Job], nodes: tuple[Node, ...], fit: Fit, now: datetime) -> Snapshot:
    """The fleet as a cycle sees it: the nodes, and what the admitted jobs hold of them."""
    admitted = [job for job in active if job.status.admission is not None]
    # The same jobs are named in the same order, whichever the caller has them in.
    admitted.sort(key=lambda job: (job.created_at, job.id))
    return Snapshot(nodes=nodes, held=tuple([held_by(job, now) for job in admitted]), fit=fit)


def admit(snapshot: Snapshot, waiting: Sequence[Job], now: datetime) -> tuple[AdmissionResult, ...]:
    """The answer to every waiting job, in the order of the queue."""
    cycle = Cycle(snapshot, now)
    return tuple([cycle.answer(job) for job in sorted(waiting, key=order)])


@dataclass(slots=True)
class Cycle:
    """One cycle in progress. Call `answer` for the jobs in the order of the queue; admissions take room."""

    snapshot: Snapshot
    now: datetime
    room: Room = field(init=False)
    held: list[Reservation] = field(init=False)
    head: Job | None = None
    head_refusal: Refusal | None = None
    head_needs: tuple[ReplicaNeed, ...] = ()
    head_starts: datetime | None = None
    refused: dict[Shape, Refusal] = field(default_factory=dict[Shape, Refusal])
    behind: int = 0  # how many of these shapes were tried behind the head
    # Demands for which there is no room, whatever the timeout.
    full: dict[Demand, Refusal] = field(default_factory=dict[Demand, Refusal])
    far: Refusal | None = None  # the refusal of all jobs that are not tried
    fits: dict[Demand, Fitted] = field(default_factory=dict[Demand, Fitted])

    def __post_init__(self) -> None:
        self.room = Room(self.snapshot.nodes)
        self.held = list(self.snapshot.held)
        for reservation in self.held:
            self.room.take(reservation.placements)

    def copy(self) -> "Cycle":
        twin = copy(self)
        twin.room, twin.held = self.room.copy(), list(self.held)
        twin.refused, twin.full = dict(self.refused), dict(self.full)
        return twin

    @property
    def is_over(self) -> bool:
        """Whether so many shapes were refused that no more are tried."""
        return self.behind >= MOST_BEHIND

    def answer(self, job: Job) -> AdmissionResult:
        shape = shape_of(job)
        if shape in self.refused:
            return AdmissionResult(job=job, refusal=self.refused[shape])
        fit = self._fitted(job, shape[0])
        if fit is None:
            refusal = self.refused[shape] = self._too_large(job)
            return AdmissionResult(job=job, refusal=refusal)
        wanted, cuts = fit
        if self.is_over:
            return AdmissionResult(job=job, refusal=self._far_behind())
        demand = shape[0]
        placements = None if demand in self.full else self.room.place(wanted)
        if placements is not None:
            until = self.now + job.spec.scheduling.timeout
            mine = Reservation(job=job.id, display_name=job.display_name, placements=placements, until=until)
            if not self._delays_head(mine):
                self.held.append(mine)
                admission = Admission(placements=placements, admitted_at=self.now, cuts=cuts)
                return AdmissionResult(job=job, admission=admission)
            self.room.give(placements)
        elif self.head is None:
            self.head, self.head_needs = job, wanted
            self.head_starts = self._earliest(wanted, self.room, self.held)
            self.head_refusal = self._no_room(wanted)
            self.refused[shape] = self.full[demand] = self._behind(wanted)  # for others of its shape
            return AdmissionResult(job=job, refusal=self.head_refusal)
        self.behind += 1
        refusal = self.refused[shape] = self.full.get(demand) or self._behind(wanted)
        if placements is None:
            self.full[demand] = refusal
        return AdmissionResult(job=job, refusal=refusal)

    def refusal_of(self, job: Job) -> Refusal | None:
        """Why the job was not admitted, after the cycle; None for a job that the cycle has no refusal for."""
        if self.head is not None and job.id == self.head.id:
            return self.head_refusal
        shape = shape_of(job)
        if shape in self.refused:
            return self.refused[shape]
        if self._fitted(job, shape[0]) is None:
            return self._too_large(job)
        return self._far_behind() if self.is_over else None

    def _fitted(self, job: Job, demand: Demand) -> Fitted:
        if demand not in self.fits:
            self.fits[demand] = fitted(job.spec, self.snapshot.nodes, self.snapshot.fit)
        return self.fits[demand]

    def _delays_head(self, mine: Reservation) -> bool:
        """Whether the head could start later with this reservation than without it."""
        if self.head is None:
            return False
        starts = self._earliest(self.head_needs, self.room, [*self.held, mine])
        return starts is None or self.head_starts is None or starts > self.head_starts

    def _earliest(
        self, wanted: tuple[ReplicaNeed, ...], room: Room, reservations: list[Reservation]
    ) -> datetime | None:
        """When there is room for `wanted` at the latest, if every job uses its whole timeout."""
        later = room.copy()
        for reservation in sorted(reservations, key=lambda h: h.until):
            later.give(reservation.placements)
            if later.copy().place(wanted) is not None:
                return max(reservation.until, self.now)
        return None

    def _too_large(self, job: Job) -> Refusal:
        nodes = self.snapshot.nodes
        reason = Reason.TOO_LARGE if nodes else Reason.NO_NODES
        return Refusal(reason=reason, needs=total(needs(job.spec)), there=capacity(nodes))

    def _no_room(self, wanted: tuple[ReplicaNeed, ...]) -> Refusal:
        return Refusal(
            reason=Reason.WAITS_FOR_CAPACITY,
            needs=total(wanted),
            free=self.room.free(),
            there=capacity(self.snapshot.nodes),
            holders=tuple((h.job, h.display_name) for h in self.held[:NAMED]),
            more_holders=max(0, len(self.held) - NAMED),
            starts_by=self.head_starts,
        )

    def _far_behind(self) -> Refusal:
        """One refusal for all jobs that are not tried."""
        if self.far is None:
            self.far = replace(self._behind(()), kinds_before=MOST_BEHIND)
        return self.far

    def _behind(self, wanted: tuple[ReplicaNeed, ...]) -> Refusal:
        assert self.head is not None
        return Refusal(
            reason=Reason.WAITS_BEHIND_OTHERS,
            needs=total(wanted),
            free=self.room.free(),
            head=(self.head.id, self.head.display_name),
            head_needs=total(self.head_needs),
        )
