"""customJobs/ID:results: where the results of a job are, and which of them are complete."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from trainshed.api.call import Call, Json
from trainshed.core.errors import TrainshedError
from trainshed.core.outputs import CommittedOutputs
from trainshed.service.jobs import JobService
from trainshed.wire.results import render_results


@dataclass(frozen=True, slots=True)
class ResultHandlers:
    jobs: JobService
    committed: Callable[[str, str], Awaitable[CommittedOutputs]]  # by the project and place of results

    async def look(self, call: Call) -> Json:
        path = call.path
        job = await self.jobs.get(path["project"], path["location"], path["job"])
        output = job.spec.output
        try:
            return render_results(output, await self.committed(job.project, output))
        except TrainshedError as error:  # of the bucket: an s3:// store may be known to the program alone
            return {**render_results(output, CommittedOutputs()), "note": str(error)}
