"""admit: one scheduling cycle. All replicas of a job or none, by priority and then age. Pure.

`control/scheduler.py` runs a `Cycle`; `core/explain/why.py` calls `admit`. The first job that does not fit is
the head. A smaller job behind it may pass only if that does not delay the head: even if every running job
uses its whole timeout, the head can start as early as without the smaller one. Each refusal has a typed
reason.

Where there are several sites a job is placed at one of those that it may use, the best first, and each set of
sites has a head of its own: who waits for one machine holds up nobody who cannot use it.

Jobs of one *shape* (the same demand, timeout and sites) get the same answer: once one is refused, the others
of its shape are refused for the rest of the cycle. So the cost of a cycle depends on the number of shapes,
and behind the head it tries at most MOST_BEHIND of them. `admit` answers every job; the scheduler asks a
`Cycle` only about jobs whose shape is not refused yet. Both make the same decisions.

Where shares are set, a job needs room in its share too (`core/queue/share_cycle.py`), and a job with a right
to its share is held up by no head that has none.
"""

from bisect import insort
from collections.abc import Container, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import datetime
from operator import attrgetter

from trainshed.core.event import Reason, Waiting
from trainshed.core.jobs.job import Job
from trainshed.core.queue.demands import Demands
from trainshed.core.queue.fleet import Admission, Placement
from trainshed.core.queue.growing_room import GrowingRoom
from trainshed.core.queue.guarantee import PlacedStake, guarantees
from trainshed.core.queue.place import Room, Way, capacity, eligible, needs, placed, total
from trainshed.core.queue.refusal import Refusal, in_words
from trainshed.core.queue.shape import Kind, Shape, Sites, order, shape_of
from trainshed.core.queue.share import Stake
from trainshed.core.queue.share_cycle import ShareCycle, ShareTurns
from trainshed.core.queue.share_use import ShareUse, capacities
from trainshed.core.queue.snapshot import Reservation, Snapshot
from trainshed.core.queue.waiting_jobs import WaitingJobs

MOST_BEHIND = 200  # how many shapes behind the head are refused before a cycle ends: bounds its cost
NAMED = 3  # how many jobs a refusal names


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


def admit(snapshot: Snapshot, waiting: Sequence[Job], now: datetime) -> tuple[AdmissionResult, ...]:
    """The answer to every waiting job, in the order of the queue."""
    queue = WaitingJobs(waiting, snapshot.sites, snapshot.tree)
    cycle = Cycle(snapshot, now, queue)
    return tuple([cycle.answer(job) for job in cycle.walk(queue, ())])


