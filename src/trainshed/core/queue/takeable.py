"""RunningJobs: which running jobs may be stopped for a waiting one, as far as the rules go. Pure.

`core/queue/preempt.py` asks it. Jobs of which any other may take all or none are a group, and are asked about
once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from trainshed.core.queue.guarantee import Alike, Guarantees, Standing
from trainshed.core.queue.place import Amount
from trainshed.core.queue.share import ShareTree, Stake
from trainshed.core.queue.share_use import Bound, ShareShortage, ShareUse
from trainshed.core.queue.snapshot import Reservation
from trainshed.core.queue.victims import Candidate, Rank, candidate

_STANDINGS = list(Standing)[::-1]  # spot, borrowed, guaranteed


@dataclass(slots=True)
class JobGroup:
    """Running jobs of one share, of which any other may take all or none."""

    stake: Stake  # of one of them
    rank: Rank
    counted: frozenset[str]  # the resources that decide who may take from whom
    items: list[Reservation] = field(default_factory=list[Reservation])
    _amounts: dict[str, float] | None = None
    _by_user: dict[tuple[str, str], float] | None = None
    _room: Amount | None = None
    _candidates: list[Candidate] | None = None

    @property
    def amounts(self) -> dict[str, float]:
        """What they all hold together of these, as far as shares count it."""
        if self._amounts is None:
            self._amounts = {}
            if not self.stake.is_spot:
                all_amounts = [item.stake.amounts for item in self.items if item.stake is not None]
                together = {
                    name: sum([amounts.get(name, 0) for amounts in all_amounts]) for name in self.counted
                }
                self._amounts = {name: amount for name, amount in together.items() if amount}
        return self._amounts

    @property
    def room(self) -> Amount:
        """What they all hold together of the machines."""
        if self._room is None:
            places = [place for item in self.items for place in item.placements]
            self._room = Amount(
                sum([place.cpus for place in places]),
                sum([place.memory for place in places]),
                sum([len(place.gpus) for place in places]),
            )
        return self._room

    def candidates(self, lost: Mapping[str, timedelta]) -> list[Candidate]:
        """The cheapest first. What they would lose is the same each time."""
        if self._candidates is None:
            self._candidates = sorted([candidate(self.rank, self.stake, item, lost) for item in self.items])
        return self._candidates

    def freed_of(self, short: ShareShortage, tree: ShareTree) -> float:
        """By how much less is missing, at most, when they have all ended."""
        if self.stake.is_spot or short.share not in tree.paths[self.stake.share]:
            return 0
        if short.bound is not Bound.USER:
            return self.amounts.get(short.item, 0)
        return self._amounts_by_user.get((short.user, short.item), 0)

    @property
    def _amounts_by_user(self) -> dict[tuple[str, str], float]:
        if self._by_user is None:
            self._by_user = {}
            for stake in [item.stake for item in self.items if item.stake is not None]:
                for name, amount in stake.amounts.items():
                    self._by_user[stake.user, name] = self._by_user.get((stake.user, name), 0) + amount
        return self._by_user

    def remove(self, item: Reservation) -> None:
        self.items.remove(item)
        self._amounts = self._by_user = self._room = None
        if self._candidates is not None:
            self._candidates = [other for other in self._candidates if other.item is not item]


@dataclass(slots=True)
class RunningJobs:
    rights: Guarantees
    groups: dict[Alike, JobGroup]

    @classmethod
    def of(cls, running: Iterable[Reservation], rights: Guarantees) -> "RunningJobs":
        groups: dict[Alike, JobGroup] = {}
        counted = rights.tree.bounded_items
        for item in running:
            if item.stake is not None:
                if (group := groups.get(alike := rights.alike(item.stake))) is None:
                    rank = _STANDINGS.index(rights.standing(item.stake)), item.stake.priority
                    group = groups[alike] = JobGroup(item.stake, rank, counted)
                group.items.append(item)
        return cls(rights, groups)

    def takeable(self, claimant: Stake, use: ShareUse) -> tuple[list[JobGroup], list[JobGroup]]:
        """The groups that may be stopped for the claimant, and those that may only with others of them all.

        A share that takes its own back must not have more than that then. So who borrows in it goes too.
        """
        left = [group for group in self.groups.values() if group.items]
        alone = more = self._takeable(left, claimant, use)
        with_others: list[JobGroup] = []
        tree = self.rights.tree
        if not any(self.rights.has_right(claimant, share) for share in tree.paths[claimant.share]):
            return alone, with_others
        use = use.copy()
        while more:
            for group in more:
                use.count(tree.paths[group.stake.share], "", group.amounts, -1)
            known = {id(group) for group in more}
            left = [group for group in left if id(group) not in known]
            more = self._takeable(left, claimant, use)
            with_others += more
        return alone, with_others

    def _takeable(self, groups: list[JobGroup], claimant: Stake, use: ShareUse) -> list[JobGroup]:
        may_take = self.rights.taker(claimant, use)
        return [group for group in groups if may_take(group.stake)]

    def remove(self, item: Reservation) -> None:
        assert item.stake is not None
        self.groups[self.rights.alike(item.stake)].remove(item)
