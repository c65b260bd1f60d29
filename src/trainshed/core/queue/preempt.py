"""preempt: which running jobs are stopped for which waiting ones, after a cycle. Pure.

`control/preemption.py` calls it. There are three rules. Spot jobs give way to all others. A share takes back
what is its own from jobs that borrow it. In a share a job takes from those of lower priority. Who may take
from whom says `core/queue/guarantee.py`, in a way that never goes in a circle. All jobs of a claim are
stopped, or none: a job is only stopped where that, with others, starts the claimant.

Of those that may be stopped it takes first the spot jobs, then those that borrow, of these the lowest
priority, then those that lose the least work since their last stored checkpoint. It spares whom it can.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial, reduce
from itertools import chain, islice

from trainshed.core.jobs.job import Job
from trainshed.core.queue.admit import Cycle
from trainshed.core.queue.fleet import Placement
from trainshed.core.queue.place import EPSILON, Amount, Room, Way, placed, total
from trainshed.core.queue.share import Stake
from trainshed.core.queue.share_cycle import ShareCycle
from trainshed.core.queue.share_use import ShareUse
from trainshed.core.queue.snapshot import Reservation
from trainshed.core.queue.takeable import JobGroup, RunningJobs
from trainshed.core.queue.victims import VictimChoice

MOST_CLAIMANTS = 20  # that are looked at in a cycle
MOST_CLAIMS = 5  # in a cycle; the next one follows at once


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


@dataclass(slots=True)
class ClaimChoice:
    """Who might stop others after a cycle, and then who does. It is asked for claims once."""

    cycle: Cycle
    machines: _Machines
    running: RunningJobs  # without who is stopping already
    claimants: tuple[tuple[Job, tuple[JobGroup, ...]], ...]  # in their turn, and whom each might stop

    @classmethod
    def of(cls, cycle: Cycle) -> "ClaimChoice | None":
        """None where nobody is stopped for others."""
        if (shares := cycle.shares) is None:
            return None
        marked = {item.job for mark in cycle.snapshot.earmarks.values() for item in mark.left}
        others = [item for item in cycle.snapshot.held if item.may_be_stopped and item.job not in marked]
        machines, running = _once_stopped(cycle, shares), RunningJobs.of(others, shares.rights)
        return cls(cycle, machines, running, tuple(_claimants(cycle, machines, running)))

    def candidates(self) -> tuple[str, ...]:
        """The jobs that a claim might stop."""
        able = {id(group): group for _, groups in self.claimants for group in groups}
        jobs = {item.job for group in able.values() for item in group.items}
        return tuple([item.job for item in self.cycle.snapshot.held if item.job in jobs])

    def claims(self, lost: Mapping[str, timedelta]) -> tuple[Preemption, ...]:
        """The claims that follow from the cycle. `lost` is the work each running job would lose, by id."""
        cycle, machines, decided = self.cycle, self.machines, list[Preemption]()
        for job, _ in self.claimants:
            stake, ways = cycle.stake_of(job), cycle.ways_of(job)
            if (places := machines.places(ways, stake)) is not None:
                # It starts when those have stopped that are being stopped anyway.
                machines.take(_reservation(cycle, job, stake, places))
                continue
            victims = _victims(machines, self.running, lost, ways, stake)
            if not victims:
                continue
            for item in victims:
                machines.give(item)
                self.running.remove(item)
            places = machines.places(ways, stake)
            assert places is not None
            machines.take(_reservation(cycle, job, stake, places))
            decided.append(Preemption(job, victims, places))
            if len(decided) == MOST_CLAIMS:
                break
        return tuple(decided)


def _claimants(
    cycle: Cycle, machines: _Machines, running: RunningJobs
) -> Iterator[tuple[Job, tuple[JobGroup, ...]]]:
    """The first of the refused jobs that might stop enough to start, and whom. Others do not count."""
    free = machines.room.free()
    # Of those that are alike each may stop the same jobs: these, and what is free then.
    of_alike: dict[object, tuple[tuple[JobGroup, ...], Amount]] = {}

    def groups_of(stake: Stake) -> tuple[tuple[JobGroup, ...], Amount]:
        alike = running.rights.alike(stake), stake.size
        if alike not in of_alike:
            groups = tuple(chain(*running.takeable(stake, machines.use)))
            of_alike[alike] = groups, reduce(Amount.plus, [group.room for group in groups], free)
        return of_alike[alike]

    def groups_for(job: Job) -> tuple[JobGroup, ...]:
        """Whom the job might stop; nobody where that is not enough."""
        stake = cycle.stake_of(job)
        groups, free = groups_of(stake)
        is_enough = groups and _may_be_enough(cycle.ways_of(job), free)
        return groups if is_enough and _may_be_within_limits(stake, machines.use, groups) else ()

    able = ((job, groups) for job in cycle.first_refused if (groups := groups_for(job)))
    return islice(able, MOST_CLAIMANTS)


def _may_be_enough(ways: tuple[Way, ...], free: Amount) -> bool:
    """Whether the machines in all have so much. That takes no time, and spares most tries."""
    needs = (total(way.wanted) for way in ways)
    return any(
        need.cpus <= free.cpus + EPSILON and need.memory <= free.memory and need.gpus <= free.gpus
        for need in needs
    )


def _may_be_within_limits(stake: Stake, use: ShareUse, groups: tuple[JobGroup, ...]) -> bool:
    """Whether its share and its user might have so much more, once all of these are stopped."""
    for over in use.over_limits(stake):
        freed = sum(group.freed_of(over, use.tree) for group in groups)
        if over.missing > freed + EPSILON:
            return False
    return True


def _victims(
    machines: _Machines,
    running: RunningJobs,
    lost: Mapping[str, timedelta],
    ways: tuple[Way, ...],
    stake: Stake,
) -> tuple[Reservation, ...]:
    """The jobs to stop so that this one starts; none where that is not allowed, or not enough."""

    def may_stop(stakes: Iterable[Stake], use: ShareUse) -> bool:
        return all(map(running.rights.taker(stake, use), stakes))

    alone, with_others = running.takeable(stake, machines.use)
    choice = VictimChoice(ways, stake, machines.room, machines.use, may_stop)
    return choice.victims(
        [(group.rank, partial(group.candidates, lost)) for group in alone],
        [(group.rank, partial(group.candidates, lost)) for group in with_others],
    )


def _once_stopped(cycle: Cycle, shares: ShareCycle) -> _Machines:
    """The machines as the cycle leaves them, without those that are being stopped."""
    marks, now = cycle.snapshot.earmarks, cycle.now
    if not marks and not any(item.leaves_soon(now) for item in cycle.held):
        return _Machines(cycle.room.copy(), shares.use.copy())
    machines = _Machines(Room(cycle.snapshot.nodes), ShareUse(shares.use.tree, shares.use.capacity))
    stopping = {item.job for mark in marks.values() for item in mark.left}
    stakes: list[Stake | None] = []
    for item in cycle.held:
        if item.job in cycle.single:
            machines.room.take(marks[item.job].placements)
            stakes.append(item.stake)
        elif not item.leaves_soon(now) and item.job not in stopping:
            machines.room.take(item.placements)
            stakes.append(item.stake)
    machines.use.take_all(stake for stake in stakes if stake is not None)
    return machines


def _reservation(cycle: Cycle, job: Job, stake: Stake, places: tuple[Placement, ...]) -> Reservation:
    until = cycle.now + job.spec.scheduling.timeout
    return Reservation(job=job.id, display_name=job.display_name, placements=places, until=until, stake=stake)
