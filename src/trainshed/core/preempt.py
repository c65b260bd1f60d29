"""preempt: which running jobs are stopped for which waiting ones, after a cycle. Pure.

`control/preemption.py` calls it. There are three rules. Spot jobs give way to all others. A share takes back
what is its own from jobs that borrow it. In a share a job takes from those of lower priority. Who may take
from whom says `core/guarantee.py`, in a way that never goes in a circle. All jobs of a claim are stopped, or
none: a job is only stopped where that, with others, starts the claimant.

Of those that may be stopped it takes first the spot jobs, then those that borrow, of these the lowest
priority, then those that lose the least work since their last stored checkpoint. It spares whom it can.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from heapq import merge
from itertools import islice
from typing import TypeAlias

from trainshed.core.admit import Cycle
from trainshed.core.fleet import Placement
from trainshed.core.growing_room import GrowingRoom
from trainshed.core.guarantee import Alike, Guarantees, Standing
from trainshed.core.job import Job
from trainshed.core.place import Room, Way, placed
from trainshed.core.share import Stake
from trainshed.core.share_cycle import ShareCycle
from trainshed.core.share_use import ShareUse
from trainshed.core.snapshot import Reservation

MOST_CLAIMANTS = 20  # in a cycle; the next one follows at once
MOST_CANDIDATES = 200  # of one claimant
_STANDINGS = list(Standing)[::-1]  # spot, borrowed, guaranteed
_NONE = timedelta()

Price: TypeAlias = tuple[int, int, timedelta, float, str]


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
class _StopTrial:
    """A copy of the machines, on which jobs are stopped to see whether the claimant starts then."""

    room: GrowingRoom
    use: ShareUse
    stake: Stake

    def stop(self, item: Reservation) -> None:
        self.room.give(item.placements)
        if item.stake is not None:
            self.use.give(item.stake)

    def spare(self, item: Reservation) -> None:
        self.room.take(item.placements)
        if item.stake is not None:
            self.use.take(item.stake)

    def starts(self) -> bool:
        return self.use.shortage(self.stake) is None and self.room.placed() is not None


@dataclass(slots=True)
class _Running:
    """The jobs that may be asked to stop, those of whom others may take alike together."""

    rights: Guarantees
    groups: dict[Alike, list[Reservation]]

    @classmethod
    def of(cls, cycle: Cycle, rights: Guarantees) -> "_Running":
        """Who is stopping already is left out."""
        if cycle.alike is None:
            cycle.alike = _alike(cycle, rights)
        return cls(rights, {alike: list(items) for alike, items in cycle.alike.items()})

    def takeable(self, claimant: Stake, use: ShareUse) -> tuple[list[list[Reservation]], set[str]]:
        """The groups of those that may be stopped for the claimant, and who of them only with others of them.

        A share that takes its own back must not have more than that then. So who borrows in it goes too.
        """
        groups = [items for items in self.groups.values() if items]
        taken = self._takeable(groups, claimant, use)
        path, only_with = self.rights.tree.paths[claimant.share], set[str]()
        if not any(self.rights.has_right(claimant, share) for share in path):
            return taken, only_with
        more, use = taken, use.copy()
        while more:
            use.take_all((item.stake for items in more for item in items if item.stake is not None), -1)
            known = {id(items) for items in taken}
            more = self._takeable([items for items in groups if id(items) not in known], claimant, use)
            taken = taken + more
            only_with.update(item.job for items in more for item in items)
        return taken, only_with

    def _takeable(
        self, groups: list[list[Reservation]], claimant: Stake, use: ShareUse
    ) -> list[list[Reservation]]:
        stakes, may_take = [(items, items[0].stake) for items in groups], self.rights.may_take
        return [items for items, other in stakes if other is not None and may_take(claimant, other, use)]

    def remove(self, item: Reservation) -> None:
        assert item.stake is not None
        self.groups[self.rights.alike(item.stake)].remove(item)


def _alike(cycle: Cycle, rights: Guarantees) -> dict[Alike, list[Reservation]]:
    marked = {item.job for mark in cycle.snapshot.earmarks.values() for item in mark.left}
    groups: dict[Alike, list[Reservation]] = {}
    for item in cycle.snapshot.held:
        if item.stake is not None and not item.is_ending and item.job not in marked:
            groups.setdefault(rights.alike(item.stake), []).append(item)
    return groups


def candidates(cycle: Cycle) -> tuple[str, ...]:
    """The jobs that a claim of this cycle might stop."""
    if (shares := cycle.shares) is None:
        return ()
    running = _Running.of(cycle, shares.rights)
    able: set[str] = set()
    for job in cycle.first_refused[:MOST_CLAIMANTS]:
        for items in running.takeable(cycle.stake_of(job), shares.use)[0]:
            able.update([item.job for item in items])
    return tuple([item.job for item in cycle.snapshot.held if item.job in able])


def preemptions(cycle: Cycle, lost: Mapping[str, timedelta]) -> tuple[Preemption, ...]:
    """The claims that follow from a cycle. `lost` is the work each running job would lose, by id."""
    shares = cycle.shares
    if shares is None:
        return ()
    machines, running = _once_stopped(cycle, shares), _Running.of(cycle, shares.rights)
    price = _prices(shares.rights, lost)
    decided: list[Preemption] = []
    for job in cycle.first_refused[:MOST_CLAIMANTS]:
        stake, ways = cycle.stake_of(job), cycle.ways_of(job)
        if stake.is_spot or not ways:
            continue
        if (places := machines.places(ways, stake)) is not None:
            # It starts when those have stopped that are being stopped anyway.
            machines.take(_reservation(cycle, job, stake, places))
            continue
        victims = _victims(machines, running, price, ways, stake)
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


def _prices(rights: Guarantees, lost: Mapping[str, timedelta]) -> Callable[[Reservation], Price]:
    """Who has the smallest price is stopped first. It is worked out once for each job."""
    known: dict[str, Price] = {}

    def price(item: Reservation) -> Price:
        if item.job not in known:
            assert item.stake is not None
            standing = _STANDINGS.index(rights.standing(item.stake))
            size = -sum(place.cpus for place in item.placements)
            loss = lost.get(item.job, _NONE)
            known[item.job] = standing, item.stake.priority, loss, size, item.job
        return known[item.job]

    return price


def _victims(
    machines: _Machines,
    running: _Running,
    price: Callable[[Reservation], Price],
    ways: tuple[Way, ...],
    stake: Stake,
) -> tuple[Reservation, ...]:
    """The jobs to stop so that this one starts; none where that is not allowed, or not enough."""
    groups, only_with = running.takeable(stake, machines.use)
    if not groups:
        return ()
    for items in groups:
        items.sort(key=price)
    trial = _StopTrial(GrowingRoom(ways, machines.room.copy()), machines.use.copy(), stake)
    chosen: list[Reservation] = []

    def is_enough() -> bool:
        """Whether the job starts, and a rule allows to stop each of those."""
        others = (item.stake for item in chosen if item.job in only_with)
        return trial.starts() and all(
            other is not None and running.rights.may_take(stake, other, trial.use) for other in others
        )

    for item in islice(merge(*groups, key=price), MOST_CANDIDATES):
        trial.stop(item)
        chosen.append(item)
        if is_enough():
            break
    else:
        return ()
    for item in chosen[-2::-1]:  # the last one was needed
        at = chosen.index(item)
        del chosen[at]
        trial.spare(item)
        if not is_enough():
            trial.stop(item)
            chosen.insert(at, item)
    return tuple(chosen)


def _once_stopped(cycle: Cycle, shares: ShareCycle) -> _Machines:
    """The machines as the cycle leaves them, without those that are being stopped."""
    marks = cycle.snapshot.earmarks
    if not marks and not any(item.is_ending for item in cycle.held):
        return _Machines(cycle.room.copy(), shares.use.copy())
    machines = _Machines(Room(cycle.snapshot.nodes), ShareUse(shares.use.tree, shares.use.capacity))
    stopping = {item.job for mark in marks.values() for item in mark.left}
    stakes: list[Stake | None] = []
    for item in cycle.held:
        if item.job in cycle.claimed:
            machines.room.take(marks[item.job].placements)
            stakes.append(item.stake)
        elif not item.is_ending and item.job not in stopping:
            machines.room.take(item.placements)
            stakes.append(item.stake)
    machines.use.take_all(stake for stake in stakes if stake is not None)
    return machines


def _reservation(cycle: Cycle, job: Job, stake: Stake, places: tuple[Placement, ...]) -> Reservation:
    until = cycle.now + job.spec.scheduling.timeout
    return Reservation(job=job.id, display_name=job.display_name, placements=places, until=until, stake=stake)
