"""ShareCycle: the part of a scheduling cycle that is about shares. `core/queue/admit.py` keeps it.

It counts what each share has, says whose turn it is, and refuses jobs for which their share has nothing left.
The first job that waits at a bound of a share is its head there: a smaller one passes it only where that
does not delay it. So no job starves behind smaller ones of its share. Jobs that have waited for long go by
age, whatever their share has used: so none starves behind those of other shares.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from heapq import merge
from math import inf
from operator import itemgetter
from typing import TypeAlias

from trainshed.core.jobs.job import Job, Requeue
from trainshed.core.queue.guarantee import Guarantees
from trainshed.core.queue.refusal import Named
from trainshed.core.queue.share import Stake
from trainshed.core.queue.share_use import Rank, ShareShortage, ShareUse
from trainshed.core.queue.snapshot import Reservation

LONG = timedelta(days=1)  # who has waited for so long goes by age
MOST_HEADS = 50  # bounds of shares that have a head of their own in a cycle

Turn: TypeAlias = tuple[bool, bool, int, Rank, datetime, str]
Ending: TypeAlias = tuple[datetime, Stake]  # when a job ends at the latest

CLOSE = 1e-6  # where so little is missing, it is counted anew: amounts are floats


@dataclass(frozen=True, slots=True)
class ShareHead:
    """The first job that waits at a bound of a share."""

    stake: Stake
    named: Named
    shortage: ShareShortage
    starts: datetime | None  # when its share has room at the latest


@dataclass(slots=True)
class ShareCycle:
    use: ShareUse
    rights: Guarantees
    now: datetime
    heads: dict[tuple[str, str], ShareHead] = field(default_factory=dict[tuple[str, str], ShareHead])
    # By size, until something is taken or given.
    starts: dict[str, datetime | None] = field(default_factory=dict[str, datetime | None])
    changes: int = 0  # how often something was taken or given

    def copy(self) -> "ShareCycle":
        return ShareCycle(self.use.copy(), self.rights, self.now, dict(self.heads))

    def take(self, stake: Stake) -> None:
        self.use.take(stake)
        self._forget()

    def give(self, stake: Stake) -> None:
        self.use.give(stake)
        self._forget()

    def _forget(self) -> None:
        self.changes += 1
        self.starts.clear()

    def turn(self, stake: Stake) -> Turn:
        """The smallest is next: who has a right, then by priority, use of the share and age; spot last."""
        share, waited = stake.share, self.now - stake.created_at
        rank = () if waited >= LONG or stake.is_spot else self.use.rank(share)
        has_no_right = not self.rights.has_right(stake, share) or self.rights.tree.is_parted(share)
        return stake.is_spot, has_no_right, -stake.priority, rank, stake.created_at, stake.job

    def shortage(
        self, stake: Stake, named: Named, ends: Sequence[Reservation]
    ) -> tuple[ShareShortage, datetime | None] | None:
        """Why the share has nothing for the job now, and when it has at the latest; None where it has.

        `ends` is all that is held, in the order in which it ends.
        """
        shortage = self.use.shortage(stake)
        if shortage is None:
            return None
        bound = shortage.share, shortage.user
        if stake.size not in self.starts:
            self.starts[stake.size] = self._earliest(stake, self.use, _endings(ends))
        starts = self.starts[stake.size]
        if starts is not None and len(self.heads) < MOST_HEADS:
            self.heads.setdefault(bound, ShareHead(stake, named, shortage, starts))
        return shortage, starts

    def pauses_until(self, stake: Stake, requeue: Requeue | None) -> datetime | None:
        """None for a job that does not pause, or has a right to its share; see `core/jobs/pause.py`."""
        if requeue is None or requeue.pauses_until is None or requeue.pauses_until <= self.now:
            return None
        return None if self.rights.is_guaranteed(stake) else requeue.pauses_until

    def goes_before(self, stake: Stake, other: Stake) -> bool:
        """Whether the other, which waits too, must not keep this job waiting.

        In a share one with a right passes one that asks for more than is guaranteed, until that has waited
        for long.
        """
        if stake.share != other.share or stake.is_spot or other.is_spot:
            return self.rights.goes_before(stake, other)
        return (
            stake.priority >= other.priority
            and self.rights.has_right(stake, stake.share)
            and not self.use.exceeds_nominal(stake.share, stake.amounts)
            and not self.rights.is_safe(other, other.share)
            and self.now - other.created_at < LONG
        )

    def delayed_head(self, stake: Stake, until: datetime, ends: Sequence[Reservation]) -> ShareHead | None:
        """A head of a share that could start later if this job had what it needs until then."""
        if stake.is_spot:
            return None
        path, use = self.use.tree.paths[stake.share], None
        for (share, user), head in self.heads.items():
            if share not in path or user not in ("", stake.user) or self.goes_before(stake, head.stake):
                continue
            if use is None:
                use = self.use.copy()
                use.take(stake)
            endings = merge(_endings(ends), [(until, stake)], key=_time)
            starts = self._earliest(head.stake, use, endings)
            if starts is None or head.starts is None or starts > head.starts:
                return head
        return None

    def _earliest(self, stake: Stake, use: ShareUse, endings: Iterable[Ending]) -> datetime | None:
        """When the share has room at the latest; the endings are in order."""
        later, short, given = use.copy(), use.shortage(stake), list[Stake]()
        missing = short.missing if short is not None else -inf
        for until, ending in endings:
            given.append(ending)
            # It stays short until as much as it misses has ended there: only then all is counted again.
            missing -= short.freed_by(ending, later.tree) if short is not None else 0
            if missing > CLOSE:
                continue
            later.take_all(given, -1)
            given.clear()
            if (short := later.shortage(stake)) is None:
                return max(until, self.now)
            missing = short.missing
        return None


def _endings(ends: Iterable[Reservation]) -> Iterator[Ending]:
    return ((item.until, item.stake) for item in ends if item.stake is not None)


_time = itemgetter(0)  # of an Ending


@dataclass(frozen=True, slots=True)
class ShareTurns:
    """By what the next job is chosen among the shares: the smallest turn is next."""

    shares: ShareCycle
    stake_of: Callable[[Job], Stake]

    @property
    def changes(self) -> int:
        """Rises when the turn of a job may be another one than before."""
        return self.shares.changes

    def __call__(self, job: Job) -> Turn:
        return self.shares.turn(self.stake_of(job))
