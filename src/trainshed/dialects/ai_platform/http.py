"""projects/P/jobs and projects/P/operations: AI Platform Training, the older of Google's APIs (`ml` v1)."""

from dataclasses import dataclass
from functools import partial

from trainshed.api.call import MOST_JOB, Call, Json, Method, row
from trainshed.core.errors import Conflict, Invalid, NotFound, Violation
from trainshed.core.job import Job
from trainshed.core.permission import Permission
from trainshed.core.query import JobQuery
from trainshed.dialects.ai_platform.filter import parse_training_filter
from trainshed.dialects.ai_platform.job import (
    etag,
    parse_labels,
    parse_training_job,
    render_ml_operation,
    render_training_job,
)
from trainshed.dialects.ai_platform.origin import TrainingJobRecord
from trainshed.dialects.ai_platform.service import AiPlatformJobService
from trainshed.service.jobs import JobRequest
from trainshed.wire import page
from trainshed.wire.pool import Offer


@dataclass(slots=True)
class AiPlatformHandlers:
    jobs: AiPlatformJobService
    offer: Offer

    async def create(self, call: Call) -> Json:
        key = call.idempotency_key()
        draft = parse_training_job(call.body, self.offer)
        request = JobRequest(
            display_name=draft.job_id,
            spec=draft.spec,
            labels=draft.labels,
            remarks=draft.remarks,
            submitter=call.submitter(),
        )
        record = TrainingJobRecord(job_id=draft.job_id, training_input=draft.training_input, request=key)
        return self._render(call, await self.jobs.create(call.path["project"], draft.region, request, record))

    async def get(self, call: Call) -> Json:
        return self._render(call, await self.jobs.get(call.path["project"], _name(call, "job")))

    async def find(self, call: Call) -> Json:
        project, text = call.path["project"], call.query.get("filter", "")
        fingerprint = page.fingerprint("ml.jobs", project, text)
        listing = await self.jobs.find(
            JobQuery(
                project=project,
                where=parse_training_filter(text),
                limit=page.parse_size(call.query.get("pageSize")),
                cursor=call.pages.decode(call.query.get("pageToken", ""), fingerprint),
            )
        )
        rows = [self._render(call, job) for job in listing.jobs]
        return call.pages.render("jobs", rows, listing.next_cursor, fingerprint)

    async def cancel(self, call: Call) -> Json:
        await self.jobs.cancel(call.path["project"], call.path["job"])
        return {}

    async def update(self, call: Call) -> Json:
        """Replaces the labels. Nothing else can change."""
        masked = [name.strip() for name in call.query.get("updateMask", "").split(",") if name.strip()]
        if others := [name for name in masked if name not in ("labels", "etag")]:
            sentence = f"names '{others[0][:100]}', which cannot be changed; labels can."
            raise Invalid((Violation("update_mask", sentence),))
        if "labels" not in masked:
            raise Invalid((Violation("update_mask", "must say what is to change: updateMask=labels."),))
        labels, seen = parse_labels(call.body)
        check = partial(_check_etag, seen)
        return self._render(
            call, await self.jobs.relabel(call.path["project"], _name(call, "job"), labels, check)
        )

    async def operations(self, call: Call) -> Json:
        project, text = call.path["project"], call.query.get("filter", "")
        if text:
            raise Invalid((Violation("filter", "Operations cannot be filtered."),))
        fingerprint = page.fingerprint("ml.operations", project)
        size = page.parse_size(call.query.get("pageSize"))
        at = call.pages.decode(call.query.get("pageToken", ""), fingerprint)
        operations = await self.jobs.operations(project, size + 1, at[0] if at else "")
        rows = [render_ml_operation(item) for item in operations[:size]]
        cursor = (operations[size - 1].name, "") if len(operations) > size else None
        return call.pages.render("operations", rows, cursor, fingerprint)

    async def operation(self, call: Call) -> Json:
        return render_ml_operation(await self.jobs.operation(call.path["project"], _name(call, "operation")))

    async def cancel_operation(self, call: Call) -> Json:
        """Every operation is done as soon as it exists: cancelling one changes nothing."""
        await self.jobs.operation(call.path["project"], call.path["operation"])
        return {}

    def _render(self, call: Call, job: Job) -> Json:
        return render_training_job(job, base_url=call.base_url)


def ai_platform_methods(jobs: AiPlatformHandlers) -> tuple[Method, ...]:
    parent = "/v1/projects/{project}"
    job, operation = f"{parent}/jobs/{{job}}", f"{parent}/operations/{{operation}}"
    return (
        row("POST", f"{parent}/jobs", jobs.create, Permission.JOBS_CREATE, most_body=MOST_JOB),
        row("GET", f"{parent}/jobs", jobs.find, Permission.JOBS_LIST),
        row("POST", f"{job}:cancel", jobs.cancel, Permission.JOBS_CANCEL),
        row("GET", job, jobs.get, Permission.JOBS_GET),
        row("PATCH", job, jobs.update, Permission.JOBS_UPDATE),
        row("GET", f"{parent}/operations", jobs.operations, Permission.OPERATIONS_GET),
        row("POST", f"{operation}:cancel", jobs.cancel_operation, Permission.JOBS_CANCEL),
        row("GET", operation, jobs.operation, Permission.OPERATIONS_GET),
    )


def _check_etag(seen: str, job: Job) -> None:
    if seen and seen != etag(job):
        raise Conflict("The job's labels were changed since it was read (its etag differs): read it again.")


def _name(call: Call, what: str) -> str:
    name = call.path[what]
    if ":" in name:
        raise NotFound(f"There is no method or {what} '{name[:200]}'.")
    return name
