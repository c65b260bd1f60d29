"""Guarantees: which jobs have a right to their shares, and who may take from whom. Pure.

`core/queue/admit.py` makes one for a cycle; `core/queue/preempt.py` asks it. A job's right follows from its
place among all jobs of its share, waiting or running: the first of them that fit into the nominal amount
together have it. So it changes only when jobs come or end or the shares change, never because one was started
or stopped.

That is why no jobs preempt each other in a circle. In any share that jobs take from outside of, they have a
right, and those they take from have none; a job with a right in a share has it in all shares above. Within a
share they take only from lower priorities, and a job without a right never takes from one that has it.
The jobs of a reserved share take from spot jobs alone, and nobody from outside takes from them.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from heapq import merge
from itertools import takewhile
from operator import attrgetter
from typing import TypeAlias

from trainshed.core.queue.place import EPSILON
from trainshed.core.queue.shape import Shape
from trainshed.core.queue.share import ROOT, ShareTree, Stake
from trainshed.core.queue.share_use import ShareUse

MOST_UNFIT = 200  # sizes of a share that do not fit before no more that wait are tried: bounds the cost

# The stake of a job that waits, after its place among all of its share: no two have the same. And its shape.
PlacedStake: TypeAlias = tuple[tuple[int, datetime, str], Stake, Shape]

# The waiting jobs of a share in order; no more follow of a shape once it is among these.
WaitingStakes = Callable[[str, set[Shape]], Iterator[PlacedStake]]


Alike: TypeAlias = tuple[str, bool, int, str | None, bool]


class Standing(StrEnum):
    """Whether others may take what a running job has."""

    GUARANTEED = "GUARANTEED"  # it is within the nominal amount of its share
    BORROWED = "BORROWED"  # it may be stopped when another share wants its own back
    SPOT = "SPOT"  # it runs outside all shares, and is the first to be stopped


@dataclass(frozen=True)
class Guarantees:
    tree: ShareTree
    # By job: the lowest share in which it has a right. It has one in all above too, but for the root.
    rightful: Mapping[str, str] = field(default_factory=dict[str, str])

    def has_right(self, stake: Stake, share: str) -> bool:
        """Whether the job is among those that have the nominal amount of this share, which it belongs to."""
        lowest = self.rightful.get(stake.job)
        return lowest is not None and share != ROOT and share in self.tree.paths[lowest]

    def is_safe(self, stake: Stake, share: str) -> bool:
        """Whether no job from outside of this share may take what it has."""
        return self.has_right(stake, share) or self.tree.divided.isdisjoint(stake.amounts)

    def standing(self, stake: Stake) -> Standing:
        if stake.is_spot:
            return Standing.SPOT
        if not self.tree.is_set or self._is_reserved(stake):
            return Standing.GUARANTEED
        own = stake.share != ROOT and not self.tree.is_parted(stake.share)
        return Standing.GUARANTEED if own and self.is_safe(stake, stake.share) else Standing.BORROWED

    def is_guaranteed(self, stake: Stake) -> bool:
        return self.standing(stake) is Standing.GUARANTEED

    def alike(self, stake: Stake) -> Alike:
        """Of two that run and are alike, any other may take both or none."""
        is_undivided = self.tree.divided.isdisjoint(stake.amounts)
        return stake.share, stake.is_spot, stake.priority, self.rightful.get(stake.job), is_undivided

    def may_take(self, claimant: Stake, other: Stake, use: ShareUse) -> bool:
        """Whether the other job may be stopped for the claimant, as far as shares go."""
        return self.taker(claimant, use)(other)

    def taker(self, claimant: Stake, use: ShareUse) -> Callable[[Stake], bool]:
        """Of any other job, whether it may be stopped for the claimant, as far as shares go.

        Each share is looked at once: do not change the use between two questions.
        """
        if claimant.is_spot:
            return lambda _: False
        is_set, is_safe = self.tree.is_set, self.is_safe(claimant, claimant.share)
        safe_in: dict[str, str | None] = {}  # see `_safe_in`

        def may_take(other: Stake) -> bool:
            if other.is_spot or not is_set:
                return other.is_spot and claimant.job != other.job
            if (share := other.share) == claimant.share:
                return claimant.priority > other.priority and (is_safe or not self.is_safe(other, share))
            if share not in safe_in:
                safe_in[share] = self._safe_in(claimant, share, use)
            where = safe_in[share]
            return where == "" or (where is not None and not self.is_safe(other, where))

        return may_take

    def _safe_in(self, claimant: Stake, share: str, use: ShareUse) -> str | None:
        """In which share jobs of this other one must have a right, to be safe from the claimant.

        None: they are safe without one. Empty: none is safe.
        """
        if self.tree.shares[claimant.share].is_reserved or self.tree.shares[share].is_reserved:
            return None
        mine, its = self._branches(claimant.share, share)
        if mine is None or not self.has_right(claimant, mine) or use.exceeds_nominal(mine, claimant.amounts):
            return None
        return its or ""

    def goes_before(self, stake: Stake, other: Stake) -> bool:
        """Whether the other, which waits too, must not keep this job waiting."""
        if other.is_spot or stake.is_spot:
            return other.is_spot and not stake.is_spot
        if stake.share == other.share:
            return False
        if self._is_reserved(stake):
            return True
        mine, its = self._branches(stake.share, other.share)
        return (
            mine is not None and self.has_right(stake, mine) and (its is None or not self.is_safe(other, its))
        )

    def _is_reserved(self, stake: Stake) -> bool:
        return self.tree.shares[stake.share].is_reserved

    def _branches(self, share: str, other: str) -> tuple[str | None, str | None]:
        """The shares below the first common one that lead to these two; None where it is the common one."""
        path, others = self.tree.paths[share], self.tree.paths[other]
        common = next(name for name in path if name in others)
        mine, its = path.index(common), others.index(common)
        return path[mine - 1] if mine else None, others[its - 1] if its else None


def guarantees(tree: ShareTree, running: Iterable[Stake], waiting: WaitingStakes) -> Guarantees:
    """Who has a right in which share, by the order of all jobs that are there."""
    by_share = _by_share(tree, running)
    rightful: dict[str, str] = {}
    use = ShareUse(tree, {})  # of those that have a right
    for name in tree.upwards:
        if name != ROOT:
            if not use.is_exhausted(name):
                more = _more_rights(use, name, rightful, by_share, waiting)
                rightful.update(dict.fromkeys([stake.job for stake in more], name))
                for share in {stake.share for stake in more}:  # those above need not look at these again
                    by_share[share] = [stake for stake in by_share[share] if stake.job not in rightful]
            if tree.shares[name].is_reserved:
                use.set_aside(name)
    return Guarantees(tree, rightful)


def _by_share(tree: ShareTree, running: Iterable[Stake]) -> dict[str, list[Stake]]:
    """The running jobs of each share in order. To sort them twice is faster: they come by their age."""
    stakes = [stake for stake in running if not stake.is_spot]
    stakes.sort(key=attrgetter("created_at", "job"))
    stakes.sort(key=attrgetter("priority"), reverse=True)
    by_share: dict[str, list[Stake]] = {name: [] for name in tree.shares}
    for stake in stakes:
        by_share[stake.share].append(stake)
    return by_share


def _more_rights(
    use: ShareUse,
    name: str,
    known: Mapping[str, str],
    running: Mapping[str, list[Stake]],
    waiting: WaitingStakes,
) -> list[Stake]:
    """The jobs that fit into what is left of the nominal amount of a share, in their order."""
    tree, rightful = use.tree, list[Stake]()
    # By share: the priority of a job that does not fit. Lower ones have no right.
    blocked: dict[str, int] = {}
    unfit: set[str] = set()
    closed: set[Shape] = set()
    left = _AmountsLeft(use, name)
    keeps = any(use.kept_below(name, item) for item in tree.kept)
    shares = [share for share, path in tree.paths.items() if name in path]
    runs = [running[share] for share in shares if running[share]]
    # So many that wait are tried; a job that runs behind them has its right all the same.
    waits = takewhile(lambda _: len(unfit) < MOST_UNFIT, merge(*[waiting(share, closed) for share in shares]))
    for stake, shape in _in_order(runs[0] if len(runs) == 1 else list(merge(*runs, key=_place)), waits):
        if stake.job in known:
            continue
        is_blocked = unfit and (
            stake.priority < blocked.get(stake.share, stake.priority) or stake.size in unfit
        )
        if not is_blocked and (parts := left.parts(stake)):
            if (not keeps or use.leaves_kept(name, stake)) and left.take(parts):
                rightful.append(stake)
                if keeps:  # the next question needs it; else all are counted together, for a third less
                    use.take(stake)
                if left.is_nothing:
                    break
                continue
            if not _is_beyond_limits(tree, stake):
                blocked.setdefault(stake.share, stake.priority)
            unfit.add(stake.size)
        if shape is not None:
            closed.add(shape)
    if not keeps:
        use.take_all(rightful, items=tree.bounded_items)
    return rightful


def _in_order(
    running: Sequence[Stake], waiting: Iterable[PlacedStake]
) -> Iterator[tuple[Stake, Shape | None]]:
    """Both are in order. Between two that wait those that run are not compared one by one."""
    at = 0
    for place, stake, shape in waiting:
        until = bisect_left(running, place, at, key=_place)
        for other in running[at:until]:
            yield other, None
        at = until
        yield stake, shape
    for other in running[at:]:
        yield other, None


Parts: TypeAlias = list[tuple[dict[str, float], str, float]]


class _AmountsLeft:
    """What is left of the nominal amount of a share, and of the limits of it and of those below it."""

    def __init__(self, use: ShareUse, name: str) -> None:
        self._use, self._name = use, name
        self._nominal = use.nominal_left(name)
        self._limits: dict[tuple[str, str], dict[str, float]] = {}  # by share and user; "" for all users
        self._parts: dict[str, Parts] = {}  # by size

    @property
    def is_nothing(self) -> bool:
        for left in self._nominal.values():  # noqa: SIM110 - a generator costs more than all the rest
            if left >= 2 * EPSILON:
                return False
        return True

    def parts(self, stake: Stake) -> Parts:
        """From what it takes how much; nothing where it takes nothing that is divided."""
        if (parts := self._parts.get(stake.size)) is None:
            is_undivided = self._use.tree.divided.isdisjoint(stake.amounts)
            bounds = [] if is_undivided else self._bounds_of(stake)
            parts = self._parts[stake.size] = [(left, item, stake.amounts[item]) for left, item in bounds]
        return parts

    def take(self, parts: Parts) -> bool:
        """Whether there is so much left, which is taken then."""
        for left, item, amount in parts:
            if left[item] < amount:
                return False
        for left, item, amount in parts:
            left[item] -= amount
        return True

    def _bounds_of(self, stake: Stake) -> list[tuple[dict[str, float], str]]:
        tree = self._use.tree
        path, amounts = tree.paths[stake.share], [self._nominal]
        for share in path[: path.index(self._name) + 1]:
            if share not in tree.bounded:
                continue
            for user in {"", stake.user}:
                left = self._limits.setdefault((share, user), self._use.limits_left(share, user))
                if not user and tree.shares[share].is_reserved:  # of what it does not name it has nothing
                    left.update({item: EPSILON for item in stake.amounts if item not in left})
                amounts.append(left)
        return [(left, item) for left in amounts for item in left if item in stake.amounts]


_place = attrgetter("place")  # of a Stake


def _is_beyond_limits(tree: ShareTree, stake: Stake) -> bool:
    """Whether the job could not run if it were alone."""
    return ShareUse(tree, {}).shortage(stake) is not None
