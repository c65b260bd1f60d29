"""admit: one scheduling cycle. Gang or nothing, by priority then age, each *no* with a typed reason.

The first job that does not fit is the head. A smaller one behind it may pass only if that does not delay
the head: with it in place, the head could still start no later than without it, were every running job to
use its whole timeout.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime

from trainshed.core.event import Reason, Waiting
from trainshed.core.fleet import Admission, Fit, Node, Placement
from trainshed.core.job import Job, JobState
from trainshed.core.place import Fitted, ReplicaNeed, Room, capacity, fitted, needs, total

MOST_BEHIND = 200  # how many jobs behind the head are looked at in one cycle: bounds its cost
NAMED = 3  # how many jobs a sentence names


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """What an admitted job holds, and until when at the latest."""

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
    waiting: Waiting | None = None


def _shape(job: Job) -> object:
    """What of a job decides where it fits and whether it may pass: all but who asks."""
    spec = job.spec
    pools = [(p.replicas, p.cpus, p.memory, p.accelerators, p.accelerator) for p in spec.pools]
    return (spec.scheduling.timeout, *pools)


def order(job: Job) -> tuple[int, datetime, str]:
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
    """Whether the job stands in the queue: it is this, and nothing else, that a cycle looks at."""
    return job.status.state is JobState.QUEUED and job.status.admission is None


def snapshot_of(active: Iterable[Job], nodes: tuple[Node, ...], fit: Fit, now: datetime) -> Snapshot:
    """The fleet as a cycle sees it: what there is, and what the admitted jobs hold of it."""
    held = tuple(held_by(job, now) for job in active if job.status.admission is not None)
    return Snapshot(nodes=nodes, held=held, fit=fit)


def admit(snapshot: Snapshot, waiting: Sequence[Job], now: datetime) -> tuple[AdmissionResult, ...]:
    return tuple(answers(snapshot, waiting, now))


def answers(snapshot: Snapshot, waiting: Sequence[Job], now: datetime) -> Iterator[AdmissionResult]:
    """The same one by one, so that those who may start need not wait for what the others are told."""
    cycle = _Cycle(snapshot, now)
    return (cycle.answer(job) for job in sorted(waiting, key=order))


def queue_behind(snapshot: Snapshot, ahead: Sequence[Job], now: datetime) -> Callable[[Job], AdmissionResult]:
    """The cycle's answer to any job that stands behind those: ask as often as you like, nothing is taken."""
    cycle = _Cycle(snapshot, now)
    for job in sorted(ahead, key=order):
        cycle.answer(job)
    return lambda job: cycle.copy().answer(job)


