"""The fleet as a scheduling cycle sees it: the nodes, and what the admitted jobs hold of them. Pure.

The scheduler and the services of the queue and of `why` make a `Snapshot`; `core/queue/admit.py` decides by
it. Where jobs are being stopped for a waiting one, the places it claims are its own: nobody else gets them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from operator import attrgetter

from trainshed.core.jobs.hold import held_until
from trainshed.core.jobs.job import Job, JobState, Outcome
from trainshed.core.queue.fleet import Claim, Fit, Node, Placement
from trainshed.core.queue.place import Room
from trainshed.core.queue.refusal import Named
from trainshed.core.queue.shape import Sites
from trainshed.core.queue.share import ShareTree, Stake

OVERDUE = timedelta(minutes=10)  # after that a job that should have left counts as one that stays


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """The placements of an admitted job, and when they are free again at the latest."""

    job: str
    display_name: str
    project: str = ""
    placements: tuple[Placement, ...]
    until: datetime
    stake: Stake | None = None  # where shares are set
    ending_since: datetime | None = None  # its job is being stopped for good, or preempted
    is_kept: bool = False  # the same, but its replicas are held for a look
    is_restarting: bool = False  # its attempt ends, and the next one has the same places

    @property
    def may_be_stopped(self) -> bool:
        return self.ending_since is None and not self.is_restarting

    def leaves_soon(self, now: datetime) -> bool:
        """Whether its places are free in a moment."""
        is_due = self.ending_since is not None and now < self.until + OVERDUE
        return is_due and not (self.is_kept and now < self.until)

    @property
    def named(self) -> Named:
        return self.job, self.display_name, self.project


@dataclass(frozen=True, slots=True, kw_only=True)
class Earmark:
    """What is kept for a waiting job, for which others are being stopped."""

    reservation: Reservation  # without what they still hold of it
    placements: tuple[Placement, ...]  # all of it
    left: tuple[Reservation, ...]  # of those that are stopped for it: who is still there
    beside: tuple[
        Reservation, ...
    ] = ()  # of others that were leaving when it was claimed: who is still there
    claimed_at: datetime

    @property
    def awaited(self) -> tuple[Reservation, ...]:
        """Those whose places may be what the job still lacks."""
        return *self.left, *self.beside


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    nodes: tuple[Node, ...]
    held: tuple[Reservation, ...]
    fit: Fit = Fit.SHRINK
    sites: Mapping[str, Sites] = field(default_factory=dict[str, Sites])  # of waiting jobs, by id
    tree: ShareTree | None = None  # None: no shares are set
    earmarks: Mapping[str, Earmark] = field(default_factory=dict[str, Earmark])  # of waiting jobs, by id
    left: "RoomLeft | None" = None  # of the nodes, where that is known already

    def room(self) -> Room:
        """What the admitted jobs leave of the nodes. The caller may change it."""
        if self.left is not None and self.left.reservations is self.held and self.left.nodes is self.nodes:
            return self.left.room.copy()
        room = Room(self.nodes)
        for item in self.held:
            room.take(item.placements)
        return room


@dataclass(frozen=True, slots=True)
class RoomLeft:
    """What these reservations leave of these nodes. Not to be changed."""

    nodes: tuple[Node, ...]
    reservations: tuple[Reservation, ...]
    room: Room


def held_by(job: Job, now: datetime, tree: ShareTree | None = None) -> Reservation:
    admission = job.status.admission
    status, scheduling = job.status, job.spec.scheduling
    since, closing = status.started_at or status.admitted_at or now, status.closing
    placements = admission.placements if admission else ()
    is_restarting = closing is not None and closing.outcome is Outcome.RETRY and not status.cancel_asked_at
    ending_since = None if is_restarting else closing.since if closing else status.cancel_asked_at
    kept_until = held_until(job, status)
    until = since + scheduling.timeout
    if ending_since is not None:
        until = kept_until or ending_since + scheduling.grace
    return Reservation(
        job=job.id,
        display_name=job.display_name,
        project=job.project,
        placements=placements,
        until=until,
        stake=None if tree is None else tree.stake(job, placements),
        ending_since=ending_since,
        is_kept=kept_until is not None,
        is_restarting=is_restarting,
    )


class Holdings:
    """What the admitted jobs hold, worked out once for each version of a job. The scheduler keeps one.

    What comes out is what would come out if all were worked out anew: amounts are added up in the same order,
    so not even their last digits differ.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[Job, ShareTree | None, Reservation]] = {}
        self._nodes: tuple[Node, ...] = ()
        self._room = Room(())
        self._counted: dict[str, Reservation] = {}  # what the room is without
        self._on: dict[str, dict[str, Reservation]] = {}  # the same by node and job
        self._given_twice: set[str] = set()  # nodes of which a GPU was given to two replicas

    @property
    def have_own_gpus(self) -> bool:
        """Whether no two replicas were given the same GPU, of those that `room` has counted."""
        return not self._given_twice

    def of(self, jobs: Iterable[Job], now: datetime, tree: ShareTree | None) -> list[Reservation]:
        """As `held_by` of each. Jobs that are not among these are forgotten."""
        before, self._known = self._known, {}
        reservations: list[Reservation] = []
        for job in jobs:
            known = before.get(job.id)
            if known is None or known[0] is not job or known[1] is not tree:
                known = job, tree, held_by(job, now, tree)
            if job.status.started_at or job.status.admitted_at:  # else it depends on the time
                self._known[job.id] = known
            reservations.append(known[2])
        return reservations

    def room(self, nodes: tuple[Node, ...], reservations: Sequence[Reservation]) -> Room:
        """What these leave of the nodes. Only nodes on which something has changed are counted again."""
        if nodes != self._nodes:
            self._nodes, self._room = nodes, Room(nodes)
            self._counted, self._on, self._given_twice = {}, {}, set()
        before, self._counted = self._counted, {item.job: item for item in reservations}
        changed = {place.node for place in self._changes(before)}
        if changed:
            positions = {item.job: at for at, item in enumerate(reservations)}
            free = Room([node for node in nodes if node.name in changed])
            for node in free.nodes:
                for job in sorted(self._on.get(node, ()), key=positions.__getitem__):
                    free.take(place for place in self._counted[job].placements if place.node == node)
            self._room.replace(free)
            self._given_twice = {*(self._given_twice - changed), *filter(self._gives_twice, changed)}
        return self._room

    def _gives_twice(self, node: str) -> bool:
        places = [place for item in self._on.get(node, {}).values() for place in item.placements]
        gpus = [gpu for place in places if place.node == node for gpu in place.gpus]
        return len(set(gpus)) < len(gpus)

    def _changes(self, before: Mapping[str, Reservation]) -> Iterable[Placement]:
        """What is held no more, and what is held newly."""
        for job, item in before.items():
            if self._counted.get(job) is not item:
                for place in item.placements:
                    self._on[place.node].pop(job, None)
                    yield place
        for job, item in self._counted.items():
            if before.get(job) is not item:
                for place in item.placements:
                    self._on.setdefault(place.node, {})[job] = item
                    yield place


