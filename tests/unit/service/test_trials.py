"""Asking for trials and telling of them, over a store in a file: what is given, kept and refused."""

import asyncio
import math
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.builders import T0, a_pool, seconds
from trainshed.core.errors import AlreadyExists, Conflict, Invalid, NotFound, Violation
from trainshed.core.jobs.job import JobSpec
from trainshed.core.tuning.given_trial import GivenTrial
from trainshed.core.tuning.measurement import Measurement
from trainshed.core.tuning.search_space import Parameter, ParameterKind, SearchSpace, TrialPoint
from trainshed.core.tuning.stopping_rule import StoppingKind, StoppingRule
from trainshed.core.tuning.study import (
    RuntimeLimit,
    Selection,
    Study,
    StudyKind,
    StudyLimits,
    StudySpec,
    StudyState,
    StudyStopping,
    Trial,
    TrialState,
)
from trainshed.core.tuning.suggestion_port import Objective, SuggestionRequest
from trainshed.service.asked_studies import AskedStudies
from trainshed.service.studies import StudyRequest, StudyService
from trainshed.service.trials import TrialService
from trainshed.store import SqlStore

HERE = ("p", "us-central1")
COUNT = Parameter(id="n", kind=ParameterKind.INTEGER, low=1, high=1000)
SPEC = StudySpec(space=SearchSpace((COUNT,)), objectives=(Objective("accuracy", maximize=True),))
REQUEST = StudyRequest(display_name="s", spec=SPEC, kind=StudyKind.ASKED)


@dataclass
class SetClock:
    time: datetime = T0

    def now(self) -> datetime:
        return self.time


@dataclass
class CountingSuggester:
    """Suggests the numbers of trials, as long as the space has them. Yields once, as a real one would."""

    requests: list[SuggestionRequest] = field(default_factory=list[SuggestionRequest])

    async def suggest(self, request: SuggestionRequest) -> Sequence[TrialPoint]:
        self.requests.append(request)
        await asyncio.sleep(0)
        last = int(request.space.parameters[0].high)
        taken = {result.point["n"] for result in request.trials}
        return [{"n": n} for n in range(1, last + 1) if n not in taken][: request.count]


@dataclass
class TrialSetup:
    store: SqlStore
    clock: SetClock = field(default_factory=SetClock)
    suggester: CountingSuggester = field(default_factory=CountingSuggester)
    hints: list[str] = field(default_factory=list[str])
    told: list[int] = field(default_factory=list[int])  # versions of studies

    @property
    def studies(self) -> StudyService:
        return StudyService(self.store.studies, self.clock, self.hints.append)

    def trials(self) -> TrialService:
        return TrialService(self.store.studies, self.suggester, self.clock, self.hints.append, self._tell)

    def _tell(self, study: Study, is_deleted: bool) -> None:
        assert not is_deleted
        self.told.append(study.version)

    async def study(self, **spec: object) -> str:
        request = replace(REQUEST, spec=replace(SPEC, **spec))
        return (await self.studies.create(*HERE, request)).id

    async def stored(self, study: str) -> Study:
        return await self.studies.get(*HERE, study)

    async def put(self, study: str, state: StudyState) -> None:
        stored = await self.stored(study)
        await self.store.studies.write_study(replace(stored, status=replace(stored.status, state=state)))


@pytest.fixture
async def setup(tmp_path: Path) -> AsyncIterator[TrialSetup]:
    store = SqlStore(f"sqlite:///{tmp_path}/jobs.db")
    await store.start()
    yield TrialSetup(store)
    await store.close()


def numbers(trials: Sequence[Trial]) -> list[int]:
    return [trial.number for trial in trials]


def value(accuracy: float, step: int = 0, elapsed: float = 0.0) -> Measurement:
    return Measurement(step, elapsed, {"accuracy": accuracy})


# ---- creating


