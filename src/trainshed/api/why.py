"""customJobs:explain and customJobs/ID:why: when a possible or an existing job starts, and why not now.

customJobs:accelerator: which GPU a job could have.
"""

from dataclasses import dataclass

from trainshed.api.call import Call, Json
from trainshed.api.custom_jobs import read_request
from trainshed.service.why import WhyService
from trainshed.wire.explanation import render_explanation
from trainshed.wire.pool import Offer


@dataclass(slots=True)
class WhyHandlers:
    why: WhyService
    offer: Offer

    async def why_job(self, call: Call) -> Json:
        path = call.path
        job, explanation = await self.why.explain(
            path["project"], path["location"], path["job"], call.principal.sees
        )
        return {"name": job.name, "displayName": job.display_name, **render_explanation(explanation)}

    async def accelerator(self, call: Call) -> Json:
        """The GPU type here, for callers who give only a count."""
        return {"acceleratorType": await self.why.accelerator(call.query.get("machineType", ""))}

    async def explain(self, call: Call) -> Json:
        """Takes the body of a create and refuses as create does. Stores nothing."""
        request = read_request(call, self.offer)
        job, explanation = await self.why.foresee(
            call.path["project"], call.path["location"], request, call.principal.sees
        )
        return {"accepted": True, "displayName": job.display_name, **render_explanation(explanation)}
