"""Our own methods of studies: views, pages of trials, analysis, curves, the best; stop, resume, add trials.

The same handlers serve hyperparameterTuningJobs and studies of the Vizier service.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from trainshed.api.call import Call, Json
from trainshed.api.job_view import OWN_VIEW
from trainshed.core.errors import Conflict, Invalid, NotFound, Violation
from trainshed.core.tuning.study import MAX_PARALLEL, MAX_TRIALS, Study, StudyKind, StudyLimits
from trainshed.core.tuning.study_port import StudyQuery
from trainshed.core.tuning.trial_outline import TrialQuery
from trainshed.service.studies import StudyService
from trainshed.service.study_views import StudyViews
from trainshed.service.trials import TrialService
from trainshed.wire import base, job_filter, page
from trainshed.wire.base import Message, int32, values
from trainshed.wire.faults import Faults
from trainshed.wire.study_row import (
    parse_trial_filter,
    parse_trial_order,
    render_analysis,
    render_best_point,
    render_curves,
    render_points,
    render_study_row,
    render_trial_row,
)
from trainshed.wire.trial import render_measurement
from trainshed.wire.tuning_job import parse_points, read_object, render_tuning_job
from trainshed.wire.vizier import render_study

MOST_CURVES = 200
CURVES = 50  # where nobody says how many
MOST_POINTS = 2000
POINTS = 500


class NewLimits(Message):
    """The body of `:resume`. What is absent stays as it is."""

    max_trial_count: int | None = int32(None)
    parallel_trial_count: int | None = int32(None)
    max_failed_trial_count: int | None = int32(None)


class NewTrials(Message):
    """The body of `:addTrials`."""

    points: tuple[Mapping[str, object], ...] = values(read_object)


@dataclass(slots=True)
class StudyViewHandlers:
    studies: StudyService
    trials: TrialService
    views: StudyViews

    async def view(self, call: Call, study: Study | None = None) -> Json:
        """The study as Google's API has it, but without trials, and its row of our own lists."""
        study = study or await self._study(call)
        if study.kind is StudyKind.ASKED:
            answer: Json = render_study(study, enum_ints=call.enum_ints)
        else:
            answer = render_tuning_job(study, None, enum_ints=call.enum_ints)
        return answer | {"trainshed": await self._row(study)}

    async def rows(self, call: Call, resource: str, kinds: tuple[StudyKind, ...] = ()) -> Json:
        """Rows of our own lists; of all kinds where none is said."""
        text = call.query.get("filter", "")
        project, location = call.path["project"], call.path["location"]
        question = page.fingerprint(resource, project, location, text, OWN_VIEW)
        listing = await self.studies.find(
            StudyQuery(
                project=project,
                location=location,
                kinds=kinds,
                where=job_filter.parse_filter(text, is_own=True),
                limit=page.parse_size(call.query.get("pageSize")),
                cursor=call.pages.decode(call.query.get("pageToken", ""), question),
            )
        )
        figures = await self.views.figures(listing.studies)
        rows = [render_study_row(study, figures[study.id]) for study in listing.studies]
        return call.pages.render(resource, rows, listing.next_cursor, question)

    async def page(self, call: Call) -> Json:
        study = await self._study(call)
        text, order_text = call.query.get("filter", ""), call.query.get("orderBy", "")
        order, is_descending = parse_trial_order(order_text)
        question = page.fingerprint("trials", study.id, text, order_text)
        place = call.pages.decode(call.query.get("pageToken", ""), question)
        query = TrialQuery(
            study=study.id,
            states=parse_trial_filter(text),
            order=order,
            is_descending=is_descending,
            limit=page.parse_size(call.query.get("pageSize")),
            offset=int(place[0]) if place else 0,
        )
        listing = await self.views.page(query)
        jobs = await self.views.jobs_of(listing.trials)
        rows: list[Json] = []
        for trial in listing.trials:
            row = render_trial_row(study, trial, jobs.get(trial.job), call.base_url)
            if call.flag("measurements"):
                row["measurements"] = [render_measurement(item) for item in trial.measurements]
            rows.append(row)
        next_place = query.offset + len(listing.trials)
        is_more = bool(listing.trials) and next_place < listing.total
        answer = call.pages.render("trials", rows, (str(next_place), "") if is_more else None, question)
        return answer | {"totalSize": listing.total}

    async def trial(self, call: Call) -> Json:
        study = await self._study(call)
        (trial,) = await self.views.of_numbers(study, _numbers(call.path["trial"], "trial")[:1])
        job = (await self.views.jobs_of([trial])).get(trial.job)
        return render_trial_row(study, trial, job, call.base_url)

    async def analysis(self, call: Call) -> Json:
        study = await self._study(call)
        return render_analysis(study, await self.views.analysis(study))

    async def curves(self, call: Call) -> Json:
        study = await self._study(call)
        if text := call.query.get("trials", ""):
            return render_curves(study, await self.views.of_numbers(study, _numbers(text)))
        most = min(call.number("most") or CURVES, MOST_CURVES)
        return render_curves(study, await self.views.best_first(study, most))

    async def points(self, call: Call) -> Json:
        study = await self._study(call)
        most = min(call.number("most") or POINTS, MOST_POINTS)
        return render_points(study, await self.views.points(study, most))

    async def best(self, call: Call) -> Json:
        study = await self._study(call)
        return render_best_point(study, await self.views.best(study))

    async def stop(self, call: Call) -> Json:
        study = await self._study(call)
        return await self._row(await self.studies.stop(study.project, study.location, study.id))

    async def resume(self, call: Call) -> Json:
        study = await self._study(call)
        limits = _limits(call.body, study.limits)
        if study.template is None and limits != study.limits:
            raise Conflict(
                f"Clients run the trials of {study.name}: it has no limits but its stopping rules."
            )
        return await self._row(await self.studies.resume(study.project, study.location, study.id, limits))

    async def add_trials(self, call: Call) -> Json:
        study = await self._study(call)
        faults = Faults("add_trials")
        body = base.read(NewTrials, call.body, faults)
        if not body.points and not faults.under("points"):
            faults.add("points", "is required: at least one point.")
        points = parse_points(body.points, study.spec, "points", faults)
        faults.settle()
        added = await self.studies.add_trials(study.project, study.location, study.id, points)
        return {"trials": [render_trial_row(study, trial, None, call.base_url) for trial in added]}

    async def stop_trial(self, call: Call) -> Json:
        study = await self._study(call)
        number = _numbers(call.path["trial"], "trial")[0]
        trial = await self.trials.stop_trial(study.project, study.location, study.id, number)
        return render_trial_row(study, trial, None, call.base_url)

    async def _row(self, study: Study) -> Json:
        return render_study_row(study, (await self.views.figures([study]))[study.id])

    async def _study(self, call: Call) -> Study:
        identity = call.path["study"]
        if ":" in identity:
            raise NotFound(f"There is no method or study '{identity}'.")
        return await self.studies.get(call.path["project"], call.path["location"], identity)