def is_waiting(job: Job) -> bool:
    """Whether the job is in the queue: a cycle looks at these jobs only."""
    return job.status.state is JobState.QUEUED and job.status.admission is None


def snapshot_of(
    active: Iterable[Job],
    nodes: tuple[Node, ...],
    fit: Fit,
    now: datetime,
    sites: Mapping[str, Sites] | None = None,
    tree: ShareTree | None = None,
    holdings: Holdings | None = None,
) -> Snapshot:
    """The nodes, what the admitted jobs hold of them, and what is kept for those that claim some."""
    jobs = list(active)
    admitted = [job for job in jobs if job.status.admission is not None]
    # The same jobs are named in the same order, whichever the caller has them in.
    admitted.sort(key=attrgetter("created_at", "id"))
    holdings = holdings or Holdings()
    reservations = holdings.of(admitted, now, tree)
    room = holdings.room(nodes, reservations)
    if not holdings.have_own_gpus:
        reservations = with_own_gpus(reservations, nodes)
        room = holdings.room(nodes, reservations)
    claims = {job.id: job.status.claim for job in jobs if job.status.claim and is_waiting(job)}
    attempts = {(job.id, job.status.attempt) for job in admitted} if claims else set[tuple[str, int]]()
    earmarks = {
        job.id: _earmark(job, claims, reservations, attempts, now, tree) for job in jobs if job.id in claims
    }
    reserved = tuple(reservations)
    return Snapshot(
        nodes=nodes,
        held=reserved,
        fit=fit,
        sites=sites or {},
        tree=tree,
        earmarks=earmarks,
        left=RoomLeft(nodes, reserved, room.copy()),
    )