async def test_a_study_that_was_acknowledged_is_answered_though_its_jobs_would_be_refused_now(
    setup: TrialSetup,
):
    async def refuse(template: JobSpec, parent: tuple[str, str], submitter: str) -> None:
        raise Invalid((Violation("job_spec", "is not for now."),))

    template = JobSpec(pools=(a_pool(),))
    request = StudyRequest(display_name="s", spec=SPEC, kind=StudyKind.TUNING, template=template)
    first = await setup.studies.create(*HERE, request, "key")
    later = replace(setup.studies, check_template=refuse)
    assert (await later.create(*HERE, request, "key")).id == first.id
    with pytest.raises(Invalid):
        await later.create(*HERE, request, "other")


async def refusal(setup: TrialSetup, stopping: StudyStopping) -> Violation:
    with pytest.raises(Invalid) as caught:
        await setup.study(stopping=stopping)
    [violation] = caught.value.violations
    return violation


CONSTRAINT = "study_spec.study_stopping_config.maximum_runtime_constraint"


async def test_a_study_whose_end_time_has_passed_is_refused(setup: TrialSetup) -> None:
    violation = await refusal(setup, StudyStopping(most_runtime=RuntimeLimit(end_at=T0)))
    assert violation.field == f"{CONSTRAINT}.end_time"
    assert f"{T0:%Y-%m-%dT%H:%M:%SZ}" in violation.description
    await setup.study(stopping=StudyStopping(most_runtime=RuntimeLimit(end_at=T0 + seconds(1))))


@pytest.mark.parametrize("most", [RuntimeLimit(length=seconds(59)), RuntimeLimit(end_at=T0 + seconds(59))])
@pytest.mark.parametrize("least", [RuntimeLimit(length=seconds(60)), RuntimeLimit(end_at=T0 + seconds(60))])
async def test_a_study_that_must_end_before_it_may_is_refused(
    setup: TrialSetup, most: RuntimeLimit, least: RuntimeLimit
) -> None:
    violation = await refusal(setup, StudyStopping(most_runtime=most, least_runtime=least))
    assert violation.field == CONSTRAINT
    assert "in 59 s, before the minimumRuntimeConstraint in 60 s" in violation.description
    await setup.study(stopping=StudyStopping(most_runtime=least, least_runtime=least))


async def test_a_study_is_given_again_to_its_key_after_its_end_time(setup: TrialSetup) -> None:
    spec = replace(SPEC, stopping=StudyStopping(most_runtime=RuntimeLimit(end_at=T0 + seconds(5))))
    request = replace(REQUEST, spec=spec)
    stored = await setup.studies.create(*HERE, request, "key")
    setup.clock.time = T0 + seconds(9)
    assert (await setup.studies.create(*HERE, request, "key")).id == stored.id


# ---- hints


async def test_every_stored_change_is_told_with_its_version_and_nothing_else_is(setup: TrialSetup) -> None:
    study, trials = await setup.study(), setup.trials()
    first, second = await trials.ask(*HERE, study, "a", 2)
    await trials.ask(*HERE, study, "a", 2)  # the same ones: nothing is stored
    await trials.measure(*HERE, study, first.number, value(0.5, 1))
    await trials.stop_trial(*HERE, study, second.number)
    await trials.complete(*HERE, study, first.number)
    await trials.create(*HERE, study, GivenTrial(point={"n": 9}))
    await trials.delete(*HERE, study, second.number)
    assert setup.told == [2, 3, 4, 5, 6, 7]
    assert (await setup.stored(study)).version == 7


# ---- ask


async def test_a_client_gets_new_trials_and_the_study_runs(setup: TrialSetup) -> None:
    study, trials = await setup.study(), setup.trials()
    given = await trials.ask(*HERE, study, "a", 2)
    assert [(t.number, t.state, t.client, t.point) for t in given] == [
        (1, TrialState.ACTIVE, "a", {"n": 1}),
        (2, TrialState.ACTIVE, "a", {"n": 2}),
    ]
    stored = await setup.stored(study)
    assert (stored.status.state, stored.status.started_at) == (StudyState.RUNNING, T0)


