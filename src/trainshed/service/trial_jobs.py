"""TrialJobs: submits and cancels the jobs of trials, for the loop of studies."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from trainshed.core.jobs.job import Job, Owner, OwnerKind
from trainshed.core.jobs.secret_port import SecretStore
from trainshed.core.tuning.study import Study, StudyKind, Trial
from trainshed.core.tuning.trial_job import trial_origin, trial_spec, trial_title
from trainshed.service.jobs import JobRequest, JobService


@dataclass(frozen=True, slots=True)
class TrialJobs:
    jobs: JobService
    secrets: SecretStore
    # What the grammar of a study adds to the requests for its trials' jobs.
    worded: Mapping[StudyKind, Callable[[Study, Trial, JobRequest], JobRequest]]

    async def submit(self, study: Study, trial: Trial) -> Job:
        """The job of the trial. Submitting it again gives the same job."""
        request = JobRequest(
            display_name=trial_title(study, trial),
            spec=trial_spec(study, trial),
            labels=study.labels,
            origin=trial_origin(study.id, trial.number),
            owner=Owner(OwnerKind.STUDY, study.id),
            secrets=await self.secrets.read(study.id),
            submitter=study.submitter,
        )
        if (add_words := self.worded.get(study.kind)) is not None:
            request = add_words(study, trial, request)
        return await self.jobs.submit(study.project, study.location, request, _key(study, trial))

    async def find(self, study: Study, trial: Trial) -> Job | None:
        """The job that was submitted for a trial which does not name it; None where there is none."""
        return await self.jobs.store.keyed(study.project, _key(study, trial))

    async def cancel(self, job: Job) -> None:
        await self.jobs.cancel(job.project, job.location, job.id)


def _key(study: Study, trial: Trial) -> str:
    return f"study-{study.id}-{trial.number}"
