"""preempt: which running jobs are stopped for which waiting ones, after a cycle. Pure.

`control/preemption.py` calls it. There are three rules. Spot jobs give way to all others. A share takes back
what is its own from jobs that borrow it. In a share a job takes from those of lower priority. Who may take
from whom says `core/guarantee.py`, in a way that never goes in a circle. All jobs of a claim are stopped, or
none: a job is only stopped where that, with others, starts the claimant.

Of those that may be stopped it takes first the spot jobs, then those that borrow, of these the lowest
priority, then those that lose the least work since their last stored checkpoint. It spares whom it can.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from trainshed.core.admit import Cycle, placed
from trainshed.core.fleet import Placement
from trainshed.core.guarantee import Guarantees, Standing
from trainshed.core.job import Job
from trainshed.core.place import Room, Way
from trainshed.core.share import Stake
from trainshed.core.share_cycle import ShareCycle
from trainshed.core.share_use import ShareUse
from trainshed.core.snapshot import Reservation

MOST_CLAIMANTS = 20  # in a cycle; the next one follows at once
MOST_CANDIDATES = 200  # of one claimant
_STANDINGS = list(Standing)[::-1]  # spot, borrowed, guaranteed
_NONE = timedelta()


@dataclass(frozen=True, slots=True)
class Preemption:
    """Jobs that are stopped for a waiting one, and where that one is placed then."""

    job: Job
    victims: tuple[Reservation, ...]
    placements: tuple[Placement, ...]


@dataclass(slots=True)
class _Machines:
    """What is free once all that is being stopped has stopped, less what is kept for others."""

    room: Room
    use: ShareUse

    def copy(self) -> "_Machines":
        return _Machines(self.room.copy(), self.use.copy())

    def give(self, item: Reservation) -> None:
        self.room.give(item.placements)
        if item.stake is not None:
            self.use.give(item.stake)

    def take(self, item: Reservation) -> None:
        self.room.take(item.placements)
        if item.stake is not None:
            self.use.take(item.stake)

    def places(self, ways: tuple[Way, ...], stake: Stake) -> tuple[Placement, ...] | None:
        """Where the job would be; None where it may not start."""
        if self.use.shortage(stake) is not None:
            return None
        return placed(ways, self.room.copy())[1]


def candidates(cycle: Cycle) -> tuple[str, ...]:
    """The jobs that a claim of this cycle might stop."""
    shares, running = cycle.shares, _running(cycle)
    if shares is None:
        return ()
    claimants = [cycle.stake_of(job) for job in cycle.first_refused[:MOST_CLAIMANTS]]
    able = {item.job for stake in claimants for item in _able(shares.rights, shares.use, running, stake)}
    return tuple(item.job for item in running if item.job in able)


def preemptions(cycle: Cycle, lost: Mapping[str, timedelta]) -> tuple[Preemption, ...]:
    """The claims that follow from a cycle. `lost` is the work each running job would lose, by id."""
    shares = cycle.shares
    if shares is None:
        return ()
    machines, running = _once_stopped(cycle, shares), list(_running(cycle))
    decided: list[Preemption] = []
    for job in cycle.first_refused[:MOST_CLAIMANTS]:
        stake, ways = cycle.stake_of(job), cycle.ways_of(job)
        if stake.is_spot or not ways:
            continue
        if (places := machines.places(ways, stake)) is not None:
            # It starts when those have stopped that are being stopped anyway.
            machines.take(_reservation(cycle, job, stake, places))
            continue
        victims = _victims(shares, machines, running, ways, stake, lost)
        if not victims:
            continue
        for item in victims:
            machines.give(item)
            running.remove(item)
        places = machines.places(ways, stake)
        assert places is not None
        machines.take(_reservation(cycle, job, stake, places))
        decided.append(Preemption(job, victims, places))
    return tuple(decided)


def _victims(
    shares: ShareCycle,
    machines: _Machines,
    running: Sequence[Reservation],
    ways: tuple[Way, ...],
    stake: Stake,
    lost: Mapping[str, timedelta],
) -> tuple[Reservation, ...]:
    """The jobs to stop so that this one starts; none where that is not allowed, or not enough."""

    def price(item: Reservation) -> tuple[int, int, timedelta, float, str]:
        assert item.stake is not None
        standing = _STANDINGS.index(shares.rights.standing(item.stake))
        size = -sum(place.cpus for place in item.placements)
        return standing, item.stake.priority, lost.get(item.job, _NONE), size, item.job

    able = sorted(_able(shares.rights, machines.use, running, stake), key=price)[:MOST_CANDIDATES]
    free, chosen = machines.copy(), list[Reservation]()

    def is_enough() -> bool:
        """Whether it starts, and each of those is stopped by a rule."""
        rules = (item.stake and shares.rights.may_take(stake, item.stake, free.use) for item in chosen)
        return free.places(ways, stake) is not None and all(rules)

    for item in able:
        free.give(item)
        chosen.append(item)
        if is_enough():
            break
    else:
        return ()
    for item in chosen[-2::-1]:  # the last one was needed
        free.take(item)
        at = chosen.index(item)
        del chosen[at]
        if not is_enough():
            free.give(item)
            chosen.insert(at, item)
    return tuple(chosen)


def _able(
    rights: Guarantees, use: ShareUse, running: Sequence[Reservation], stake: Stake
) -> list[Reservation]:
    """Those that may be stopped for the job, some of them only together with others of them.

    A share that takes its own back must not have more than that then. So who borrows in it goes too.
    """
    use, able, others = use.copy(), list[Reservation](), list(running)
    while True:
        more = [item for item in others if item.stake and rights.may_take(stake, item.stake, use)]
        if not more:
            return able
        able += more
        others = [item for item in others if item not in more]
        for item in more:
            if item.stake is not None:
                use.give(item.stake)


def _running(cycle: Cycle) -> tuple[Reservation, ...]:
    """The jobs that may be asked to stop: who is stopping already is not."""
    marked = {item.job for mark in cycle.snapshot.earmarks.values() for item in mark.left}
    return tuple(item for item in cycle.snapshot.held if not item.is_ending and item.job not in marked)


def _once_stopped(cycle: Cycle, shares: ShareCycle) -> _Machines:
    """The machines as the cycle leaves them, without those that are being stopped."""
    machines = _Machines(Room(cycle.snapshot.nodes), ShareUse(shares.use.tree, shares.use.capacity))
    marks = cycle.snapshot.earmarks
    stopping = {item.job for mark in marks.values() for item in mark.left}
    for item in cycle.held:
        if item.job in cycle.claimed:
            machines.room.take(marks[item.job].placements)
            if item.stake is not None:
                machines.use.take(item.stake)
        elif not item.is_ending and item.job not in stopping:
            machines.take(item)
    return machines


def _reservation(cycle: Cycle, job: Job, stake: Stake, places: tuple[Placement, ...]) -> Reservation:
    until = cycle.now + job.spec.scheduling.timeout
    return Reservation(job=job.id, display_name=job.display_name, placements=places, until=until, stake=stake)
