"""customJobs/ID:stacks: the current stacks of a running job's replicas."""

from dataclasses import dataclass

from trainshed.api.call import Call, Json
from trainshed.service.stacks import StackService
from trainshed.wire.stacks import render_stacks


@dataclass(slots=True)
class StackHandlers:
    stack_service: StackService

    async def look(self, call: Call) -> Json:
        path, task = call.path, call.query.get("task", "")
        job, dumps, groups, alive = await self.stack_service.of(
            path["project"], path["location"], path["job"], task
        )
        return {"name": job.name, "attempt": job.status.attempt, **render_stacks(dumps, groups, alive)}