def _numbers(text: str, field: str = "trials") -> list[int]:
    words = [word.strip() for word in text.split(",")]
    if len(words) > MOST_CURVES or any(not w.isascii() or not w.isdigit() or len(w) > 9 for w in words):
        sentence = f"must be at most {MOST_CURVES} numbers of trials, such as 1,2,3, not '{text[:60]}'."
        raise Invalid((Violation(field, sentence),))
    return [int(word) for word in words]


def _limits(body: Json, limits: StudyLimits) -> StudyLimits:
    faults = Faults("resume")
    given = base.read(NewLimits, body, faults)
    for name, least, most in (
        ("max_trial_count", 1, MAX_TRIALS),
        ("parallel_trial_count", 1, MAX_PARALLEL),
        ("max_failed_trial_count", 0, MAX_TRIALS),
    ):
        count: int | None = getattr(given, name)
        if count is not None and not least <= count <= most:
            faults.add(name, f"must be between {least} and {most}, not {count}.")
    faults.settle()
    return replace(
        limits,
        trials=limits.trials if given.max_trial_count is None else given.max_trial_count,
        parallel=limits.parallel if given.parallel_trial_count is None else given.parallel_trial_count,
        failed=limits.failed if given.max_failed_trial_count is None else given.max_failed_trial_count,
    )
