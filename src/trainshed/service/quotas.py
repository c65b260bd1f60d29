"""Use case of quotas: what the share of a project may have, what its jobs have, and what they wait for.

`api/quotas.py` calls it. Where no shares are set, the quotas are those of all machines. It writes nothing.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from trainshed.core.jobs.job import Job
from trainshed.core.ports import Backend, Store
from trainshed.core.queue.fleet import Node
from trainshed.core.queue.place import needs
from trainshed.core.queue.quota import ShareQuota, quotas
from trainshed.core.queue.share import UNDIVIDED, ShareTree
from trainshed.core.queue.share_use import capacities
from trainshed.core.queue.snapshot import is_waiting


@dataclass(frozen=True, slots=True)
class QuotaService:
    store: Store
    backend: Backend
    shares: Callable[[], ShareTree | None]

    async def of_project(self, project: str) -> tuple[ShareQuota, ...]:
        """Those of its share; of "-" those of the whole server."""
        tree, nodes = self.shares() or UNDIVIDED, await self.backend.nodes()
        # In a thread: many jobs may wait.
        return await asyncio.to_thread(_count, tree, project, nodes, await self.store.active())


def _count(
    tree: ShareTree, project: str, nodes: tuple[Node, ...], jobs: Iterable[Job]
) -> tuple[ShareQuota, ...]:
    running = [(job, job.status.admission) for job in jobs]
    return quotas(
        tree,
        tree.share_of(project),
        capacities(nodes),
        [tree.stake(job, admission.placements) for job, admission in running if admission is not None],
        [tree.stake(job, needs(job.spec, nodes)) for job, _ in running if is_waiting(job)],
    )
