"""trainingPipelines: create, list, get, cancel and delete as in Google's API. Each pipeline is one job."""

from dataclasses import dataclass

from trainshed.api.call import Call, Json
from trainshed.core.errors import Invalid, NotFound
from trainshed.core.jobs.job import PIPELINE, Job
from trainshed.core.query import JobQuery
from trainshed.service.jobs import JobRequest
from trainshed.service.pipelines import PipelineService
from trainshed.wire import job_filter, page, read_mask
from trainshed.wire.operation import render_operation
from trainshed.wire.pool import Offer
from trainshed.wire.training_pipeline import (
    CUSTOM_TASK,
    TrainingPipeline,
    parse_training_pipeline,
    relocated,
    render_training_pipeline,
)


@dataclass(slots=True)
class PipelineHandlers:
    pipelines: PipelineService
    offer: Offer

    async def create(self, call: Call) -> Json:
        key = call.idempotency_key()
        draft = parse_training_pipeline(call.body, self.offer.to(call.principal))
        request = JobRequest(
            display_name=draft.display_name,
            spec=draft.spec,
            labels=draft.labels,
            extras=draft.extras,
            origin=draft.origin,
            secrets=draft.secrets,
            submitter=call.submitter(),
        )
        try:
            job = await self.pipelines.submit(call.path["project"], call.path["location"], request, key)
        except Invalid as error:
            raise relocated(error) from error
        return _render(call, job)

    async def get(self, call: Call) -> Json:
        return _render(call, await self.pipelines.get(*_place(call)))

    async def find(self, call: Call) -> Json:
        text, order = call.query.get("filter", ""), call.query.get("orderBy", "")
        mask = read_mask.parse_mask(call.query.get("readMask", ""), TrainingPipeline)
        project, location = call.path["project"], call.path["location"]
        fingerprint = page.fingerprint("trainingPipelines", project, location, text, order)
        listing = await self.pipelines.jobs.find(
            JobQuery(
                project=project,
                location=location,
                where=job_filter.parse_filter(text, {"training_task_definition": CUSTOM_TASK}),
                limit=page.parse_size(call.query.get("pageSize")),
                cursor=call.pages.decode(call.query.get("pageToken", ""), fingerprint),
                order=job_filter.parse_order_by(order),
                kind=PIPELINE,
            )
        )
        rows = [read_mask.apply_mask(mask, _render(call, job)) for job in listing.jobs]
        return call.pages.render("trainingPipelines", rows, listing.next_cursor, fingerprint)

    async def cancel(self, call: Call) -> Json:
        await self.pipelines.cancel(*_place(call))
        return {}

    async def delete(self, call: Call) -> Json:
        return render_operation(await self.pipelines.delete(*_place(call)))


def _place(call: Call) -> tuple[str, str, str]:
    pipeline = call.path["pipeline"]
    if ":" in pipeline:
        raise NotFound(f"There is no method or training pipeline '{pipeline}'.")
    return call.path["project"], call.path["location"], pipeline


def _render(call: Call, job: Job) -> Json:
    return render_training_pipeline(job, enum_ints=call.enum_ints, base_url=call.base_url)
