"""The fleet as a scheduling cycle sees it: the nodes, and what the admitted jobs hold of them. Pure.

The scheduler and the services of the queue and of `why` make a `Snapshot`; `core/admit.py` decides by it.
Where jobs are being stopped for a waiting one, the places it claims are its own: nobody else gets them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from trainshed.core.fleet import Fit, Node, Placement
from trainshed.core.job import Job, JobState, Outcome
from trainshed.core.refusal import Named
from trainshed.core.shape import Sites
from trainshed.core.share import ShareTree, Stake


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """The placements of an admitted job, and when they are free again at the latest."""

    job: str
    display_name: str
    project: str = ""
    placements: tuple[Placement, ...]
    until: datetime
    stake: Stake | None = None  # where shares are set
    is_ending: bool = False  # its job is being stopped for good, or preempted

    @property
    def named(self) -> Named:
        return self.job, self.display_name, self.project


@dataclass(frozen=True, slots=True, kw_only=True)
class Earmark:
    """What is kept for a waiting job, for which others are being stopped."""

    reservation: Reservation  # without what they still hold of it
    placements: tuple[Placement, ...]  # all of it
    left: tuple[Reservation, ...]  # of those that are still there


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    nodes: tuple[Node, ...]
    held: tuple[Reservation, ...]
    fit: Fit = Fit.SHRINK
    sites: Mapping[str, Sites] = field(default_factory=dict[str, Sites])  # of waiting jobs, by id
    tree: ShareTree | None = None  # None: no shares are set
    earmarks: Mapping[str, Earmark] = field(default_factory=dict[str, Earmark])  # of waiting jobs, by id


def held_by(job: Job, now: datetime, tree: ShareTree | None = None) -> Reservation:
    admission = job.status.admission
    status, scheduling = job.status, job.spec.scheduling
    since, closing = status.started_at or status.admitted_at or now, status.closing
    placements = admission.placements if admission else ()
    is_preempted = closing is not None and closing.outcome is Outcome.PREEMPTED
    return Reservation(
        job=job.id,
        display_name=job.display_name,
        project=job.project,
        placements=placements,
        until=closing.since + scheduling.grace if is_preempted and closing else since + scheduling.timeout,
        stake=None if tree is None else tree.stake(job, placements),
        is_ending=status.cancel_asked_at is not None
        or (closing is not None and closing.outcome is not Outcome.RETRY),
    )


class Holdings:
    """What each admitted job holds, worked out once for each version of the job. The scheduler keeps one."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Job, ShareTree | None, Reservation]] = {}

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
    admitted.sort(key=lambda job: (job.created_at, job.id))
    reservations = with_own_gpus((holdings or Holdings()).of(admitted, now, tree), nodes)
    attempts = {(job.id, job.status.attempt) for job in admitted}
    earmarks = {
        job.id: _earmark(job, reservations, attempts, now, tree)
        for job in jobs
        if job.status.claim and is_waiting(job)
    }
    return Snapshot(
        nodes=nodes, held=tuple(reservations), fit=fit, sites=sites or {}, tree=tree, earmarks=earmarks
    )


def _earmark(
    job: Job,
    reservations: Sequence[Reservation],
    attempts: Collection[tuple[str, int]],
    now: datetime,
    tree: ShareTree | None,
) -> Earmark:
    claim = job.status.claim
    assert claim is not None
    victims = {victim[0] for victim in claim.victims if victim in attempts}
    left = tuple(item for item in reservations if item.job in victims)
    own = Reservation(
        job=job.id,
        display_name=job.display_name,
        project=job.project,
        placements=_without(claim.placements, [place for item in left for place in item.placements]),
        until=now + job.spec.scheduling.timeout,
        stake=None if tree is None else tree.stake(job, claim.placements),
    )
    return Earmark(reservation=own, placements=claim.placements, left=left)


def _without(places: Sequence[Placement], others: Sequence[Placement]) -> tuple[Placement, ...]:
    """These places less what others hold on the same nodes: what both have is not taken twice."""
    cpus: dict[str, float] = {}
    memory: dict[str, int] = {}
    gpus = {(other.node, gpu) for other in others for gpu in other.gpus}
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


def with_own_gpus(reservations: Sequence[Reservation], nodes: Iterable[Node]) -> Sequence[Reservation]:
    """Where a replica was moved, the GPUs it was given may be another's on its node: there it has others."""
    claims = [(place.node, gpu) for item in reservations for place in item.placements for gpu in place.gpus]
    if len(claims) == len(claimed := set(claims)):
        return reservations
    free = {node.name: [gpu for gpu in node.gpus if (node.name, gpu) not in claimed] for node in nodes}
    used: set[tuple[str, str]] = set()

    def own(place: Placement) -> Placement:
        gpus: list[str] = []
        for gpu in place.gpus:
            is_anothers = (place.node, gpu) in used and bool(free.get(place.node))
            gpus.append(free[place.node].pop(0) if is_anothers else gpu)
            used.add((place.node, gpus[-1]))
        return replace(place, gpus=tuple(gpus))

    return [replace(item, placements=tuple(own(place) for place in item.placements)) for item in reservations]
