"""studies: the Vizier service as in Google's API. Clients ask for trials, run them, and tell how they went.

SuggestTrials and CheckTrialEarlyStoppingState answer with operations that are done. The latest of them can be
got again while the server lives. Whoever missed an answer asks again: a client gets its open trials again.
`study_views.py` has our own methods and views of studies.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field

from trainshed.api.call import Call, Handler, Json
from trainshed.api.job_view import wants_own_view
from trainshed.api.study_views import StudyViewHandlers
from trainshed.core.errors import AlreadyExists, Conflict, NotFound
from trainshed.core.ports import Clock
from trainshed.core.tuning.study import MAX_TRIALS, Study, StudyKind, Trial
from trainshed.core.tuning.study_port import StudyQuery
from trainshed.service.asked_studies import KINDS, AskedStudies
from trainshed.service.jobs import new_id
from trainshed.service.studies import StudyRequest
from trainshed.service.trials import TrialService
from trainshed.wire import page
from trainshed.wire.trial import render_trial
from trainshed.wire.vizier import (
    parse_completion,
    parse_lookup,
    parse_study,
    parse_suggest,
    parse_told,
    parse_trial,
    render_stopping_state,
    render_study,
    render_suggestion,
)

MOST_OPERATIONS = 1000  # that can be got again
MOST_DIGITS = 9  # of a trial's number: databases have 32 bits for it


@dataclass(slots=True)
class VizierHandlers:
    studies: AskedStudies
    trials: TrialService
    own: StudyViewHandlers
    clock: Clock
    _operations: OrderedDict[str, Json] = field(default_factory=OrderedDict[str, Json])

    async def create(self, call: Call) -> Json:
        name, spec = parse_study(call.body)
        request = StudyRequest(display_name=name, spec=spec, kind=StudyKind.ASKED, submitter=call.submitter())
        place = (call.path["project"], call.path["location"])
        try:
            study = await self.studies.create(*place, request, call.idempotency_key())
        except AlreadyExists:
            if not _loads(call):
                raise
            study = await self.studies.lookup(*place, name)
        return _render(call, study)

    async def get(self, call: Call) -> Json:
        study = await self.studies.get(*_place(call))
        return await self.own.view(call, study) if wants_own_view(call) else _render(call, study)

    async def find(self, call: Call) -> Json:
        if wants_own_view(call):
            return await self.own.rows(call, "studies", KINDS)
        project, location = call.path["project"], call.path["location"]
        fingerprint = page.fingerprint("studies", project, location)
        listing = await self.studies.find(
            StudyQuery(
                project=project,
                location=location,
                limit=page.parse_size(call.query.get("pageSize")),
                cursor=call.pages.decode(call.query.get("pageToken", ""), fingerprint),
            )
        )
        rows = [_render(call, study) for study in listing.studies]
        return call.pages.render("studies", rows, listing.next_cursor, fingerprint)

    async def lookup(self, call: Call) -> Json:
        name = parse_lookup(call.body)
        return _render(call, await self.studies.lookup(call.path["project"], call.path["location"], name))

    async def delete(self, call: Call) -> Json:
        await self.studies.delete(*_place(call))
        return {}

    async def cancel(self, call: Call) -> Json:
        study = await self.studies.get(*_place(call))
        raise Conflict(
            f"Clients run the trials of {study.name}: stop it, or delete it. No job can be cancelled."
        )

    def suggest(self, version: str) -> Handler:
        """Clients refuse an operation whose types are of another version."""

        async def answer(call: Call) -> Json:
            return await self._suggest(call, version)

        return answer

    async def _suggest(self, call: Call, version: str) -> Json:
        client, count = parse_suggest(call.body)
        study = await self.studies.get(*_place(call))
        trials = await self.trials.ask(study.project, study.location, study.id, client, count)
        study = await self.studies.get(study.project, study.location, study.id)
        fields = render_suggestion(
            study, client, trials, self.clock.now(), version=version, enum_ints=call.enum_ints
        )
        return self._kept(study.name, fields)

    async def create_trial(self, call: Call) -> Json:
        study = await self.studies.get(*_place(call))
        given = parse_trial(call.body, study.spec.space)
        return self._trial(call, study, await self.trials.create(*_place(call), given))

    async def get_trial(self, call: Call) -> Json:
        study, number = await self._of_trial(call)
        return self._trial(call, study, await self.trials.get(study, number))

    async def find_trials(self, call: Call) -> Json:
        """All of them where no size is asked for: the Python SDK looks at the first page only."""
        study = await self.studies.get(*_place(call))
        if wants_own_view(call):
            return await self.own.page(call)
        fingerprint = page.fingerprint("trials", study.name)
        size = page.parse_size(call.query.get("pageSize"), default=MAX_TRIALS, most=MAX_TRIALS)
        cursor = call.pages.decode(call.query.get("pageToken", ""), fingerprint)
        after = int(cursor[0]) if cursor is not None else 0
        trials = [t for t in await self.studies.studies.trials(study) if t.number > after]
        rows = [self._trial(call, study, trial) for trial in trials[:size]]
        following = (str(trials[size - 1].number), "") if len(trials) > size else None
        return call.pages.render("trials", rows, following, fingerprint)

    async def measure(self, call: Call) -> Json:
        measurement = parse_told(call.body)
        study, number = await self._of_trial(call)
        return self._trial(call, study, await self.trials.measure(*_place(call), number, measurement))

    async def complete(self, call: Call) -> Json:
        completion = parse_completion(call.body)
        study, number = await self._of_trial(call)
        trial = await self.trials.complete(*_place(call), number, completion.final, completion.infeasible)
        return self._trial(call, study, trial)

    async def delete_trial(self, call: Call) -> Json:
        _, number = await self._of_trial(call)
        await self.trials.delete(*_place(call), number)
        return {}

    def check_stopping(self, version: str) -> Handler:
        async def answer(call: Call) -> Json:
            return await self._check_stopping(call, version)

        return answer

    async def _check_stopping(self, call: Call, version: str) -> Json:
        study, number = await self._of_trial(call)
        why = await self.trials.should_stop(*_place(call), number)
        fields = render_stopping_state(study, number, bool(why), self.clock.now(), version=version)
        return self._kept(f"{study.name}/trials/{number}", fields)

    async def stop(self, call: Call) -> Json:
        study, number = await self._of_trial(call)
        return self._trial(call, study, await self.trials.stop_trial(*_place(call), number))

    async def optimal(self, call: Call) -> Json:
        study = await self.studies.get(*_place(call))
        trials = await self.studies.optimal(study)
        return {"optimalTrials": [self._trial(call, study, trial) for trial in trials]}

    async def operation(self, call: Call) -> Json:
        path = call.path
        parent = f"projects/{path['project']}/locations/{path['location']}/studies/{path['study']}"
        if "trial" in path:
            parent += f"/trials/{path['trial']}"
        name = f"{parent}/operations/{path['operation']}"
        if name not in self._operations:
            raise NotFound(f"There is no operation {name}.")
        return self._operations[name]

    def _kept(self, parent: str, fields: Mapping[str, object]) -> Json:
        name = f"{parent}/operations/{new_id()}"
        operation = self._operations[name] = {"name": name, **fields}
        if len(self._operations) > MOST_OPERATIONS:
            self._operations.popitem(last=False)
        return operation

    async def _of_trial(self, call: Call) -> tuple[Study, int]:
        study = await self.studies.get(*_place(call))
        text = call.path["trial"]
        if not (text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS):
            raise NotFound(f"There is no trial {study.name}/trials/{text}.")
        return study, int(text)

    def _trial(self, call: Call, study: Study, trial: Trial) -> Json:
        return render_trial(study, trial, enum_ints=call.enum_ints)


def _place(call: Call) -> tuple[str, str, str]:
    study = call.path["study"]
    if ":" in study:
        raise NotFound(f"There is no method or study '{study}'.")
    return call.path["project"], call.path["location"], study


def _loads(call: Call) -> bool:
    """Whether it is the Python SDK's create_or_load. It wants the study of that name if there is one.

    It looks the study up after ALREADY_EXISTS, but over REST it cannot tell that from other conflicts.
    """
    return call.headers.get("x-goog-api-client", "").startswith("model-builder/")


def _render(call: Call, study: Study) -> Json:
    return render_study(study, enum_ints=call.enum_ints)