async def test_a_client_gets_its_open_trials_again_and_more_where_it_asks_for_more(setup: TrialSetup) -> None:
    study, trials = await setup.study(), setup.trials()
    first = await trials.ask(*HERE, study, "a", 2)
    assert await trials.ask(*HERE, study, "a", 2) == first
    assert await trials.ask(*HERE, study, "a", 1) == first[:1]
    assert numbers(await trials.ask(*HERE, study, "a", 3)) == [1, 2, 3]
    assert numbers(await trials.ask(*HERE, study, "b", 1)) == [4]


async def test_a_client_without_a_name_always_gets_new_trials(setup: TrialSetup) -> None:
    study, trials = await setup.study(), setup.trials()
    assert numbers(await trials.ask(*HERE, study, "", 1)) == [1]
    assert numbers(await trials.ask(*HERE, study, "", 1)) == [2]


async def test_a_hundred_clients_that_ask_at_once_get_a_hundred_trials(setup: TrialSetup) -> None:
    study, trials = await setup.study(), setup.trials()
    answers = await asyncio.gather(*(trials.ask(*HERE, study, f"c{n}", 1) for n in range(100)))
    assert sorted(number for answer in answers for number in numbers(answer)) == list(range(1, 101))
    assert len({str(answer[0].point) for answer in answers}) == 100
    assert len(setup.suggester.requests) == 100, "nothing was computed twice"


async def test_a_trial_that_waits_is_given_before_a_new_one(setup: TrialSetup) -> None:
    study, trials = await setup.study(), setup.trials()
    await trials.create(*HERE, study, GivenTrial(point={"n": 7}))
    first, second = await trials.ask(*HERE, study, "a", 2)
    assert (first.point, first.is_given, first.client, first.started_at) == ({"n": 7}, True, "a", T0)
    assert not second.is_given


async def test_trials_of_earlier_studies_are_known_to_the_suggester(setup: TrialSetup) -> None:
    trials, before = setup.trials(), await setup.study()
    await trials.ask(*HERE, before, "a", 1)
    await trials.complete(*HERE, before, 1, value(0.5))
    await trials.ask(*HERE, await setup.study(prior_studies=(before,)), "a", 1)
    [prior] = setup.suggester.requests[-1].priors
    assert (prior.point, prior.values) == ({"n": 1}, (0.0,))  # the median of its own study


async def test_an_earlier_study_is_one_of_the_project_named_by_id_or_in_full(setup: TrialSetup) -> None:
    before = await setup.stored(await setup.study())
    study = await setup.study(prior_studies=(before.id, before.name))
    assert (await setup.stored(study)).spec.prior_studies == (before.id,)


async def test_an_earlier_study_of_another_project_is_refused_as_one_that_is_not_there(
    setup: TrialSetup,
) -> None:
    foreign = await setup.stored(await setup.study())
    inside = foreign.name.replace("projects/p/", "projects/q/")
    for given in (foreign.id, foreign.name, inside, "77", "projects/q/locations/us-central1/studies/77"):
        spec = replace(SPEC, prior_studies=(given,))
        with pytest.raises(Invalid) as refused:
            await setup.studies.create("q", HERE[1], StudyRequest(display_name="s", spec=spec))
        [violation] = refused.value.violations
        assert violation == Violation(
            "study_spec.prior_study_names[0]", f"names a study that is not there, {given!r}."
        )


async def test_a_name_of_an_earlier_study_with_a_wrong_location_is_refused(setup: TrialSetup) -> None:
    before = await setup.stored(await setup.study())
    for wrong in (
        before.name.replace("us-central1", "europe-west4"),
        before.name.replace("projects/p/", "projects/q/"),
    ):
        with pytest.raises(Invalid):
            await setup.study(prior_studies=(wrong,))


async def test_nothing_is_learned_from_another_project_that_a_stored_study_names(setup: TrialSetup) -> None:
    trials, foreign = setup.trials(), await setup.studies.create("q", HERE[1], REQUEST)
    await trials.ask("q", HERE[1], foreign.id, "a", 1)
    await trials.complete("q", HERE[1], foreign.id, 1, value(0.5))
    study = await setup.stored(await setup.study())
    spec = replace(study.spec, prior_studies=(foreign.id,))  # as older servers stored it
    await setup.store.studies.write_study(replace(study, spec=spec))
    await trials.ask(*HERE, study.id, "a", 1)
    assert setup.suggester.requests[-1].priors == ()


