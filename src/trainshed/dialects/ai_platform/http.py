"""projects/P/jobs and projects/P/operations: AI Platform Training, the older of Google's APIs (`ml` v1)."""

from dataclasses import dataclass
from datetime import datetime
from functools import partial

from trainshed.api.call import MOST_JOB, Call, Json, Method, row
from trainshed.core.accounts.permission import Permission
from trainshed.core.errors import AlreadyExists, Conflict, Invalid, NotFound, Violation
from trainshed.core.jobs.job import Job
from trainshed.core.query import JobQuery
from trainshed.core.tuning.study import Study
from trainshed.core.tuning.study_port import StudyQuery
from trainshed.dialects.ai_platform.filter import parse_training_filter
from trainshed.dialects.ai_platform.job import (
    TrainingJobDraft,
    etag,
    parse_labels,
    parse_training_job,
    render_ml_operation,
    render_training_job,
    render_training_study,
)
from trainshed.dialects.ai_platform.origin import TrainingJobRecord
from trainshed.dialects.ai_platform.service import AiPlatformJobService
from trainshed.dialects.ai_platform.study_service import AiPlatformStudyService
from trainshed.service.jobs import JobRequest
from trainshed.service.studies import StudyRequest
from trainshed.wire import page
from trainshed.wire.pool import Offer
from trainshed.wire.scalars import time_text


@dataclass(slots=True)
class AiPlatformHandlers:
    jobs: AiPlatformJobService
    studies: AiPlatformStudyService
    offer: Offer

    async def create(self, call: Call) -> Json:
        key = call.idempotency_key()
        draft = parse_training_job(call.body, self.offer.to(call.principal))
        if draft.tuning is not None:
            return await self._create_study(call, draft, key)
        project = call.path["project"]
        if await self.studies.find_one(project, draft.job_id) is not None:
            raise AlreadyExists(f"A job named {draft.job_id} exists already in project {project}.")
        request = JobRequest(
            display_name=draft.job_id,
            spec=draft.spec,
            labels=draft.labels,
            remarks=draft.remarks,
            submitter=call.submitter(),
        )
        record = TrainingJobRecord(job_id=draft.job_id, training_input=draft.training_input, request=key)
        return self._render(call, await self.jobs.create(project, draft.region, request, record))

    async def _create_study(self, call: Call, draft: TrainingJobDraft, key: str) -> Json:
        assert draft.tuning is not None
        spec, limits = draft.tuning
        request = StudyRequest(
            display_name=draft.job_id,
            spec=spec,
            limits=limits,
            template=draft.spec,
            labels=draft.labels,
            submitter=call.submitter(),
        )
        record = TrainingJobRecord(job_id=draft.job_id, training_input=draft.training_input, request=key)
        study = await self.studies.create(call.path["project"], draft.region, request, record, draft.resumed)
        return await self._render_study(study)

    async def get(self, call: Call) -> Json:
        project, name = call.path["project"], _name(call, "job")
        if (study := await self.studies.find_one(project, name)) is not None:
            return await self._render_study(study)
        return self._render(call, await self.jobs.get(project, name))

    async def find(self, call: Call) -> Json:
        project, text = call.path["project"], call.query.get("filter", "")
        fingerprint = page.fingerprint("ml.jobs", project, text)
        where, size = parse_training_filter(text), page.parse_size(call.query.get("pageSize"))
        cursor = call.pages.decode(call.query.get("pageToken", ""), fingerprint)
        jobs = await self.jobs.find(JobQuery(project=project, where=where, limit=size, cursor=cursor))
        studies = await self.studies.find(StudyQuery(project=project, where=where, limit=size, cursor=cursor))
        # Both come newest first, and both go on behind the same place.
        both = sorted((*jobs.jobs, *studies.studies), key=_age, reverse=True)
        rows = [
            await self._render_study(item) if isinstance(item, Study) else self._render(call, item)
            for item in both[:size]
        ]
        is_more = len(both) > size or jobs.next_cursor is not None or studies.next_cursor is not None
        last = (
            (time_text(both[size - 1].created_at), both[size - 1].id)
            if is_more and len(both) >= size
            else None
        )
        return call.pages.render("jobs", rows, last, fingerprint)

    async def cancel(self, call: Call) -> Json:
        project, name = call.path["project"], call.path["job"]
        if (study := await self.studies.find_one(project, name)) is not None:
            await self.studies.cancel(study)
        else:
            await self.jobs.cancel(project, name)
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
        if (study := await self.studies.find_one(call.path["project"], _name(call, "job"))) is not None:
            return await self._render_study(await self.studies.relabel(study, labels, check))
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

    async def _render_study(self, study: Study) -> Json:
        return render_training_study(study, await self.studies.trials(study))

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


def _age(item: Job | Study) -> tuple[datetime, str]:
    return item.created_at, item.id


def _check_etag(seen: str, job: Job | Study) -> None:
    if seen and seen != etag(job):
        raise Conflict("The job's labels were changed since it was read (its etag differs): read it again.")


def _name(call: Call, what: str) -> str:
    name = call.path[what]
    if ":" in name:
        raise NotFound(f"There is no method or {what} '{name[:200]}'.")
    return name
