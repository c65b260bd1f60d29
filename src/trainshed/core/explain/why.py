"""explain: why a job is in its state. Pure and total: an answer for any world and any job.

`service/why.py` calls it. The reason is the scheduler's own, from `admit`. Below it are the numbers: what the
job needs, what is free, which jobs hold the rest and until when, and which are before it. Nothing is decided
here.
"""

from collections.abc import Sequence
from dataclasses import replace

from trainshed.core.event import Reason
from trainshed.core.explain.change import changes
from trainshed.core.explain.explanation import Explanation, Fact, Ground, World, clock, lasting, more
from trainshed.core.explain.foresee import foresee
from trainshed.core.explain.history import MIDDLE, quantile
from trainshed.core.explain.standing import standing
from trainshed.core.jobs.job import Job, JobState, waits_since
from trainshed.core.jobs.limits import without_gpus
from trainshed.core.queue.admit import AdmissionResult, admit
from trainshed.core.queue.fleet import Node
from trainshed.core.queue.place import Amount, ReplicaNeed, Room, Way, capacity, eligible, needs, total, ways
from trainshed.core.queue.refusal import UNPLACEABLE, in_words
from trainshed.core.queue.shape import order

MOST_LISTED = 8  # facts of a kind; the rest is counted


def explain(world: World, job: Job) -> Explanation:
    if job.status.state is not JobState.QUEUED or job.status.admission is not None:
        return Explanation(state=job.status.state, ground=standing(job, world.now))
    if not world.readiness.is_ready:
        return Explanation(state=job.status.state, ground=_prepares(world, job))
    world = replace(world, waiting=tuple({j.id: j for j in (*world.waiting, job)}.values()))
    verdicts = admit(world.snapshot, world.waiting, world.now)
    at = next(n for n, v in enumerate(verdicts) if v.job.id == job.id)
    starts_now = verdicts[at].admission is not None
    return Explanation(
        state=job.status.state,
        ground=_waits(world, verdicts, at),
        starts_now=starts_now,
        position=at + 1,
        queue=len(verdicts),
        changes=() if starts_now else changes(world, job),
        eta=foresee(world, job),
    )


def _prepares(world: World, job: Job) -> Ground:
    """The job is not in the queue yet: something it needs is being prepared."""
    readiness = world.readiness
    notes = tuple(Ground(reason=Reason.SUBSTITUTED, message=note) for note in readiness.notes)
    return Ground(
        reason=Reason.PREPARING,
        message=readiness.message,
        remedy=readiness.remedy,
        grounds=(*notes, _needs(world, job), *_deadline(job)),
    )


def _waits(world: World, verdicts: Sequence[AdmissionResult], at: int) -> Ground:
    verdict = verdicts[at]
    ahead = [v for v in verdicts[:at] if v.admission is None and not _too_large(v)]
    room = Room(world.snapshot.nodes)
    for item in world.snapshot.held:
        room.take(item.placements)
    for earlier in verdicts[:at]:
        room.take(earlier.admission.placements if earlier.admission else ())
    numbers = (_needs(world, verdict.job), _free(_nodes(world, verdict.job), room))
    deadline = (*_requeued(verdict.job), *_deadline(verdict.job))
    refusal = verdict.refusal
    waiting = None if refusal is None else in_words(refusal, lambda named: named[0] in world.hidden)
    if waiting is None:
        return Ground(
            reason=Reason.WAITS_FOR_ADMISSION,
            message="There is room for it: it starts with the scheduler's next look.",
            remedy="Nothing to do.",
            grounds=(*numbers, *_requeued(verdict.job)),
        )
    reason, message, remedy = waiting.reason, waiting.message, waiting.remedy
    match reason:
        case Reason.WAITS_BEHIND_OTHERS:
            grounds = (*numbers, *_delays(verdict.job, world, room, ahead), *_before(world, ahead))
        case Reason.TOO_LARGE | Reason.NO_NODES:
            grounds = (_needs(world, verdict.job), _all(_nodes(world, verdict.job)))
        case _:
            grounds = (*numbers, *_holders(world))
    return Ground(reason=reason, message=message, remedy=remedy, grounds=(*grounds, *deadline))


def _too_large(verdict: AdmissionResult) -> bool:
    return verdict.refusal is not None and verdict.refusal.reason in UNPLACEABLE


def _wanted(world: World, job: Job) -> tuple[tuple[ReplicaNeed, ...], tuple[str, ...]]:
    """What the job would get at most, and what is cut from its request."""
    way = _way(world, job)
    return (needs(job.spec, _nodes(world, job)), ()) if way is None else (way.wanted, way.cuts)


def _way(world: World, job: Job) -> Way | None:
    """The best way to place the job on empty machines; None where it fits nowhere."""
    snapshot = world.snapshot
    return next(iter(ways(job.spec, snapshot.nodes, snapshot.fit, snapshot.sites.get(job.id, ()))), None)


def _nodes(world: World, job: Job) -> tuple[Node, ...]:
    """On which the job may be placed."""
    return eligible(world.snapshot.nodes, world.snapshot.sites.get(job.id, ()))