async def test_a_study_goes_on_without_an_earlier_one_that_was_deleted(setup: TrialSetup) -> None:
    trials, before = setup.trials(), await setup.study()
    await trials.ask(*HERE, before, "a", 1)
    await trials.complete(*HERE, before, 1, value(0.5))
    study = await setup.study(prior_studies=(before,))
    await setup.studies.delete(*HERE, before)
    assert numbers(await trials.ask(*HERE, study, "a", 1)) == [1]
    assert setup.suggester.requests[-1].priors == ()


async def test_a_study_whose_points_are_all_given_has_no_more(setup: TrialSetup) -> None:
    study, trials = await setup.study(space=SearchSpace((replace(COUNT, high=2),))), setup.trials()
    assert numbers(await trials.ask(*HERE, study, "a", 5)) == [1, 2]
    assert (await setup.stored(study)).status.is_exhausted
    assert await trials.ask(*HERE, study, "b", 1) == ()
    await trials.delete(*HERE, study, 1)
    assert numbers(await trials.ask(*HERE, study, "b", 1)) == [3]


async def test_no_more_trials_are_given_than_the_study_allows(setup: TrialSetup) -> None:
    study, trials = await setup.study(stopping=StudyStopping(most_trials=2)), setup.trials()
    assert numbers(await trials.ask(*HERE, study, "a", 5)) == [1, 2]
    assert await trials.ask(*HERE, study, "b", 1) == ()
    setup.hints.clear()
    await trials.complete(*HERE, study, 1, value(0.5))
    await trials.complete(*HERE, study, 2, value(0.5))
    assert setup.hints == [study, study], "the loop ends the study"
    assert await trials.ask(*HERE, study, "a", 1) == ()


async def test_a_study_with_rules_is_looked_at_when_a_trial_is_deleted(setup: TrialSetup) -> None:
    """Without it, its last progress may be longer ago."""
    rule = StudyStopping(time_without_progress=timedelta(minutes=1))
    study, trials = await setup.study(stopping=rule), setup.trials()
    await trials.ask(*HERE, study, "a", 1)
    setup.hints.clear()
    await trials.delete(*HERE, study, 1)
    assert setup.hints == [study]


@pytest.mark.parametrize("state", [StudyState.STOPPING, StudyState.SUCCEEDED, StudyState.CANCELLED])
async def test_a_study_that_has_ended_gives_only_what_a_client_has_open(
    setup: TrialSetup, state: StudyState
) -> None:
    study, trials = await setup.study(), setup.trials()
    open_ones = await trials.ask(*HERE, study, "a", 1)
    await setup.put(study, state)
    assert await trials.ask(*HERE, study, "a", 3) == open_ones
    assert await trials.ask(*HERE, study, "b", 1) == ()
    assert (await setup.stored(study)).status.state is state
    with pytest.raises(Conflict):
        await trials.create(*HERE, study, GivenTrial(point={"n": 7}))
    done = await trials.complete(*HERE, study, 1, value(0.5))
    assert done.state is TrialState.SUCCEEDED, "who runs a trial may still tell how it went"


# ---- measure


async def test_measurements_stay_in_order_and_one_that_is_sent_twice_is_kept_once(setup: TrialSetup) -> None:
    study, trials = await setup.study(), setup.trials()
    await trials.ask(*HERE, study, "a", 1)
    for one in (value(0.2, 2, 5.0), value(0.1, 1, 3.0), value(0.3, 2, 5.0)):
        trial = await trials.measure(*HERE, study, 1, one)
    assert trial.measurements == (value(0.1, 1, 3.0), value(0.3, 2, 5.0))
    trial = await trials.measure(*HERE, study, 1, Measurement(1, 3.0, {"loss": 9.0}))
    assert trial.measurements[0].values == {"accuracy": 0.1, "loss": 9.0}


