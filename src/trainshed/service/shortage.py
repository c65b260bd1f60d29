"""Finds the GPUs that a job asks for and cannot have on the machines here.

`service/jobs.py` calls it at a submit. It looks at the machines as if they were empty, and writes nothing.
"""

from dataclasses import dataclass

from trainshed.core.jobs.job import JobSpec
from trainshed.core.jobs.limits import without_gpus
from trainshed.core.ports import Backend
from trainshed.core.queue.fleet import Fit
from trainshed.core.queue.place import Room, ways


@dataclass(frozen=True, slots=True)
class Shortage:
    backend: Backend
    fit: Fit

    async def missing_gpus(self, spec: JobSpec) -> str:
        """A sentence where replicas that ask for GPUs would run without; else empty."""
        if not any(pool.accelerators for pool in spec.pools):
            return ""
        nodes = await self.backend.nodes()
        sites = self.backend.prepare(spec).sites
        way = next(iter(ways(spec, nodes, self.fit, sites)), None)
        placements = Room(nodes).place(way.wanted, way.nodes) if way is not None else None
        return without_gpus(spec, placements) if placements is not None else ""
