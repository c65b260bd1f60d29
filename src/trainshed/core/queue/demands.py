"""Demands: what waiting jobs come to on the machines that are there, worked out once. Pure.

`core/queue/waiting_jobs.py` keeps one from cycle to cycle, as long as the machines and the shares stay the
same. `core/queue/admit.py` asks it. It answers as if everything were worked out anew, and decides nothing.
"""

from dataclasses import dataclass, field

from trainshed.core.jobs.job import Job
from trainshed.core.queue.fleet import Fit, Node
from trainshed.core.queue.place import Way, needs, ways
from trainshed.core.queue.shape import Kind, Shape
from trainshed.core.queue.share import Amounts, ShareTree, Stake, amounts_of, stake_of

MOST_KINDS = 10_000  # that are remembered


@dataclass(slots=True)
class Demands:
    nodes: tuple[Node, ...] = ()
    fit: Fit = Fit.SHRINK
    tree: ShareTree | None = None
    _ways: dict[Kind, tuple[Way, ...]] = field(default_factory=dict[Kind, tuple[Way, ...]])
    _amounts: dict[Kind, Amounts] = field(default_factory=dict[Kind, Amounts])  # what a demand counts for
    _stakes: dict[str, tuple[Job, Stake]] = field(default_factory=dict[str, tuple[Job, Stake]])

    _placeable: dict[str, tuple[Job, Stake | None]] = field(
        default_factory=dict[str, tuple[Job, Stake | None]]
    )

    def is_of(self, nodes: tuple[Node, ...], fit: Fit, tree: ShareTree | None) -> bool:
        """Whether it is about these machines, and these shares."""
        is_tree = (self.tree and self.tree.shares) is (tree and tree.shares)
        return is_tree and self.fit is fit and self.nodes == nodes

    def ways(self, job: Job, kind: Kind) -> tuple[Way, ...]:
        """All ways to place a job of this kind, the best first; none where it fits nowhere."""
        if (known := self._ways.get(kind)) is None:
            if len(self._ways) >= MOST_KINDS:
                self._ways.clear()
            known = self._ways[kind] = ways(job.spec, self.nodes, self.fit, kind[1])
        return known

    def stake(self, job: Job, shape: Shape) -> Stake:
        """What a waiting job will count for in its share. Say `forget` when it waits no more."""
        known = self._stakes.get(job.id)
        if known is None or known[0] is not job:
            known = self._stakes[job.id] = job, self.new_stake(job, shape)
        return known[1]

    def placeable(self, job: Job, shape: Shape) -> Stake | None:
        """The same; None for a job that fits nowhere."""
        known = self._placeable.get(job.id)
        if known is None or known[0] is not job:
            stake = self.stake(job, shape) if self.ways(job, (shape[0], shape[2])) else None
            known = self._placeable[job.id] = job, stake
        return known[1]

    def forget(self, id: str) -> None:
        self._stakes.pop(id, None)
        self._placeable.pop(id, None)

    def new_stake(self, job: Job, shape: Shape) -> Stake:
        """As `stake`, for a job that is not in the queue. It is not remembered."""
        kind = shape[0], shape[2]
        if (amounts := self._amounts.get(kind)) is None:
            if len(self._amounts) >= MOST_KINDS:
                self._amounts.clear()
            possible = self.ways(job, kind)
            amounts = amounts_of(job.spec, possible[0].wanted if possible else needs(job.spec))
            self._amounts[kind] = amounts
        return stake_of(job, amounts, shape[3])
