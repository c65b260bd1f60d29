"""Use case of stacks: where the programs of a job's replicas are now.

`api/stacks.py` calls it. Nothing is stored, and the programs do not notice.
"""

from dataclasses import dataclass

from trainshed.core.errors import Conflict, NotFound
from trainshed.core.jobs.job import Job
from trainshed.core.jobs.replica import Phase
from trainshed.core.jobs.stacks import MOST_REPLICAS, StackDump, StackGroup, grouped, spread
from trainshed.core.ports import Store
from trainshed.core.stats_port import Stacks
from trainshed.service.begun import PATIENCE, once_begun, why_not_begun


@dataclass(slots=True)
class StackService:
    store: Store
    stacks: Stacks | None  # None: the backend cannot take stacks
    patience: float = PATIENCE  # seconds that a replica may take to start

    async def of(
        self, project: str, location: str, job: str, task: str = ""
    ) -> tuple[Job, dict[str, StackDump], tuple[StackGroup, ...], int]:
        """The job, the stacks by task, the tasks grouped by place, and how many replicas are alive."""
        if self.stacks is None:
            raise Conflict("The backend of this server cannot tell where programs are.")
        stored = await once_begun(lambda: self.store.get(project, location, job), task, self.patience)
        replicas = {r.task: r for r in stored.status.replicas}
        if task and task not in replicas:
            names = ", ".join(list(replicas)[:5]) + (" …" if len(replicas) > 5 else "")
            raise NotFound(f"Job {stored.name} has no replica '{task[:60]}'; it has {names or 'none'}.")
        alive = [
            stored.key(replica)
            for name, replica in replicas.items()
            if replica.phase is Phase.RUNNING and (not task or name == task)
        ]
        dumps = await self.stacks.stacks(spread(alive, MOST_REPLICAS))
        if not dumps:
            who = f"{task} of job" if task else "Job"
            standing = f"{stored.status.state}{why_not_begun(stored)}".removesuffix(".")
            raise Conflict(f"{who} {stored.name} does not run (it is {standing}): nothing to look at.")
        by_task = {key.name.task: dump for key, dump in dumps.items()}
        return stored, by_task, grouped(by_task), len(alive)