def _needs(world: World, job: Job) -> Ground:
    wanted, cuts = _wanted(world, job)
    pools = [
        Ground(
            reason=Fact.NEEDS,
            message=f"Pool {number}: {_replicas(pool.replicas)} of {pool.machine_type or 'no machine type'}, "
            f"{total(n for n in wanted if n.pool == number)}.",
        )
        for number, pool in enumerate(job.spec.pools)
        if not pool.is_empty
    ]
    cut = f" It is larger than the machines here and gets all there is ({'; '.join(cuts)})." if cuts else ""
    placements = Room(_nodes(world, job)).place(wanted) if cuts else None
    if placements and (lacks := without_gpus(job.spec, placements)):
        pools.insert(0, Ground(reason=Reason.NO_GPUS, message=f"WARNING: {lacks}"))
    count = sum(p.replicas for p in job.spec.pools)
    message = f"Needs {total(wanted)} for {_replicas(count)}, all at once.{cut}"
    return Ground(
        reason=Fact.NEEDS, message=message, grounds=tuple(pools[:MOST_LISTED]) if len(pools) > 1 else ()
    )


def _free(nodes: tuple[Node, ...], room: Room) -> Ground:
    each = [
        Ground(
            reason=Fact.FREE,
            message=f"{node.name}: {room.free_on(node.name)} of {capacity((node,), node.accelerator)}.",
        )
        for node in nodes
    ]
    message = f"Free are {room.free(frozenset(node.name for node in nodes))} of {capacity(nodes)}."
    return Ground(reason=Fact.FREE, message=message, grounds=_first(each) if len(each) > 1 else ())


def _all(nodes: tuple[Node, ...]) -> Ground:
    each = [
        Ground(reason=Fact.FREE, message=f"{node.name}: {capacity((node,), node.accelerator)}.")
        for node in nodes
    ]
    message = f"All machines together have {capacity(nodes)}." if nodes else "No machine is connected."
    return Ground(reason=Fact.FREE, message=message, grounds=_first(each) if len(each) > 1 else ())


def _holders(world: World) -> tuple[Ground, ...]:
    running = {job.id: job for job in world.running}
    grounds: list[Ground] = []
    for item in world.snapshot.held:
        amount = Amount(
            sum(p.cpus for p in item.placements),
            sum(p.memory for p in item.placements),
            sum(len(p.gpus) for p in item.placements),
        )
        usual = _usual(world, running.get(item.job))
        grounds.append(
            Ground(
                reason=Fact.HOLDS,
                message=f"{world.called(item.job, item.display_name)} holds {amount}, "
                f"until {clock(item.until)} at the latest{usual}.",
                job=world.shown(item.job),
                at=item.until,
            )
        )
    return _first(grounds)


def _usual(world: World, job: Job | None) -> str:
    lengths = world.history.of(job) if job else ()
    if not lengths:
        return ""
    many = f"the middle of {len(lengths)} earlier runs" if len(lengths) > 1 else "the one earlier run"
    return f"; {many} took {lasting(quantile(lengths, MIDDLE))}"


def _before(world: World, ahead: Sequence[AdmissionResult]) -> tuple[Ground, ...]:
    """The jobs before it in the queue; below the first, the jobs that hold what it waits for."""
    grounds: list[Ground] = []
    for number, verdict in enumerate(ahead[:MOST_LISTED]):
        job = verdict.job
        wanted, _ = _wanted(world, job)
        priority = f", priority {job.spec.scheduling.priority}" if job.spec.scheduling.priority else ""
        grounds.append(
            Ground(
                reason=Fact.BEFORE,
                message=f"{world.called(job.id, job.display_name)} is before it{priority}: "
                f"needs {total(wanted)}.",
                job=world.shown(job.id),
                grounds=_holders(world) if number == 0 else (),
            )
        )
    return (*grounds, *more(len(ahead), MOST_LISTED))


def _delays(job: Job, world: World, room: Room, ahead: Sequence[AdmissionResult]) -> tuple[Ground, ...]:
    """For a job that would fit but might delay the first in the queue."""
    way = _way(world, job)
    if way is None or not ahead or room.copy().place(way.wanted, way.nodes) is None:
        return ()
    first = min((v.job for v in ahead), key=order)
    other = world.called(first.id, first.display_name)
    message = (
        f"It fits into what is free, but with its timeout of {lasting(job.spec.scheduling.timeout)} "
        f"it could make {other[:1].lower()}{other[1:]} wait longer."
    )
    return (Ground(reason=Fact.WOULD_DELAY, message=message, job=world.shown(first.id)),)


def _requeued(job: Job) -> tuple[Ground, ...]:
    """By whom it was preempted, and for whom others are."""
    status = job.status
    grounds: list[Ground] = []
    if status.claim is not None:
        grounds.append(Ground(reason=Reason.PREEMPTS, message=status.claim.rule))
    if status.requeue is not None:
        message = f"{status.requeue.message} That was at {clock(status.requeue.at)}."
        grounds.append(Ground(reason=Reason.PREEMPTED, message=message, at=status.requeue.at))
    return tuple(grounds)


def _deadline(job: Job) -> tuple[Ground, ...]:
    limit = job.spec.scheduling.max_wait
    if limit is None:
        return ()
    at = waits_since(job) + limit
    message = f"It gives up at {clock(at)}, when its maxWaitDuration of {lasting(limit)} is over."
    return (Ground(reason=Fact.DEADLINE, message=message, at=at),)


def _first(grounds: Sequence[Ground]) -> tuple[Ground, ...]:
    return (*grounds[:MOST_LISTED], *more(len(grounds), MOST_LISTED))


def _replicas(count: int) -> str:
    return "1 replica" if count == 1 else f"{count} replicas"