def _earmark(
    job: Job,
    claims: Mapping[str, Claim],
    reservations: Sequence[Reservation],
    attempts: Collection[tuple[str, int]],
    now: datetime,
    tree: ShareTree | None,
) -> Earmark:
    claim = claims[job.id]
    victims = {victim[0] for victim in claim.victims if victim in attempts}
    earlier = (other for other in claims.values() if other.claimed_at <= claim.claimed_at)
    stopped = {victim[0] for other in earlier for victim in other.victims if victim in attempts}
    left = tuple(item for item in reservations if item.job in victims)
    beside = tuple(
        item
        for item in reservations
        if item.job not in victims
        and (item.job in stopped or (item.ending_since is not None and item.ending_since <= claim.claimed_at))
        and (item.ending_since is None or item.leaves_soon(now))
    )
    own = Reservation(
        job=job.id,
        display_name=job.display_name,
        project=job.project,
        placements=_without(
            claim.placements,
            [place for item in left for place in item.placements],
            {(place.node, gpu) for item in beside for place in item.placements for gpu in place.gpus},
        ),
        until=now + job.spec.scheduling.timeout,
        stake=None if tree is None else tree.stake(job, claim.placements),
    )
    return Earmark(
        reservation=own, placements=claim.placements, left=left, beside=beside, claimed_at=claim.claimed_at
    )


def _without(
    places: Sequence[Placement], others: Sequence[Placement], taken: Collection[tuple[str, str]]
) -> tuple[Placement, ...]:
    """These places less what others hold on the same nodes, and these GPUs: nothing is taken twice."""
    cpus: dict[str, float] = {}
    memory: dict[str, int] = {}
    gpus = {*taken, *((other.node, gpu) for other in others for gpu in other.gpus)}
    for other in others:
        cpus[other.node] = cpus.get(other.node, 0) + other.cpus
        memory[other.node] = memory.get(other.node, 0) + other.memory
    remaining: list[Placement] = []
    for place in places:
        node = place.node
        less_cpus, less_memory = min(place.cpus, cpus.get(node, 0)), min(place.memory, memory.get(node, 0))
        cpus[node], memory[node] = cpus.get(node, 0) - less_cpus, memory.get(node, 0) - less_memory
        free = tuple(gpu for gpu in place.gpus if (node, gpu) not in gpus)
        remaining.append(
            replace(place, cpus=place.cpus - less_cpus, memory=place.memory - less_memory, gpus=free)
        )
    return tuple(remaining)


def with_own_gpus(reservations: Iterable[Reservation], nodes: Iterable[Node]) -> list[Reservation]:
    """Where a replica was moved, the GPUs it was given may be another's on its node: there it has others."""
    claimed = {(place.node, gpu) for item in reservations for place in item.placements for gpu in place.gpus}
    free = {node.name: [gpu for gpu in node.gpus if (node.name, gpu) not in claimed] for node in nodes}
    used: set[tuple[str, str]] = set()

    def own(place: Placement) -> Placement:
        gpus: list[str] = []
        for gpu in place.gpus:
            is_anothers = (place.node, gpu) in used and bool(free.get(place.node))
            gpus.append(free[place.node].pop(0) if is_anothers else gpu)
            used.add((place.node, gpus[-1]))
        return replace(place, gpus=tuple(gpus))

    owned = [(item, tuple(own(place) for place in item.placements)) for item in reservations]
    return [item if item.placements == its else replace(item, placements=its) for item, its in owned]