@dataclass(slots=True)
class _Cycle:
    snapshot: Snapshot
    now: datetime
    room: Room = field(init=False)
    held: list[Reservation] = field(init=False)
    head: Job | None = None
    head_needs: tuple[ReplicaNeed, ...] = ()
    head_starts: datetime | None = None
    behind: int = 0
    # A long queue has many jobs of one shape: they fit alike, and are refused alike while nothing is taken.
    fits: dict[object, Fitted] = field(default_factory=dict[object, Fitted])
    refused: dict[object, Waiting] = field(default_factory=dict[object, Waiting])

    def __post_init__(self) -> None:
        self.room = Room(self.snapshot.nodes)
        self.held = list(self.snapshot.held)
        for holder in self.held:
            self.room.take(holder.placements)

    def copy(self) -> "_Cycle":
        twin = copy(self)
        twin.room, twin.held, twin.refused = self.room.copy(), list(self.held), dict(self.refused)
        return twin

    def answer(self, job: Job) -> AdmissionResult:
        if self.head is not None:
            self.behind += 1
            if self.behind > MOST_BEHIND:
                return AdmissionResult(job=job, waiting=self._far_behind())
        shape = _shape(job)
        if shape in self.refused:
            return AdmissionResult(job=job, waiting=self.refused[shape])
        fit = self._fitted(job, shape)
        if fit is None:
            return AdmissionResult(job=job, waiting=self._too_large(job))
        wanted, cuts = fit
        if self.head is None:
            placements = self.room.place(wanted)
            if placements is None:
                self.head, self.head_needs = job, wanted
                self.head_starts = self._earliest(wanted, self.room, self.held)
                return AdmissionResult(job=job, waiting=self._no_room(wanted))
        else:
            placements = self._pass(job, wanted)
            if placements is None:
                waiting = self.refused[shape] = self._behind(wanted)
                return AdmissionResult(job=job, waiting=waiting)
        self.refused.clear()
        until = self.now + job.spec.scheduling.timeout
        self.held.append(
            Reservation(job=job.id, display_name=job.display_name, placements=placements, until=until)
        )
        return AdmissionResult(
            job=job, admission=Admission(placements=placements, admitted_at=self.now, cuts=cuts)
        )

    def _fitted(self, job: Job, shape: object) -> Fitted:
        if shape not in self.fits:
            self.fits[shape] = fitted(job.spec, self.snapshot.nodes, self.snapshot.fit)
        return self.fits[shape]

    def _pass(self, job: Job, wanted: tuple[ReplicaNeed, ...]) -> tuple[Placement, ...] | None:
        placements = self.room.place(wanted)
        if placements is None:
            return None
        mine = Reservation(
            job=job.id,
            display_name=job.display_name,
            placements=placements,
            until=self.now + job.spec.scheduling.timeout,
        )
        starts = self._earliest(self.head_needs, self.room, [*self.held, mine])
        if starts is not None and self.head_starts is not None and starts <= self.head_starts:
            return placements
        self.room.give(placements)
        return None

    def _earliest(
        self, wanted: tuple[ReplicaNeed, ...], room: Room, held: list[Reservation]
    ) -> datetime | None:
        """When the wanted fits at the latest, were every holder to use its whole time."""
        later = room.copy()
        for holder in sorted(held, key=lambda h: h.until):
            later.give(holder.placements)
            if later.copy().place(wanted) is not None:
                return max(holder.until, self.now)
        return None

    def _too_large(self, job: Job) -> Waiting:
        asked, there = total(needs(job.spec)), capacity(self.snapshot.nodes)
        if not self.snapshot.nodes:
            return Waiting(
                reason=Reason.NO_NODES,
                message=f"Needs {asked}; no machine is connected.",
                remedy="Connect a machine.",
            )
        return Waiting(
            reason=Reason.TOO_LARGE,
            message=f"Needs {asked}; all machines together have {there}.",
            remedy="Ask for less, add a machine, or start the server with --fit shrink.",
        )

    def _no_room(self, wanted: tuple[ReplicaNeed, ...]) -> Waiting:
        holders = ", ".join(f"{h.job} '{h.display_name}'" for h in self.held[:NAMED])
        more = f" and {len(self.held) - NAMED} more" if len(self.held) > NAMED else ""
        ends = f", by {self.head_starts:%Y-%m-%d %H:%M:%S} UTC at the latest" if self.head_starts else ""
        return Waiting(
            reason=Reason.WAITS_FOR_CAPACITY,
            message=f"Needs {total(wanted)}; free are {self.room.free()} of {capacity(self.snapshot.nodes)}; "
            f"held by {holders}{more}.",
            remedy=f"It starts when enough of these end{ends}; cancel one, or ask for at most what is free.",
        )

    def _behind(self, wanted: tuple[ReplicaNeed, ...]) -> Waiting:
        return Waiting(
            reason=Reason.WAITS_BEHIND_OTHERS,
            message=f"Needs {total(wanted)}; free are {self.room.free()}; {self._head_in_words()}.",
            remedy="It starts after that job, or before it where that delays nobody: ask for less, "
            "or set a shorter scheduling.timeout or a higher scheduling.priority.",
        )

    def _far_behind(self) -> Waiting:
        return Waiting(
            reason=Reason.WAITS_BEHIND_OTHERS,
            message=f"More than {MOST_BEHIND} jobs are before it; {self._head_in_words()}.",
            remedy="It moves up as they start; a higher scheduling.priority puts it before them.",
        )

    def _head_in_words(self) -> str:
        assert self.head is not None
        wanted = total(self.head_needs)
        return f"first in the queue is job {self.head.id} '{self.head.display_name}', which needs {wanted}"
