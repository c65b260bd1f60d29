"""ShareUse: what each share has in use, and why a job may not have more now. Decides no order.

`core/queue/admit.py`, `core/queue/guarantee.py` and `core/queue/preempt.py` call it. Mutable on purpose, as
`Room` is: one scheduling cycle counts on its own copy. Jobs that run as spot are not counted.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import TypeAlias

from trainshed.core.queue.fleet import Node
from trainshed.core.queue.place import EPSILON
from trainshed.core.queue.share import CPUS, GPUS, MEMORY, ROOT, Amounts, ShareTree, Stake, in_amount

Rank: TypeAlias = tuple[float, ...]  # the used part of the machines by weight, of each share from the top


class Bound(StrEnum):
    """What keeps a job of a share from having more."""

    LIMIT = "LIMIT"  # the share has its nominal amount, and borrows what it may
    LENT = "LENT"  # others have it in use, or keep it
    USER = "USER"  # one user may have no more


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareShortage:
    """Why a job may not have what it needs now, as numbers."""

    bound: Bound
    share: str
    item: str
    needs: float
    used: float
    nominal: float = inf
    most: float = inf  # nominal and borrowed together, or of one user
    kept: float = 0  # unused, and not lent by its owners
    user: str = ""

    @property
    def missing(self) -> float:
        return self.used + self.kept + self.needs - self.most

    def freed_by(self, stake: Stake, tree: ShareTree) -> float:
        """By how much less is missing, at most, when this job has ended."""
        is_counted = not stake.is_spot and self.share in tree.paths[stake.share]
        if not is_counted or (self.bound is Bound.USER and stake.user != self.user):
            return 0
        return stake.amounts.get(self.item, 0)

    @property
    def message(self) -> str:
        needs = f"Needs {in_amount(self.item, self.needs)}"
        uses = in_amount(self.item, self.used)
        match self.bound:
            case Bound.USER:
                most = in_amount(self.item, self.most)
                return f"{needs}; {self.user or 'its user'} uses {uses} of {most} in share '{self.share}'."
            case Bound.LIMIT:
                borrows = in_amount(self.item, self.most - self.nominal)
                of = f"{uses} of its guaranteed {in_amount(self.item, self.nominal)}"
                return f"{needs}; share '{self.share}' uses {of} and may borrow {borrows}."
            case _:
                kept = (
                    f", and {in_amount(self.item, self.kept)} are kept by their shares" if self.kept else ""
                )
                of = f"{uses} of {in_amount(self.item, self.most)}"
                where = "all shares together use" if self.share == ROOT else f"share '{self.share}' uses"
                return f"{needs}; {where} {of}{kept}."


def capacities(nodes: Iterable[Node]) -> Amounts:
    amounts: dict[str, float] = {CPUS: 0, MEMORY: 0, GPUS: 0}
    for node in nodes:
        amounts[CPUS] += node.cpus
        amounts[MEMORY] += node.memory
        amounts[GPUS] += len(node.gpus)
        if node.gpus and node.accelerator:
            amounts[node.accelerator] = amounts.get(node.accelerator, 0) + len(node.gpus)
    return amounts


def amount_there(capacity: Amounts, item: str) -> float:
    """How much there is of a resource. Where no machine has GPUs of a type, any GPU will do."""
    return capacity.get(item) or (0 if item in (CPUS, MEMORY) else capacity.get(GPUS, 0))


class ShareUse:
    def __init__(self, tree: ShareTree, capacity: Amounts) -> None:
        self.tree, self.capacity = tree, capacity
        self.used: dict[tuple[str, str], float] = {}  # by share, with those below it, and resource
        self.by_user: dict[tuple[str, str, str], float] = {}  # where a share limits what one user has
        self._ranks: dict[str, Rank] = {}  # until something changes

    def copy(self) -> "ShareUse":
        twin = ShareUse(self.tree, self.capacity)
        twin.used, twin.by_user = dict(self.used), dict(self.by_user)
        return twin

    def take_all(self, stakes: Iterable[Stake], sign: int = 1, items: frozenset[str] | None = None) -> None:
        """As `take` of each, for less: those of one size are counted together, then each share once.

        With `items` only these resources are counted.
        """
        stakes = [stake for stake in stakes if not stake.is_spot]
        numbers = Counter([stake.size for stake in stakes])
        own: dict[tuple[str, str], dict[str, float]] = {}
        for size, stake in {stake.size: stake for stake in stakes}.items():
            amounts = own.setdefault((stake.share, stake.user), defaultdict(int))
            for item, amount in stake.amounts.items():
                if items is None or item in items:
                    amounts[item] += numbers[size] * amount
        for (share, user), amounts in own.items():
            self.count(self.tree.paths[share], user, amounts, sign)

    def take(self, stake: Stake, sign: int = 1) -> None:
        if not stake.is_spot:
            self.count(self.tree.paths[stake.share], stake.user, stake.amounts, sign)

    def count(self, shares: Iterable[str], user: str, amounts: Amounts, sign: int = 1) -> None:
        """Count these amounts in these shares only."""
        used, by_user = self.used, self.by_user
        self._ranks.clear()
        for name in shares:
            per_user = self.tree.shares[name].per_user if user else ()
            for item, amount in amounts.items():
                used[name, item] = used.get((name, item), 0) + sign * amount
                if item in per_user:
                    key = name, user, item
                    by_user[key] = by_user.get(key, 0) + sign * amount

    def give(self, stake: Stake) -> None:
        self.take(stake, -1)

    def set_aside(self, share: str) -> None:
        """Count what a reserved share does not use as used, also by those above it."""
        self._ranks.clear()
        for item, amount in self.tree.nominal[share].items():
            idle = max(0, amount - self.used.get((share, item), 0))
            for name in self.tree.paths[share]:
                self.used[name, item] = self.used.get((name, item), 0) + idle

    def exceeds_nominal(self, share: str, more: Amounts) -> bool:
        """Whether the share would have more than its nominal amount of something with these."""
        for item, most in self.tree.nominal[share].items():
            if item in more and self.used.get((share, item), 0) + more[item] > most + EPSILON:
                return True
        return False

    def nominal_left(self, share: str) -> dict[str, float]:
        """What is left of the nominal amount, and a little more: amounts are floats."""
        nominal = self.tree.nominal[share].items()
        return {item: most + EPSILON - self.used.get((share, item), 0) for item, most in nominal}

    def limits_left(self, share: str, user: str) -> dict[str, float]:
        """What is left of the limits of a share, or of one of its users, and a little more."""
        if not user:
            limits = self.tree.limits[share].items()
            return {item: most + EPSILON - self.used.get((share, item), 0) for item, most in limits}
        limits = self.tree.shares[share].per_user.items()
        return {item: most + EPSILON - self.by_user.get((share, user, item), 0) for item, most in limits}

    def is_exhausted(self, share: str) -> bool:
        """Whether the share has its whole nominal amount of everything in use."""
        for item, most in self.tree.nominal[share].items():
            if self.used.get((share, item), 0) <= most - EPSILON:
                return False
        return True

    def shortage(self, stake: Stake) -> ShareShortage | None:
        """Why the job may not have what it needs now; None where it may."""
        if stake.is_spot:
            return None
        if self.tree.bounds[stake.share] and (over := next(self.over_limits(stake), None)) is not None:
            return over
        return None if self.tree.kept.isdisjoint(stake.amounts) else next(self._of_loans(stake), None)

    def most(self, share: str, item: str) -> float:
        """What the share may have at most of a resource, however little others use."""
        most = inf
        for name, kept in self._kept_along(self.tree.paths[share], item):
            limit = self.capacity.get(item, 0) if name == ROOT else self.tree.limit(name, item)
            most = min(most, limit - kept)
        return max(0, most)

    def rank(self, share: str) -> Rank:
        """The smaller goes first: by the resource of which a share uses and used the largest part of all."""
        if share not in self._ranks:
            self._ranks[share] = self._rank(share)
        return self._ranks[share]

    def _rank(self, share: str) -> Rank:
        below, path = self.tree.children[share], self.tree.paths[share]
        parts = [self._part(name) / self.tree.shares[name].weight for name in reversed(path[:-1])]
        if below:  # the jobs of its own projects
            parts.append(self._part(share, below))
        return tuple(round(part, 9) for part in parts)

    def _part(self, share: str, without: tuple[str, ...] = ()) -> float:
        """The largest part of all machines that a share has and had lately of one resource."""
        return max(
            (
                (self._counted(share, item) - sum(self._counted(name, item) for name in without)) / there
                for item, there in self.capacity.items()
                if there
            ),
            default=0,
        )

    def _counted(self, share: str, item: str) -> float:
        return self.used.get((share, item), 0) + self.tree.past_use.get((share, item), 0)

    def over_limits(self, stake: Stake) -> Iterator[ShareShortage]:
        """What the limits of its share, of those above and of its user do not let it have now."""
        for name in self.tree.bounds[stake.share]:
            yield from self._over_limits(name, stake)

    def _over_limits(self, name: str, stake: Stake) -> Iterator[ShareShortage]:
        limits, share = self.tree.limits[name], self.tree.shares[name]
        per_user, otherwise = share.per_user, 0 if share.is_reserved else inf
        for item, needs in stake.amounts.items():
            used, most = self.used.get((name, item), 0), limits.get(item, otherwise)
            if used + needs > most + EPSILON:
                yield ShareShortage(
                    bound=Bound.LIMIT,
                    share=name,
                    item=item,
                    needs=needs,
                    used=used,
                    nominal=self.tree.nominal[name].get(item, 0),
                    most=most,
                )
            if not stake.user or item not in per_user:
                continue
            own, most = self.by_user.get((name, stake.user, item), 0), per_user[item]
            if own + needs > most + EPSILON:
                yield ShareShortage(
                    bound=Bound.USER, share=name, item=item, needs=needs, used=own, most=most, user=stake.user
                )

    def _of_loans(self, stake: Stake) -> Iterator[ShareShortage]:
        """What others keep of their nominal amounts is not there, and nothing is there twice."""
        tree, path = self.tree, self.tree.paths[stake.share]
        for item, needs in stake.amounts.items():
            if item not in tree.kept:
                continue
            for name, kept in self._kept_along(path, item):
                most = tree.limit(name, item)
                if name == ROOT:
                    most = self.capacity.get(item) or inf
                used = self.used.get((name, item), 0)
                if kept and used + kept + needs > most + EPSILON:
                    yield ShareShortage(
                        bound=Bound.LENT,
                        share=name,
                        item=item,
                        needs=needs,
                        used=used,
                        most=most,
                        kept=kept,
                    )

    def kept_below(self, share: str, item: str) -> float:
        """What the shares below this one keep."""
        return self._kept_beside((), share, item)

    def leaves_kept(self, share: str, stake: Stake) -> bool:
        """Whether there is enough of its nominal amount for the job beside what others below it keep."""
        tree, path = self.tree, self.tree.paths[stake.share]
        for item in tree.kept & stake.amounts.keys():
            *_, (_, kept) = self._kept_along(path[: path.index(share) + 1], item)
            used = self.used.get((share, item), 0) + kept + stake.amounts[item]
            if kept and used > tree.nominal[share].get(item, inf) + EPSILON:
                return False
        return True

    def _kept_along(self, path: tuple[str, ...], item: str) -> Iterator[tuple[str, float]]:
        """Each share of a path from below, with what is kept beside the path up to there."""
        kept = 0.0
        for name in path:
            kept += self._kept_beside(path, name, item)
            yield name, kept

    def _kept_beside(self, path: tuple[str, ...], name: str, item: str) -> float:
        """What the shares below this one keep, but for those of the path."""
        if item not in self.tree.kept:
            return 0
        return sum(self._kept(child, item) for child in self.tree.children[name] if child not in path)

    def _kept(self, share: str, item: str) -> float:
        """What a share has unused and lends to nobody."""
        tree = self.tree
        used = self.used.get((share, item), 0)
        lends = 0 if tree.shares[share].is_reserved else tree.shares[share].lend.get(item, inf)
        own = tree.nominal[share].get(item, 0) - lends - used
        return max(0, own, sum(self._kept(child, item) for child in tree.children[share]))
