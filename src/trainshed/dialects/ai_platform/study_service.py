"""Use cases of jobs of AI Platform Training that tune: each is a study, known by the jobId its owner chose.

`http.py` calls it, beside `service.py`, which has the jobs that do not tune. A jobId is used once in a
project, whichever of the two it names.
"""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from trainshed.core.errors import AlreadyExists, Conflict, Invalid, Violation
from trainshed.core.tuning.study import Study, StudyKind, Trial
from trainshed.core.tuning.study_port import StudyPage, StudyQuery
from trainshed.core.tuning.trial_job import trial_origin
from trainshed.dialects.ai_platform.origin import (
    TrainingJobRecord,
    key_of,
    record_from,
    trial_words,
    with_roles,
)
from trainshed.dialects.ai_platform.service import AiPlatformJobService
from trainshed.dialects.ai_platform.tuning import with_trial_folder
from trainshed.service.jobs import JobRequest
from trainshed.service.studies import StudyRequest, StudyService

_RESUMED = "training_input.hyperparameters.resume_previous_job_id"


@dataclass(slots=True)
class AiPlatformStudyService:
    studies: StudyService
    jobs: AiPlatformJobService

    async def create(
        self, project: str, region: str, request: StudyRequest, record: TrainingJobRecord, resumed: str
    ) -> Study:
        """Store a new study. Its jobId must be new, except for a repeat with the same idempotency key."""
        assert request.template is not None, "a job that tunes has a program"
        if await self.studies.store.keyed_study(project, key_of(record.job_id)) is None:
            await self.jobs.check_output(project, request.template.output)
        if await self.jobs.jobs.store.keyed(project, key_of(record.job_id)) is not None:
            raise _taken(record.job_id, project)
        if resumed:
            earlier = await self._earlier(project, resumed)
            request = replace(request, spec=replace(request.spec, prior_studies=(earlier,)))
        mine = replace(record, request=record.request or secrets.token_hex(8))
        request = replace(request, kind=StudyKind.OLDER, record=mine.as_json())
        try:
            stored = await self.studies.create(project, region, request, key_of(mine.job_id))
        except AlreadyExists as error:
            raise _taken(mine.job_id, project) from error
        if record_from(stored.record).request != mine.request:
            raise _taken(mine.job_id, project)
        return stored

    async def find_one(self, project: str, job_id: str) -> Study | None:
        """The study of that jobId; None where there is none."""
        if not job_id.isprintable():
            return None
        return await self.studies.store.keyed_study(project, key_of(job_id))

    async def find(self, query: StudyQuery) -> StudyPage:
        return await self.studies.find(replace(query, kinds=(StudyKind.OLDER,)))

    async def trials(self, study: Study) -> tuple[Trial, ...]:
        return await self.studies.trials(study)

    async def cancel(self, study: Study) -> None:
        try:
            await self.studies.cancel(study.project, study.location, study.id)
        except Conflict as error:
            latest = await self.studies.get(study.project, study.location, study.id)
            if not latest.is_final:
                raise
            raise Conflict(
                f"Job {study.display_name} is in state {latest.status.state} and can no longer be cancelled."
            ) from error

    async def relabel(self, study: Study, labels: Mapping[str, str], check: Callable[[Study], None]) -> Study:
        """Replace all labels. `check` is called with the current study and may raise."""
        return await self.studies.relabel(study.project, study.location, study.id, labels, check)

    async def _earlier(self, project: str, job_id: str) -> str:
        study = await self.find_one(project, job_id)
        if study is None:
            sentence = f"names a job that is not there or does not tune, '{job_id[:100]}'."
            raise Invalid((Violation(_RESUMED, sentence),))
        return study.id


def trial_request(study: Study, trial: Trial, request: JobRequest) -> JobRequest:
    """The request for a trial's job, with the older API's words. `service/trial_jobs.py` calls it."""
    record = record_from(study.record)
    template = study.template
    folder = template.output if template is not None else ""
    pools = with_roles(with_trial_folder(request.spec.pools, folder, trial.number))
    origin = trial_words(record, trial_origin(study.id, trial.number))
    return replace(request, spec=replace(request.spec, pools=pools), origin=origin)


def _taken(job_id: str, project: str) -> AlreadyExists:
    return AlreadyExists(
        f"A job named {job_id} exists already in project {project}. A job's name is used once; "
        "give this one another."
    )