def in_turn(snapshot: Snapshot, waiting: Sequence[Job], now: datetime) -> list[Job]:
    """The waiting jobs in the order in which a cycle would try them now."""
    if snapshot.tree is None:
        return sorted(waiting, key=order)
    queue = WaitingJobs(waiting, snapshot.sites, snapshot.tree)
    return list(queue.in_order((), Cycle(snapshot, now, queue).turn))


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The first job that does not fit, of those that may be placed at the same sites."""

    job: Job
    ways: tuple[Way, ...]
    starts: datetime | None  # at the latest
    refusal: Refusal
    stake: Stake | None = None  # where shares are set


@dataclass(slots=True)
class Cycle:
    """One cycle in progress. Call `answer` for the jobs in the order of the queue; admissions take room."""

    snapshot: Snapshot
    now: datetime
    # All that wait, for their rights where shares are set.
    queue: WaitingJobs = field(default_factory=WaitingJobs)
    room: Room = field(init=False)
    held: list[Reservation] = field(init=False)
    ends: list[Reservation] | None = None  # the same, by their end; None: not in order yet
    heads: dict[Sites, Head] = field(default_factory=dict[Sites, Head])
    refused: dict[Shape, Refusal] = field(default_factory=dict[Shape, Refusal])
    behind: int = 0  # how many of these shapes were tried behind the head
    # Demands for which there is no room, whatever the timeout.
    full: dict[Kind, Refusal] = field(default_factory=dict[Kind, Refusal])
    far: Refusal | None = None  # the refusal of all jobs that are not tried
    demands: Demands = field(init=False)
    shares: ShareCycle | None = None  # where shares are set
    single: dict[str, Refusal] = field(default_factory=dict[str, Refusal])  # of jobs, whatever their shape
    first_refused: list[Job] = field(default_factory=list[Job])  # of each shape, where shares are set

    def __post_init__(self) -> None:
        self.demands = self.queue.demands(self.snapshot.nodes, self.snapshot.fit, self.snapshot.tree)
        self.room = self.snapshot.room()
        marked = [mark.reservation for mark in self.snapshot.earmarks.values()]
        self.held = [*self.snapshot.held, *marked]
        for reservation in marked:
            self.room.take(reservation.placements)
        if (tree := self.snapshot.tree) is not None:
            running = [item.stake for item in self.snapshot.held if item.stake is not None]
            rights = guarantees(tree, running, self._stakes_of)
            use = ShareUse(tree, capacities(self.snapshot.nodes))
            use.take_all(item.stake for item in self.held if item.stake is not None)
            self.shares = ShareCycle(use, rights, self.now)

    def copy(self) -> "Cycle":
        twin = copy(self)
        twin.room, twin.held, twin.ends = self.room.copy(), list(self.held), None
        twin.shares = self.shares.copy() if self.shares is not None else None
        twin.refused, twin.full, twin.heads = dict(self.refused), dict(self.full), dict(self.heads)
        twin.single, twin.first_refused = dict(self.single), list(self.first_refused)
        return twin

    @property
    def head(self) -> Job | None:
        """The first job of all that does not fit."""
        return next((head.job for head in self.heads.values()), None)

    @property
    def is_over(self) -> bool:
        """Whether so many shapes were refused that no more are tried."""
        return self.behind >= MOST_BEHIND

    @property
    def turn(self) -> ShareTurns | None:
        """By what the next job is chosen among the shares; None where none are set."""
        return None if self.shares is None else ShareTurns(self.shares, self.stake_of)

    def walk(self, queue: WaitingJobs, closed: Container[Shape] | None = None) -> Iterator[Job]:
        """The waiting jobs in their turn, of a refused shape no more: `answer` each before the next.

        First come those that others are stopped for. What is kept for one is its own, so it does not matter
        to it whether another of its shape was refused.
        """
        earmarks = self.snapshot.earmarks
        claimants = [job for id in earmarks if (job := queue.get(id)) is not None]
        yield from sorted(claimants, key=self.turn or order)
        for job in queue.in_order(self.refused if closed is None else closed, self.turn):
            if job.id not in earmarks:
                yield job

    def answer(self, job: Job) -> AdmissionResult:
        if (result := self._answer_claimant(job)) is not None:
            return result
        if self.shares and (until := self.shares.pauses_until(self.stake_of(job), job.status.requeue)):
            refusal = self.single[job.id] = Refusal(reason=Reason.PAUSES, starts_by=until)
            return AdmissionResult(job=job, refusal=refusal)
        shape = self._shape(job)
        was_refused = shape in self.refused
        result = self._answer(job, shape)
        if self.shares is not None and result.admission is None and not was_refused:
            self.first_refused.append(job)
        return result

    def _answer_claimant(self, job: Job) -> AdmissionResult | None:
        """The answer to a job that others are being stopped for; None for any other job."""
        mark = self.snapshot.earmarks.get(job.id)
        if mark is None or mark.reservation not in self.held:
            return None
        mine = mark.reservation
        self.held.remove(mine)
        self.ends = None
        self.room.give(mine.placements)
        if self.shares is not None and mine.stake is not None:
            self.shares.give(mine.stake)
        shape = self._shape(job)
        ways = self.demands.ways(job, (shape[0], shape[2]))
        stake = None if self.shares is None else self.stake_of(job)
        may_have = self.shares is None or stake is None or self.shares.use.shortage(stake) is None
        way, placements = placed(ways, self.room) if ways and may_have else (Way(()), None)
        if placements is not None:
            return self._admitted(job, self._reservation(job, placements, stake), way)
        if not mark.awaited:  # nothing more comes free for it: it loses its claim, and waits as any other
            refusal = self._no_room(ways, None) if ways else self._too_large(job, shape[2])
            self.single[job.id] = refusal
            return AdmissionResult(job=job, refusal=refusal)
        self._hold(mine)
        self.room.take(mine.placements)
        if self.shares is not None and mine.stake is not None:
            self.shares.take(mine.stake)
        stopping = tuple(item.named for item in mark.awaited)
        refusal = Refusal(
            reason=Reason.WAITS_FOR_PREEMPTED,
            holders=stopping[:NAMED],
            more_holders=max(0, len(stopping) - NAMED),
            starts_by=max(item.until for item in mark.awaited),
        )
        self.single[job.id] = refusal
        return AdmissionResult(job=job, refusal=refusal)

    def _answer(self, job: Job, shape: Shape) -> AdmissionResult:
        if shape in self.refused:
            return AdmissionResult(job=job, refusal=self.refused[shape])
        kind = shape[0], shape[2]
        ways = self.demands.ways(job, kind)
        if not ways:
            refusal = self.refused[shape] = self._too_large(job, shape[2])
            return AdmissionResult(job=job, refusal=refusal)
        if self.is_over:
            return AdmissionResult(job=job, refusal=self._far_behind())
        stake = None if self.shares is None else self.stake_of(job)
        if stake is not None and (refusal := self._over_share(job, stake)) is not None:
            self.refused[shape] = refusal
            return AdmissionResult(job=job, refusal=refusal)
        way, placements = (ways[0], None) if kind in self.full else placed(ways, self.room)
        if placements is not None:
            mine = self._reservation(job, placements, stake)
            if not self._delays_heads(mine):
                return self._admitted(job, mine, way)
            self.room.give(placements)
        elif shape[2] not in self.heads:
            starts = self._earliest(ways)
            refusal = self._no_room(ways, starts)
            head = Head(job=job, ways=ways, starts=starts, refusal=refusal, stake=stake)
            self.heads[shape[2]] = head
            self.refused[shape] = self.full[kind] = self._behind(ways, head)  # for others of its shape
            return AdmissionResult(job=job, refusal=head.refusal)
        self.behind += 1
        refusal = self.refused[shape] = self.full.get(kind) or self._behind(ways, self._head(shape[2]))
        if placements is None:
            self.full[kind] = refusal
        return AdmissionResult(job=job, refusal=refusal)

    def _reservation(self, job: Job, placements: tuple[Placement, ...], stake: Stake | None) -> Reservation:
        return Reservation(
            job=job.id,
            display_name=job.display_name,
            project=job.project,
            placements=placements,
            until=self.now + job.spec.scheduling.timeout,
            stake=stake,
        )

    def _admitted(self, job: Job, mine: Reservation, way: Way) -> AdmissionResult:
        self._hold(mine)
        if self.shares is not None and mine.stake is not None:
            self.shares.take(mine.stake)
        admission = Admission(placements=mine.placements, admitted_at=self.now, cuts=way.cuts)
        return AdmissionResult(job=job, admission=admission)

    def _hold(self, item: Reservation) -> None:
        self.held.append(item)
        if self.ends is not None:
            insort(self.ends, item, key=_until)

    def _over_share(self, job: Job, stake: Stake) -> Refusal | None:
        """Why the job's share does not let it start now; None where it does."""
        assert self.shares is not None
        named, ends = (job.id, job.display_name, job.project), self._by_end()
        if (short := self.shares.shortage(stake, named, ends)) is not None:
            return Refusal(reason=Reason.WAITS_FOR_SHARE, shortage=short[0], starts_by=short[1])
        head = self.shares.delayed_head(stake, self.now + job.spec.scheduling.timeout, ends)
        if head is None:
            return None
        return Refusal(
            reason=Reason.WAITS_FOR_SHARE,
            shortage=head.shortage,
            head=head.named,
            starts_by=head.starts,
        )

    def refusal_of(self, job: Job) -> Refusal | None:
        """Why the job was not admitted, after the cycle; None for a job that the cycle has no refusal for."""
        if job.id in self.single:
            return self.single[job.id]
        shape = self._shape(job)
        if (head := self.heads.get(shape[2])) is not None and job.id == head.job.id:
            return head.refusal
        if shape in self.refused:
            return self.refused[shape]
        if not self.demands.ways(job, (shape[0], shape[2])):
            return self._too_large(job, shape[2])
        return self._far_behind() if self.is_over else None

    def _shape(self, job: Job) -> Shape:
        return self.queue.shape(job) or shape_of(job, self.snapshot.sites.get(job.id, ()), self.snapshot.tree)

    def stake_of(self, job: Job) -> Stake:
        """What a waiting job will count for in its share."""
        shape = self.queue.shape(job)
        # A job that is asked about with other settings has the same id: it is not remembered.
        return self.demands.stake(job, shape) if shape else self.demands.new_stake(job, self._shape(job))

    def ways_of(self, job: Job) -> tuple[Way, ...]:
        shape = self._shape(job)
        return self.demands.ways(job, (shape[0], shape[2]))

    def _stakes_of(self, share: str, closed: set[Shape]) -> Iterator[PlacedStake]:
        """The waiting jobs of a share that can be placed, in order."""
        for place, job, shape in self.queue.places_of((share, False), closed):
            if (stake := self.demands.placeable(job, shape)) is not None:
                yield place, stake, shape
            else:
                closed.add(shape)

    def _delays_heads(self, mine: Reservation) -> bool:
        """Whether a head could start later with this reservation than without it."""
        used = {place.node for place in mine.placements}
        for head in self.heads.values():
            nodes = _nodes(head.ways)
            if nodes is not None and nodes.isdisjoint(used):
                continue
            if self._goes_before(mine.stake, head.stake):
                continue
            starts = self._earliest(head.ways, mine)
            if starts is None or head.starts is None or starts > head.starts:
                return True
        return False

    def _goes_before(self, stake: Stake | None, other: Stake | None) -> bool:
        if self.shares is None or stake is None or other is None:
            return False
        return self.shares.goes_before(stake, other)

    def _head(self, sites: Sites) -> Head:
        """The head of these sites, else the first of all."""
        return self.heads.get(sites) or next(iter(self.heads.values()))

    def _earliest(self, ways: tuple[Way, ...], mine: Reservation | None = None) -> datetime | None:
        """When there is room for one of these ways at the latest, if every job uses its whole timeout.

        With a reservation, also if that is held too.
        """
        ends, later = list(self._by_end()), GrowingRoom(ways, self.room.copy())
        if mine is not None:
            insort(ends, mine, key=_until)
        for reservation in ends:
            later.give(reservation.placements)
            if later.has_room():
                return max(reservation.until, self.now)
        return None

    def _by_end(self) -> list[Reservation]:
        """What is held, by its end. Do not change it."""
        if self.ends is None:
            self.ends = sorted(self.held, key=_until)
        return self.ends

    def _too_large(self, job: Job, sites: Sites) -> Refusal:
        nodes = eligible(self.snapshot.nodes, sites)
        reason = Reason.TOO_LARGE if nodes else Reason.NO_NODES
        wanted = total(needs(job.spec, nodes))
        return Refusal(reason=reason, needs=wanted, there=capacity(nodes, wanted.kind))

    def _no_room(self, ways: tuple[Way, ...], starts: datetime | None) -> Refusal:
        within, wanted = _nodes(ways), total(ways[0].wanted)
        nodes = [node for node in self.snapshot.nodes if within is None or node.name in within]
        return Refusal(
            reason=Reason.WAITS_FOR_CAPACITY,
            needs=wanted,
            free=self.room.free(within, wanted.kind),
            there=capacity(nodes, wanted.kind),
            holders=tuple(h.named for h in self.held[:NAMED]),
            more_holders=max(0, len(self.held) - NAMED),
            starts_by=starts,
        )

    def _far_behind(self) -> Refusal:
        """One refusal for all jobs that are not tried."""
        if self.far is None:
            self.far = replace(self._behind((Way(()),), self._head(())), kinds_before=MOST_BEHIND)
        return self.far

    def _behind(self, ways: tuple[Way, ...], head: Head) -> Refusal:
        wanted = total(ways[0].wanted)
        return Refusal(
            reason=Reason.WAITS_BEHIND_OTHERS,
            needs=wanted,
            free=self.room.free(_nodes(ways), wanted.kind),
            head=(head.job.id, head.job.display_name, head.job.project),
            head_needs=total(head.ways[0].wanted),
        )


_until = attrgetter("until")  # of a Reservation


def _nodes(ways: tuple[Way, ...]) -> frozenset[str] | None:
    """All nodes on which one of these ways may place a job; None: all there are."""
    names = [way.nodes for way in ways if way.nodes is not None]
    return frozenset[str]().union(*names) if names else None
