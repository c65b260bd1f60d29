"""hyperparameterTuningJobs: create, list, get, cancel and delete as in Google's API.

`study_views.py` has our own methods. Studies that came in another grammar, an older job or an Experiment,
are listed and shown here too.
"""

from dataclasses import dataclass

from trainshed.api import gcloud
from trainshed.api.call import Call, Json
from trainshed.api.job_view import wants_own_view
from trainshed.api.study_views import StudyViewHandlers
from trainshed.core.errors import Invalid, NotFound
from trainshed.core.tuning.study import Study, StudyKind
from trainshed.core.tuning.study_port import StudyQuery
from trainshed.service.studies import StudyRequest, StudyService
from trainshed.wire import job_filter, page, read_mask
from trainshed.wire.operation import render_operation
from trainshed.wire.pool import Offer
from trainshed.wire.tuning_job import TuningJobFields, parse_tuning_job, relocated, render_tuning_job

TUNED = tuple(kind for kind in StudyKind if kind is not StudyKind.ASKED)


@dataclass(slots=True)
class TuningJobHandlers:
    studies: StudyService
    own: StudyViewHandlers
    offer: Offer

    async def create(self, call: Call) -> Json:
        key = call.idempotency_key()
        draft = parse_tuning_job(call.body, self.offer.to(call.principal))
        request = StudyRequest(
            display_name=draft.display_name,
            spec=draft.spec,
            template=draft.template,
            limits=draft.limits,
            labels=draft.labels,
            extras=draft.extras,
            seed=draft.seed,
            points=draft.points,
            secrets=draft.secrets,
            submitter=call.submitter(),
        )
        try:
            study = await self.studies.create(call.path["project"], call.path["location"], request, key)
        except Invalid as error:
            raise relocated(error) from error
        return await self._render(call, study)

    async def get(self, call: Call) -> Json:
        if wants_own_view(call):
            return await self.own.view(call)
        study = await self._study(call)
        answer = await self._render(call, study)
        if gcloud.streams_logs(call.user_agent):
            answer.setdefault("endTime", answer.get("updateTime"))
        return answer

    async def find(self, call: Call) -> Json:
        if wants_own_view(call):
            return await self.own.rows(call, "hyperparameterTuningJobs")
        text = call.query.get("filter", "")
        mask = read_mask.parse_mask(call.query.get("readMask", ""), TuningJobFields)
        project, location = call.path["project"], call.path["location"]
        question = page.fingerprint("hyperparameterTuningJobs", project, location, text)
        listing = await self.studies.find(
            StudyQuery(
                project=project,
                location=location,
                kinds=TUNED,
                where=job_filter.parse_filter(text),
                limit=page.parse_size(call.query.get("pageSize")),
                cursor=call.pages.decode(call.query.get("pageToken", ""), question),
            )
        )
        rows = [
            read_mask.apply_mask(mask, await self._render(call, study, measurements=False))
            for study in listing.studies
        ]
        return call.pages.render("hyperparameterTuningJobs", rows, listing.next_cursor, question)

    async def cancel(self, call: Call) -> Json:
        study = await self._study(call)
        await self.studies.cancel(study.project, study.location, study.id)
        return {}

    async def delete(self, call: Call) -> Json:
        study = await self._study(call)
        return render_operation(await self.studies.delete(study.project, study.location, study.id))

    async def _render(self, call: Call, study: Study, *, measurements: bool = True) -> Json:
        trials = await self.studies.trials(study)
        return render_tuning_job(
            study,
            trials,
            enum_ints=call.enum_ints,
            base_url=call.base_url,
            measurements=measurements,
        )

    async def _study(self, call: Call) -> Study:
        identity = call.path["study"]
        if ":" in identity:
            raise NotFound(f"There is no method or hyperparameter tuning job '{identity}'.")
        study = await self.studies.get(call.path["project"], call.path["location"], identity)
        if study.kind is StudyKind.ASKED:
            raise NotFound(f"There is no hyperparameter tuning job {identity}: {study.name} is a study.")
        return study