async def test_a_measurement_without_step_and_time_has_the_time_since_the_start(setup: TrialSetup) -> None:
    study, trials = await setup.study(), setup.trials()
    await trials.ask(*HERE, study, "a", 1)
    setup.clock.time = T0 + timedelta(seconds=12.5)
    trial = await trials.measure(*HERE, study, 1, value(0.2))
    assert trial.measurements == (value(0.2, 0, 12.5),)


async def test_many_measurements_are_thinned_but_the_best_and_the_last_stay(setup: TrialSetup) -> None:
    study, trials = await setup.study(), setup.trials()
    many = tuple(value(1.0 if step == 501 else 0.5, step) for step in range(1, 1001))
    await trials.create(*HERE, study, GivenTrial(point={"n": 7}, client="a", measurements=many))
    trial = await trials.measure(*HERE, study, 1, value(0.25, 1001))
    assert len(trial.measurements) < 600
    assert value(1.0, 501) in trial.measurements
    assert trial.measurements[-1] == value(0.25, 1001)


async def test_a_trial_that_waits_begins_with_its_first_measurement(setup: TrialSetup) -> None:
    study, trials = await setup.study(), setup.trials()
    await trials.create(*HERE, study, GivenTrial(point={"n": 7}))
    trial = await trials.measure(*HERE, study, 1, value(0.2, 1))
    assert (trial.state, trial.started_at) == (TrialState.ACTIVE, T0)


# ---- complete


async def test_the_final_measurement_that_a_client_gives_counts(setup: TrialSetup) -> None:
    study, trials = await setup.study(selection=Selection.BEST), setup.trials()
    await trials.ask(*HERE, study, "a", 1)
    await trials.measure(*HERE, study, 1, value(0.9, 1))
    trial = await trials.complete(*HERE, study, 1, value(0.5, 2))
    assert (trial.state, trial.final, trial.ended_at) == (TrialState.SUCCEEDED, value(0.5, 2), T0)
    assert trial.measurements == (value(0.9, 1),)


@pytest.mark.parametrize(("selection", "step"), [(Selection.BEST, 1), (Selection.LAST, 2)])
async def test_without_one_the_selection_of_the_study_decides(
    setup: TrialSetup, selection: Selection, step: int
) -> None:
    study, trials = await setup.study(selection=selection), setup.trials()
    await trials.ask(*HERE, study, "a", 1)
    for one in (value(0.9, 1), value(0.4, 2)):
        await trials.measure(*HERE, study, 1, one)
    final = (await trials.complete(*HERE, study, 1)).final
    assert final is not None
    assert final.step == step


async def test_a_trial_is_infeasible_by_word_by_value_and_for_want_of_one(setup: TrialSetup) -> None:
    study, trials = await setup.study(), setup.trials()
    await trials.ask(*HERE, study, "a", 4)
    reasons = [
        (await trials.complete(*HERE, study, 1, infeasible_reason="no memory")).infeasible,
        (await trials.complete(*HERE, study, 2, infeasible_reason="")).infeasible,
        (await trials.complete(*HERE, study, 3, value(math.nan, 5))).infeasible,
        (await trials.complete(*HERE, study, 4)).infeasible,
    ]
    assert reasons == [
        "no memory",
        "The client said so.",
        "accuracy was nan at step 5.",
        "It was completed without a measurement of accuracy.",
    ]


async def test_a_trial_that_has_ended_is_neither_completed_measured_nor_stopped(setup: TrialSetup) -> None:
    study, trials = await setup.study(), setup.trials()
    await trials.ask(*HERE, study, "a", 1)
    done = await trials.complete(*HERE, study, 1, value(0.5))
    for again in (
        trials.complete(*HERE, study, 1, value(0.9)),
        trials.measure(*HERE, study, 1, value(0.9)),
        trials.stop_trial(*HERE, study, 1),
    ):
        with pytest.raises(Conflict, match="completed already"):
            await again
    assert await trials.get(await setup.stored(study), 1) == done


