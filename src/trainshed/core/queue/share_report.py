"""What each share has, uses and waits for, for people who look at it. Pure. `service/shares.py` calls it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from trainshed.core.queue.admit import Cycle
from trainshed.core.queue.guarantee import Standing
from trainshed.core.queue.share import Amounts, Share


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareRow:
    share: Share
    depth: int  # how many shares are above it
    nominal: Amounts  # with what those below it have
    used: Amounts  # with those below it, without spot
    past: Amounts  # lately, at a time on average
    standings: Mapping[Standing, int]  # how many running jobs of its own projects stand so
    waiting: int  # jobs of its own projects


def share_rows(cycle: Cycle, waiting: Mapping[str, int]) -> tuple[ShareRow, ...]:
    """All shares, each before those below it. `waiting` counts jobs by share."""
    if cycle.shares is None:
        return ()
    use, rights = cycle.shares.use, cycle.shares.rights
    tree, standings = use.tree, dict[str, Counter[Standing]]()
    for item in cycle.snapshot.held:
        if item.stake is not None:
            standings.setdefault(item.stake.share, Counter())[rights.standing(item.stake)] += 1
    return tuple(
        ShareRow(
            share=tree.shares[name],
            depth=len(tree.paths[name]) - 1,
            nominal=use.capacity if len(tree.paths[name]) == 1 else tree.nominal[name],
            used=_of(name, use.used),
            past=_of(name, tree.past_use),
            standings=standings.get(name, Counter()),
            waiting=waiting.get(name, 0),
        )
        for name in sorted(tree.shares, key=lambda name: tree.paths[name][::-1])
    )


def _of(share: str, amounts: Mapping[tuple[str, str], float]) -> Amounts:
    return {item: amount for (name, item), amount in amounts.items() if name == share and amount}
