"""Refuses jobs that their share could never have, in Google's words. `service/jobs.py` calls it at a submit.

A job that only has to wait for others of its share is not refused. It writes nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass

from trainshed.core.errors import Exhausted
from trainshed.core.jobs.job import Job
from trainshed.core.ports import Backend
from trainshed.core.queue.fleet import Fit
from trainshed.core.queue.place import needs, ways
from trainshed.core.queue.quota import TRAINING_METRIC, metric
from trainshed.core.queue.share import GPUS, ShareTree, in_amount
from trainshed.core.queue.share_use import ShareUse


@dataclass(frozen=True, slots=True)
class ShareLimits:
    shares: Callable[[], ShareTree | None]
    backend: Backend
    fit: Fit

    async def check(self, job: Job) -> None:
        """Raise Exhausted where the job alone is more than its share, or its user there, may have."""
        if (tree := self.shares()) is None:
            return
        nodes = await self.backend.nodes()
        sites = self.backend.prepare(job.spec).sites
        way = next(iter(ways(job.spec, nodes, self.fit, sites)), None)
        stake = tree.stake(job, needs(job.spec, nodes) if way is None else way.wanted)
        shortage = ShareUse(tree, {}).shortage(stake)
        if shortage is None:
            return
        asks = in_amount(shortage.item, shortage.needs)
        most = in_amount(shortage.item, shortage.most - shortage.kept)
        whose = f"One user of share '{shortage.share}'" if shortage.user else f"Share '{shortage.share}'"
        name = f"{TRAINING_METRIC}{_metric(shortage.item, job)}"
        raise Exhausted(
            f"The following quota metrics exceed quota limits: {name}. "
            f"{whose} may have {most}, and the job asks for {asks}: ask for less, or have the share raised."
        )


def _metric(item: str, job: Job) -> str:
    kinds = [pool.accelerator for pool in job.spec.pools if pool.accelerator]
    return metric(kinds[0] if item == GPUS and kinds else item)
