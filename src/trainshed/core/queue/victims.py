"""victims: of the jobs that may be stopped for a waiting one, those that lose the least work. Pure.

`core/queue/takeable.py` says who may be stopped, and `core/queue/preempt.py` calls this. Spot jobs go first,
then those that borrow, then those with a right; of each the lowest priority. Of two sets that let the waiting
job start, the better one loses less of those that go last. Work is the time since the last stored checkpoint,
times the machines: many small jobs may lose more than a large one.

To find the best set of all takes too long. Two are tried: jobs in the order of what each loses; and node by
node, the cheapest first, for each replica that has no room. In both, jobs are spared that are not needed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from heapq import merge
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from trainshed.core.queue.growing_room import Given, GrowingRoom, SizeCount
from trainshed.core.queue.place import Room, Way
from trainshed.core.queue.share import Stake
from trainshed.core.queue.share_use import ShareUse
from trainshed.core.queue.snapshot import Reservation

MOST_CANDIDATES = 200  # of one waiting job
RESTART = timedelta(minutes=1)  # what a job loses that has just stored a checkpoint
CPUS_OF_GPU = 100  # a GPU counts for as many CPUs

Rank: TypeAlias = tuple[int, int]  # of a standing and a priority; the smallest goes first
Cost: TypeAlias = list[tuple[Rank, float]]  # the work that those of each rank lose, of the last rank first


class Candidate(NamedTuple):
    """A job that may be stopped, and what that costs. No two compare as equal before the item."""

    rank: Rank
    work: float
    job: str
    item: Reservation
    like: Stake  # of one of its group: who may stop that one may stop this one


# The rank of some jobs, and these jobs, the cheapest first.
CandidateGroup: TypeAlias = tuple[Rank, Callable[[], list[Candidate]]]


def candidate(rank: Rank, like: Stake, item: Reservation, lost: Mapping[str, timedelta]) -> Candidate:
    machines = sum([place.cpus + CPUS_OF_GPU * len(place.gpus) for place in item.placements])
    seconds = (lost[item.job] + RESTART if item.job in lost else RESTART).total_seconds()
    return Candidate(rank, seconds * machines, item.job, item, like)


def cost(candidates: Iterable[Candidate]) -> Cost:
    work: dict[Rank, float] = {}
    for other in candidates:
        work[other.rank] = work.get(other.rank, 0) + other.work
    return sorted(work.items(), reverse=True)


@dataclass(slots=True)
class VictimChoice:
    """Chooses the jobs to stop for one waiting job."""

    ways: tuple[Way, ...]  # to place it
    stake: Stake
    room: Room
    use: ShareUse
    may_stop: Callable[[Iterable[Stake], ShareUse], bool]  # such jobs, where so much is in use then

    def victims(
        self, alone: Sequence[CandidateGroup], with_others: Sequence[CandidateGroup]
    ) -> tuple[Reservation, ...]:
        """Of these groups; none where to stop them all is not enough.

        The jobs of some groups may be stopped only if others are too.
        """
        sets = self._sets(alone, is_allowed=True)
        if with_others:
            lowest = min(rank for rank, _ in with_others)
            # Where those that were found are all of lower ranks, no better set has others.
            if not sets or max(other.rank for other in sets[0]) >= lowest:
                sets += self._sets([*alone, *with_others], is_allowed=False)
        return tuple([chosen.item for chosen in min(sets, key=cost, default=())])

    def _sets(self, groups: Iterable[CandidateGroup], *, is_allowed: bool) -> list[list[Candidate]]:
        """Those that are enough, of the ones that are tried."""
        candidates = _cheapest(groups)
        first = _StopTrial(self, self.ways, is_allowed).enough(candidates)
        if not first:
            return []
        most, sets = cost(first), [first]
        # No better set has others.
        candidates = [other for other in candidates if [(other.rank, other.work)] <= most]
        for way in self.ways:
            trial = _StopTrial(self, (way,), is_allowed)
            trial.stop_by_node(candidates)
            sets.append(trial.enough(candidates) or first)
        return sets


class _StopTrial:
    """A copy of the machines, on which jobs are stopped to see whether the waiting one starts then."""

    def __init__(self, choice: VictimChoice, ways: tuple[Way, ...], is_allowed: bool) -> None:
        self.choice, self.is_allowed = choice, is_allowed
        self.room, self.use = GrowingRoom(ways, choice.room.copy()), choice.use.copy()
        self.stopped: dict[str, Candidate] = {}

    def enough(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        """Who was stopped, and as many of the candidates as it takes; none where that is not enough."""
        for other in candidates:
            if self._is_enough():
                break
            self._stop(other)
        if not self._is_enough():
            return []
        self._spare_useless()
        for other in sorted(self.stopped.values(), reverse=True):
            self._spare(other)
            if not self._is_enough():
                self._stop(other)
        return sorted(self.stopped.values())

    def stop_by_node(self, candidates: Iterable[Candidate]) -> None:
        """Stop what is on the cheapest node, then on the next, until every replica has room."""
        on: dict[str, list[tuple[Candidate, Given]]] = {}
        for other in candidates:
            for name, amount in _by_node(other.item).items():
                if name in self.room.room.nodes:  # a node that is gone has no room for anybody
                    on.setdefault(name, []).append((other, amount))
        # By node, until something is stopped there: whom to stop, after what that costs.
        options: dict[str, tuple[Cost, list[Candidate]]] = {}
        tried: SizeCount | None = None
        stale: Iterable[str] = ()
        while (size := self.room.missing()) is not None:
            for name in on if size is not tried else stale:
                chosen = self._option(size, name, on[name])
                options[name] = cost(chosen), chosen
            tried = size
            best = min([option for option in options.values() if option[1]], key=itemgetter(0), default=None)
            if best is None:
                break
            for other in best[1]:
                self._stop(other)
            stale = {place.node for other in best[1] for place in other.item.placements} & on.keys()

    def _option(
        self, size: SizeCount, name: str, parts: Sequence[tuple[Candidate, Given]]
    ) -> list[Candidate]:
        """Whom to stop so that one more replica has room on this node; none where all are not enough."""
        room, chosen, free = self.room.room, list[tuple[Candidate, Given]](), (0.0, 0, 0)
        for other, amount in parts:
            if other.job not in self.stopped:
                chosen.append((other, amount))
                free = _sum(free, amount)
                if size.fits_more(room, name, free):
                    break
        else:
            return []
        for other, amount in chosen[-2::-1]:  # the last one was needed
            if size.fits_more(room, name, less := _sum(free, amount, -1)):
                chosen.remove((other, amount))
                free = less
        return [other for other, _ in chosen]

    def _spare_useless(self) -> None:
        """Spare spot jobs on nodes where nothing fits in any case: no share is short because of them."""
        useful = self.room.fitting_nodes()
        for other in list(self.stopped.values()):
            if other.like.is_spot and useful.isdisjoint([place.node for place in other.item.placements]):
                self._spare(other)

    def _is_enough(self) -> bool:
        """Whether the job starts, and all of these may be stopped."""
        if not self.room.has_room() or self.use.shortage(self.choice.stake) is not None:
            return False
        if self.is_allowed:
            return True
        likes = {id(other.like): other.like for other in self.stopped.values()}
        return self.choice.may_stop(likes.values(), self.use)

    def _stop(self, other: Candidate) -> None:
        if other.job not in self.stopped:
            self.stopped[other.job] = other
            self.room.give(other.item.placements)
            if other.item.stake is not None:
                self.use.give(other.item.stake)

    def _spare(self, other: Candidate) -> None:
        del self.stopped[other.job]
        self.room.take(other.item.placements)
        if other.item.stake is not None:
            self.use.take(other.item.stake)


def _cheapest(groups: Iterable[CandidateGroup]) -> list[Candidate]:
    """The cheapest of all, of as many groups as it takes."""
    ranks = groupby(sorted(groups, key=itemgetter(0)), key=itemgetter(0))
    lists = (merge(*[candidates() for _, candidates in same]) for _, same in ranks)
    return list(islice(chain.from_iterable(lists), MOST_CANDIDATES))


def _by_node(item: Reservation) -> dict[str, Given]:
    """What a job holds, by node."""
    amounts: dict[str, Given] = {}
    for place in item.placements:
        own = place.cpus, place.memory, len(place.gpus)
        amounts[place.node] = _sum(amounts[place.node], own) if place.node in amounts else own
    return amounts


def _sum(amount: Given, other: Given, sign: int = 1) -> Given:
    return amount[0] + sign * other[0], amount[1] + sign * other[1], amount[2] + sign * other[2]