async def test_a_final_measurement_must_have_every_objective(setup: TrialSetup) -> None:
    objectives = (Objective("accuracy", maximize=True), Objective("cost"))
    study, trials = await setup.study(objectives=objectives), setup.trials()
    await trials.ask(*HERE, study, "a", 1)
    with pytest.raises(Invalid, match="no value of cost"):
        await trials.complete(*HERE, study, 1, value(0.5))
    assert (await trials.get(await setup.stored(study), 1)).state is TrialState.ACTIVE


# ---- create, delete, stop


async def test_a_trial_of_ones_own_may_have_ended_already(setup: TrialSetup) -> None:
    study, trials = await setup.study(), setup.trials()
    done = await trials.create(*HERE, study, GivenTrial(point={"n": 7}, is_completed=True, final=value(0.5)))
    assert (done.state, done.is_given) == (TrialState.SUCCEEDED, True)
    wrong = await trials.create(*HERE, study, GivenTrial(point={"n": 8}, infeasible="no memory"))
    assert (wrong.state, wrong.infeasible) == (TrialState.INFEASIBLE, "no memory")
    told = GivenTrial(point={"n": 6}, is_completed=True, measurements=(value(0.3, 1), value(0.4, 2)))
    measured = await trials.create(*HERE, study, told)
    assert (measured.state, measured.final) == (TrialState.SUCCEEDED, value(0.4, 2))
    owned = await trials.create(*HERE, study, GivenTrial(point={"n": 9}, client="a"))
    assert await trials.ask(*HERE, study, "a", 1) == (owned,)


async def test_the_number_of_a_deleted_trial_is_not_given_again(setup: TrialSetup) -> None:
    study, trials = await setup.study(), setup.trials()
    await trials.ask(*HERE, study, "a", 3)
    for number in (3, 2):
        await trials.delete(*HERE, study, number)
    with pytest.raises(NotFound):
        await trials.delete(*HERE, study, 3)
    assert numbers(await trials.ask(*HERE, study, "b", 1)) == [4]
    assert (await trials.create(*HERE, study, GivenTrial(point={"n": 9}))).number == 5
    added = await setup.studies.add_trials(*HERE, study, [{"n": 10}])
    assert numbers(added) == [6]


async def test_a_stopped_trial_says_so_until_its_client_completes_it(setup: TrialSetup) -> None:
    study, trials = await setup.study(), setup.trials()
    await trials.ask(*HERE, study, "a", 1)
    await trials.measure(*HERE, study, 1, value(0.5, 1))
    assert await trials.should_stop(*HERE, study, 1) == ""
    stopped = await trials.stop_trial(*HERE, study, 1)
    assert stopped.state is TrialState.STOPPING
    assert await trials.stop_trial(*HERE, study, 1) == stopped
    assert await trials.should_stop(*HERE, study, 1) == "Its end was asked for."
    assert (await trials.complete(*HERE, study, 1)).final == value(0.5, 1)
    assert await trials.should_stop(*HERE, study, 1) == "It has ended."


async def test_a_waiting_trial_that_is_stopped_has_ended(setup: TrialSetup) -> None:
    study, trials = await setup.study(), setup.trials()
    await trials.create(*HERE, study, GivenTrial(point={"n": 7}))
    assert (await trials.stop_trial(*HERE, study, 1)).state is TrialState.INFEASIBLE


async def test_a_trial_that_the_rule_ends_is_stored_as_stopping(setup: TrialSetup) -> None:
    study = await setup.study(trial_stopping=StoppingRule(kind=StoppingKind.MEDIAN))
    trials = setup.trials()
    curves = {1: 0.5, 2: 0.6, 3: 0.1}
    await trials.ask(*HERE, study, "a", len(curves))
    assert await trials.should_stop(*HERE, study, 3) == "", "it has not measured anything"
    for number, accuracy in curves.items():
        for at in (1, 2):
            await trials.measure(*HERE, study, number, value(accuracy, at))
        if number < 3:
            assert await trials.should_stop(*HERE, study, number) == ""
            await trials.complete(*HERE, study, number)
    why = await trials.should_stop(*HERE, study, 3)
    assert "0.1" in why
    trial = await trials.get(await setup.stored(study), 3)
    assert (trial.state, trial.stopped) == (TrialState.STOPPING, why)
    with pytest.raises(NotFound):
        await trials.should_stop(*HERE, study, 9)


