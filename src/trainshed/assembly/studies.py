"""What tunes: the loop of studies, what suggests points, and the services behind the API."""

from dataclasses import dataclass

from trainshed.assembly.shared import SharedParts
from trainshed.assembly.storage import Storage
from trainshed.control.measurement_hints import MeasurementHints
from trainshed.control.queue import WorkQueue
from trainshed.control.studies import StudyLoop
from trainshed.core.tuning.measurement_port import MeasurementReader
from trainshed.core.tuning.study import StudyKind
from trainshed.dialects.ai_platform.study_service import trial_request
from trainshed.dialects.kubernetes.experiment_trials import ExperimentTrials
from trainshed.metrics.line_pattern import printed_metrics
from trainshed.service.jobs import JobService
from trainshed.service.studies import StudyService
from trainshed.service.study_views import StudyViews
from trainshed.service.trial_jobs import TrialJobs
from trainshed.service.trials import TrialService
from trainshed.suggest.process import SuggestionProcess
from trainshed.wire.pool import Offer


@dataclass(frozen=True, slots=True, kw_only=True)
class Studies:
    loop: StudyLoop
    service: StudyService
    trials: TrialService
    views: StudyViews
    suggester: SuggestionProcess
    hints: MeasurementHints

    async def open(self) -> None:
        await self.loop.begin()

    async def close(self) -> None:
        await self.loop.queue.close()
        await self.hints.close()
        await self.suggester.close()


def make_studies(
    shared: SharedParts, storage: Storage, jobs: JobService, offer: Offer, measurements: MeasurementReader
) -> Studies:
    store, clock, queue = storage.store.studies, shared.clock, WorkQueue(shared.clock)
    suggester = SuggestionProcess()
    hints = MeasurementHints(logs=storage.logs, reports=storage.metrics)
    worded = {StudyKind.OLDER: trial_request, StudyKind.KATIB: ExperimentTrials(offer).request}
    trial_jobs = TrialJobs(jobs, storage.secrets, worded)
    loop = StudyLoop(
        studies=store,
        jobs=storage.store,
        measurements=measurements,
        hints=hints,
        suggester=suggester,
        clock=clock,
        queue=queue,
        submit=trial_jobs.submit,
        find=trial_jobs.find,
        cancel=trial_jobs.cancel,
        tell=storage.job_hints.tell,
    )
    storage.store.on_commit(loop.follow)
    return Studies(
        loop=loop,
        service=StudyService(
            store,
            clock,
            queue.hint,
            storage.secrets,
            check_template=jobs.check_spec,
            tell=storage.job_hints.tell,
            printed_metrics=printed_metrics,
        ),
        trials=TrialService(store, suggester, clock, queue.hint, storage.job_hints.tell),
        views=StudyViews(store, storage.store, clock),
        suggester=suggester,
        hints=hints,
    )