# ---- studies


async def test_a_study_that_lets_its_trials_finish_may_be_stopped_at_once(setup: TrialSetup) -> None:
    study = await setup.study()
    stored = await setup.stored(study)
    drains = replace(
        stored.status, state=StudyState.STOPPING, outcome=StudyState.SUCCEEDED, drains=True, message="A rule."
    )
    await setup.store.studies.write_study(replace(stored, status=drains))
    stopped = await setup.studies.stop(*HERE, study)
    assert not stopped.status.drains
    assert stopped.status.message == "It was stopped."
    assert await setup.studies.stop(*HERE, study) == stopped, "asking twice is allowed"


async def test_a_study_that_would_end_again_at_once_is_not_resumed(setup: TrialSetup) -> None:
    """One trial of one succeeded, and it is ended."""
    template = JobSpec(pools=(a_pool(),))
    study = await setup.studies.create(
        *HERE, StudyRequest(display_name="s", spec=SPEC, kind=StudyKind.TUNING, template=template)
    )
    trial = Trial(study=study.id, number=1, point={"n": 1}, requested_at=T0)
    trial = replace(trial, state=TrialState.SUCCEEDED, final=value(0.5), ended_at=T0)
    await setup.store.studies.write_study(study, (), (trial,))
    await setup.put(study.id, StudyState.SUCCEEDED)
    with pytest.raises(Conflict, match="All 1 trials have ended"):
        await setup.studies.resume(*HERE, study.id)
    assert (await setup.stored(study.id)).is_final
    resumed = await setup.studies.resume(*HERE, study.id, StudyLimits(trials=2))
    assert resumed.status.state is StudyState.RUNNING


async def test_a_name_stands_for_one_study_until_it_is_deleted(setup: TrialSetup) -> None:
    studies = AskedStudies(setup.studies)
    request = StudyRequest(display_name="mine", spec=SPEC, kind=StudyKind.ASKED)
    answers = await asyncio.gather(
        *(studies.create(*HERE, request) for _ in range(5)), return_exceptions=True
    )
    made = [answer for answer in answers if isinstance(answer, Study)]
    assert len(made) == 1
    assert all(isinstance(answer, AlreadyExists) for answer in answers if answer not in made)
    assert await studies.lookup(*HERE, "mine") == made[0]
    assert await studies.create(*HERE, request, "key") == made[0], "the same request is sent again"
    assert (await studies.create("q", HERE[1], request)).id != made[0].id
    await studies.delete(*HERE, made[0].id)
    with pytest.raises(NotFound, match="mine"):
        await studies.lookup(*HERE, "mine")


async def test_a_tuning_job_is_no_study_of_clients(setup: TrialSetup) -> None:
    tuning = await setup.studies.create(*HERE, StudyRequest(display_name="t", spec=SPEC))
    studies = AskedStudies(setup.studies)
    for act in (studies.get, studies.delete, studies.lookup):
        with pytest.raises(NotFound):
            await act(*HERE, tuning.id if act != studies.lookup else "t")


async def test_the_best_trial_is_optimal_and_with_two_objectives_all_that_none_beats(
    setup: TrialSetup,
) -> None:
    trials, studies = setup.trials(), AskedStudies(setup.studies)
    objectives = (Objective("accuracy", maximize=True), Objective("cost"))
    for spec, front in (({}, [4]), ({"objectives": objectives}, [1, 2, 4])):
        study = await setup.study(**spec)
        assert list(await studies.optimal(await setup.stored(study))) == []
        await trials.ask(*HERE, study, "a", 6)
        for number, (high, low) in enumerate([(0.9, 5.0), (0.8, 1.0), (0.7, 3.0), (0.95, 9.0)], 1):
            final = Measurement(1, 1.0, {"accuracy": high, "cost": low})
            await trials.complete(*HERE, study, number, final)
        await trials.complete(*HERE, study, 5, infeasible_reason="no")
        assert numbers(await studies.optimal(await setup.stored(study))) == front
