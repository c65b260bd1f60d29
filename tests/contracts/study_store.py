"""What every store promises about studies and their trials."""

import math
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.contracts.store_values import SPEC, T0
from trainshed.core.errors import AlreadyExists, Conflict, NotFound
from trainshed.core.ports import Operation
from trainshed.core.query import Compare, Operator, QueryField
from trainshed.core.tuning.measurement import Measurement
from trainshed.core.tuning.search_space import Parameter, ParameterKind, Scale, SearchSpace
from trainshed.core.tuning.stopping_rule import StoppingKind, StoppingRule
from trainshed.core.tuning.study import (
    RuntimeLimit,
    Selection,
    Study,
    StudyKind,
    StudyLimits,
    StudySpec,
    StudyState,
    StudyStatus,
    StudyStopping,
    Trial,
    TrialState,
)
from trainshed.core.tuning.study_port import StudyQuery, StudyStore
from trainshed.core.tuning.suggestion_port import Algorithm, NoiseLevel, Objective
from trainshed.core.tuning.trial_outline import StudyFigures, TrialOrder, TrialQuery, outline

SPACE = SearchSpace(
    (
        Parameter(id="lr", kind=ParameterKind.DOUBLE, low=1e-5, high=0.1, scale=Scale.LOG, default=0.01),
        Parameter(id="optimizer", kind=ParameterKind.CATEGORICAL, values=("adam", "sgd")),
        Parameter(
            id="momentum",
            kind=ParameterKind.DISCRETE,
            values=(0.0, 0.9),
            parent="optimizer",
            parent_values=("sgd",),
        ),
    )
)


def a_study(number: int = 1, **changes: object) -> Study:
    study = Study(
        id=str(2000 + number),
        project="p",
        location="us-central1",
        display_name=f"study {number}",
        spec=StudySpec(space=SPACE, objectives=(Objective("accuracy", maximize=True),)),
        created_at=T0 + timedelta(seconds=number),
        seed=number,
        template=SPEC,
        limits=StudyLimits(trials=10, parallel=2),
    )
    return replace(study, **changes)


def full_study() -> Study:
    """A study in which every field says something."""
    spec = StudySpec(
        space=SPACE,
        objectives=(Objective("accuracy", maximize=True), Objective("cost")),
        algorithm=Algorithm.TPE,
        noise=NoiseLevel.HIGH,
        selection=Selection.BEST,
        trial_stopping=StoppingRule(kind=StoppingKind.ASHA, use_elapsed=True, least_step=1, most_step=81),
        stopping=StudyStopping(
            asap=True,
            least_runtime=RuntimeLimit(length=timedelta(minutes=1)),
            most_runtime=RuntimeLimit(end_at=T0 + timedelta(days=1)),
            least_trials=3,
            most_trials=30,
            trials_without_progress=7,
            time_without_progress=timedelta(hours=1),
        ),
        pattern="acc=(.*)",
        prior_studies=("7", "8"),
        extras={"observationNoise": "HIGH"},
    )
    status = StudyStatus(
        state=StudyState.STOPPING,
        message="It was stopped.",
        outcome=StudyState.SUCCEEDED,
        drains=True,
        is_exhausted=True,
        started_at=T0 + timedelta(seconds=1),
        updated_at=T0 + timedelta(seconds=2),
    )
    return a_study(
        spec=spec,
        kind=StudyKind.ASKED,
        template=None,
        labels={"team": "vision"},
        extras={"encryptionSpec": {}},
        submitter="ada",
        last_number=4,
        status=status,
    )


def a_trial(number: int = 1, study: str = "2001", **changes: object) -> Trial:
    trial = Trial(study=study, number=number, point={"lr": 0.01, "optimizer": "adam"}, requested_at=T0)
    return replace(trial, **changes)


def full_trial(number: int = 1) -> Trial:
    return a_trial(
        number,
        point={"lr": 0.5, "layers": 3, "optimizer": "sgd"},
        state=TrialState.SUCCEEDED,
        is_given=True,
        client="worker-0",
        job="17",
        measurements=(Measurement(1, 0.5, {"accuracy": 0.25}), Measurement(2, 1.0, {"accuracy": math.inf})),
        final=Measurement(2, 1.0, {"accuracy": 0.75, "loss": 1e-300}),
        infeasible="why",
        stopped="too slow",
        started_at=T0,
        ended_at=T0 + timedelta(minutes=1),
    )


def an_ended_trial(number: int, accuracy: float, length: float = 1.0) -> Trial:
    """It began `number` seconds after the others were requested."""
    started_at = T0 + timedelta(seconds=number)
    return a_trial(
        number,
        state=TrialState.SUCCEEDED,
        final=Measurement(1, 1.0, {"accuracy": accuracy}),
        started_at=started_at,
        ended_at=started_at + timedelta(seconds=length),
    )


def a_deletion(study: Study) -> Operation:
    return Operation(
        name=f"projects/p/locations/us-central1/operations/{study.id}",
        kind="delete",
        target=study.name,
        created_at=T0,
    )


class StudyStoreContract:
    """A subclass gives the fixture `studies`."""

    async def test_a_study_and_its_trials_come_back_as_they_went_in(self, studies: StudyStore) -> None:
        study = await studies.insert_study(full_study())
        assert study == replace(full_study(), version=1)
        assert await studies.load_study(study.id) == study
        trials = (a_trial(1), full_trial(2))
        study = await studies.write_study(study, new=trials)
        assert await studies.study("p", "us-central1", study.id) == study
        assert await studies.trials(study.id) == trials
        assert await studies.trial(study.id, 2) == trials[1]

    async def test_a_value_that_is_no_number_is_kept(self, studies: StudyStore) -> None:
        study = await studies.insert_study(a_study())
        measured = a_trial(1, measurements=(Measurement(1, 0.0, {"accuracy": math.nan}),))
        await studies.write_study(study, new=(measured,))
        stored = await studies.trial(study.id, 1)
        assert stored is not None
        assert math.isnan(stored.measurements[0].values["accuracy"])

    async def test_a_study_is_found_only_under_its_project_and_location(self, studies: StudyStore) -> None:
        study = await studies.insert_study(a_study())
        assert await studies.study("-", "-", study.id) == study
        for project, location in (("q", "us-central1"), ("p", "europe-west4")):
            with pytest.raises(NotFound):
                await studies.study(project, location, study.id)
        with pytest.raises(NotFound):
            await studies.study("p", "us-central1", "none")
        assert await studies.load_study("none") is None
        assert await studies.trial(study.id, 1) is None
        assert await studies.trials("none") == ()

    async def test_an_id_is_given_once(self, studies: StudyStore) -> None:
        await studies.insert_study(a_study())
        with pytest.raises(AlreadyExists):
            await studies.insert_study(a_study(display_name="another"))

    async def test_the_same_key_gives_the_first_study_and_another_request_is_refused(
        self, studies: StudyStore
    ) -> None:
        first = await studies.insert_study(a_study(), "key")
        assert await studies.insert_study(a_study(2, display_name="study 1"), "key") == first
        assert await studies.load_study("2002") is None
        with pytest.raises(AlreadyExists, match="key"):
            await studies.insert_study(a_study(2), "key")
        elsewhere = await studies.insert_study(a_study(3, project="q"), "key")
        assert elsewhere.id == "2003"

    async def test_two_studies_without_a_key_do_not_collide(self, studies: StudyStore) -> None:
        await studies.insert_study(a_study(1))
        await studies.insert_study(a_study(2))
        assert len((await studies.studies(StudyQuery())).studies) == 2

    async def test_a_write_on_an_older_version_is_refused_and_changes_nothing(
        self, studies: StudyStore
    ) -> None:
        old = await studies.insert_study(a_study())
        new = await studies.write_study(replace(old, display_name="new"), new=(a_trial(1),))
        assert new.version == old.version + 1
        with pytest.raises(Conflict):
            await studies.write_study(
                replace(old, display_name="lost"), (a_trial(1, client="x"),), (a_trial(2),)
            )
        with pytest.raises(Conflict):
            await studies.write_study(old, removed=(1,))
        assert await studies.load_study(old.id) == new
        assert await studies.trials(old.id) == (a_trial(1),)

    async def test_a_study_and_its_trials_are_written_together_or_not_at_all(
        self, studies: StudyStore
    ) -> None:
        study = await studies.insert_study(a_study())
        study = await studies.write_study(study, new=(a_trial(1),))
        with pytest.raises(NotFound):
            await studies.write_study(replace(study, display_name="lost"), (a_trial(7),), (a_trial(2),))
        assert await studies.load_study(study.id) == study
        assert await studies.trials(study.id) == (a_trial(1),)

    async def test_a_number_is_given_once(self, studies: StudyStore) -> None:
        study = await studies.insert_study(a_study())
        study = await studies.write_study(study, new=(a_trial(1),))
        with pytest.raises(Conflict):
            await studies.write_study(replace(study, display_name="lost"), new=(a_trial(2), a_trial(1)))
        assert await studies.trials(study.id) == (a_trial(1),)
        assert await studies.load_study(study.id) == study
        other = await studies.insert_study(a_study(2))
        await studies.write_study(other, new=(a_trial(1, "2002"),))

    async def test_earlier_trials_are_those_of_studies_of_the_project_that_are_there(
        self, studies: StudyStore
    ) -> None:
        for number, project in ((1, "p"), (2, "q")):
            await studies.insert_study(
                a_study(number, project=project), trials=(a_trial(study=f"200{number}"),)
            )
        spec = replace(a_study().spec, prior_studies=("2002", "2001", "none"))
        later = await studies.insert_study(a_study(3, spec=spec))
        assert await studies.earlier_trials(later) == ((a_trial(study="2001"),),)

    async def test_trials_are_changed_and_removed_by_number(self, studies: StudyStore) -> None:
        study = await studies.insert_study(a_study())
        study = await studies.write_study(study, new=[a_trial(number) for number in (10, 2, 1)])
        changed = a_trial(2, state=TrialState.ACTIVE, job="17")
        study = await studies.write_study(replace(study, last_number=10), (changed,), (), (10,))
        assert await studies.trials(study.id) == (a_trial(1), changed)
        assert await studies.load_study(study.id) == study

    async def test_a_study_that_is_gone_is_not_written(self, studies: StudyStore) -> None:
        study = await studies.insert_study(a_study())
        await studies.delete_study(study, a_deletion(study))
        with pytest.raises(NotFound):
            await studies.write_study(study, new=(a_trial(1),))
        assert await studies.trials(study.id) == ()

    async def test_a_study_is_deleted_with_its_trials_and_no_others(self, studies: StudyStore) -> None:
        study = await studies.insert_study(a_study(1))
        other = await studies.insert_study(a_study(2))
        before = study
        study = await studies.write_study(study, new=(a_trial(1),))
        other = await studies.write_study(other, new=(a_trial(1, "2002"),))
        with pytest.raises(Conflict):
            await studies.delete_study(before, a_deletion(study))
        await studies.delete_study(study, a_deletion(study))
        assert await studies.load_study(study.id) is None
        assert await studies.trials(study.id) == ()
        assert await studies.load_study(other.id) == other
        assert await studies.trials(other.id) == (a_trial(1, "2002"),)

    async def test_studies_that_are_not_final_are_active(self, studies: StudyStore) -> None:
        for number, state in enumerate(StudyState):
            await studies.insert_study(a_study(number, status=StudyStatus(state=state)))
        active = await studies.active_studies()
        states = {study.status.state for study in active}
        assert states == {StudyState.PENDING, StudyState.RUNNING, StudyState.STOPPING}
        assert all(study.version == 1 for study in active)

    async def test_lists_come_newest_first_page_by_page(self, studies: StudyStore) -> None:
        for number in range(5):
            created_at = T0 + timedelta(seconds=number // 2)  # some of the same moment
            await studies.insert_study(a_study(number, created_at=created_at))
        query = StudyQuery(project="p", location="us-central1", limit=2)
        ids: list[str] = []
        while True:
            page = await studies.studies(query)
            ids += [study.id for study in page.studies]
            if page.next_cursor is None:
                break
            query = replace(query, cursor=page.next_cursor)
        assert ids == ["2004", "2003", "2002", "2001", "2000"]

    async def test_lists_are_of_a_project_a_location_and_kinds(self, studies: StudyStore) -> None:
        await studies.insert_study(a_study(1, kind=StudyKind.ASKED))
        await studies.insert_study(a_study(2, project="q"))
        await studies.insert_study(a_study(3, location="europe-west4", kind=StudyKind.KATIB))

        async def ids(query: StudyQuery) -> list[str]:
            return [study.id for study in (await studies.studies(query)).studies]

        assert await ids(StudyQuery()) == ["2003", "2002", "2001"]
        assert await ids(StudyQuery(project="p")) == ["2003", "2001"]
        assert await ids(StudyQuery(project="p", location="us-central1")) == ["2001"]
        kinds = (StudyKind.ASKED, StudyKind.KATIB)
        assert await ids(StudyQuery(kinds=kinds)) == ["2003", "2001"]
        named = Compare(QueryField.DISPLAY_NAME, Operator.EQ, "study 2")
        assert await ids(StudyQuery(where=named)) == ["2002"]
        assert await ids(StudyQuery(where=named, kinds=(StudyKind.ASKED,))) == []
        label = Compare(QueryField.LABEL, Operator.EQ, "vision", "team")
        await studies.insert_study(a_study(4, labels={"team": "vision"}))
        assert await ids(StudyQuery(where=label)) == ["2004"]

    async def test_a_study_is_inserted_with_its_first_trials(self, studies: StudyStore) -> None:
        trials = (a_trial(1), a_trial(2))
        study = await studies.insert_study(a_study(), "key", trials)
        assert await studies.trials(study.id) == trials
        assert await studies.insert_study(a_study(2, display_name="study 1"), "key", trials) == study
        assert await studies.trials("2002") == ()

    async def test_pages_of_trials_come_in_any_order(self, studies: StudyStore) -> None:
        trials = (
            an_ended_trial(1, 0.5, 9.0),
            an_ended_trial(2, 0.9, 3.0),
            a_trial(3),
            an_ended_trial(4, 0.7, 6.0),
            a_trial(5, state=TrialState.INFEASIBLE, infeasible="no", ended_at=T0),
        )
        await studies.insert_study(a_study(), "", trials)
        query = TrialQuery(study="2001")

        async def numbers(query: TrialQuery) -> list[int]:
            page = await studies.trial_page(query)
            assert all(trial == trials[trial.number - 1] for trial in page.trials)
            return [trial.number for trial in page.trials]

        assert await numbers(query) == [1, 2, 3, 4, 5]
        assert await numbers(replace(query, is_descending=True)) == [5, 4, 3, 2, 1]
        for order, rising in (
            (TrialOrder.VALUE, [1, 4, 2]),
            (TrialOrder.SECONDS, [2, 4, 1]),
            (TrialOrder.STARTED, [1, 2, 4]),
        ):
            assert await numbers(replace(query, order=order)) == [*rising, 3, 5], "those without it come last"
            falling = await numbers(replace(query, order=order, is_descending=True))
            assert falling == [*reversed(rising), 3, 5]
        states = (TrialState.REQUESTED, TrialState.INFEASIBLE)
        assert await numbers(replace(query, states=states)) == [3, 5]
        page = await studies.trial_page(replace(query, limit=2, offset=2))
        assert ([trial.number for trial in page.trials], page.total) == ([3, 4], 5)
        assert (await studies.trial_page(TrialQuery(study="none"))).total == 0

    async def test_outlines_and_figures_have_the_trials_as_they_are(self, studies: StudyStore) -> None:
        study = await studies.insert_study(a_study(), "", (a_trial(1), an_ended_trial(2, 0.5), a_trial(3)))
        other = await studies.insert_study(a_study(2))
        assert (await studies.figures([study, other]))[other.id] == StudyFigures()
        better = an_ended_trial(1, 0.75)
        study = await studies.write_study(study, (better,), (a_trial(4),), (3,))
        assert await studies.outlines(study.id) == tuple(
            outline(study, trial) for trial in await studies.trials(study.id)
        )
        figures = (await studies.figures([study]))[study.id]
        assert figures.by_state == {TrialState.SUCCEEDED: 2, TrialState.REQUESTED: 1}
        assert figures.total == 3
        assert figures.best == outline(study, better)
        lowest = replace(study, spec=replace(study.spec, objectives=(Objective("accuracy"),)))
        best = (await studies.figures([lowest]))[study.id].best
        assert best is not None
        assert best.number == 2
        assert await studies.figures([]) == {}

    async def test_an_active_trial_whose_job_has_not_started_counts_as_waiting(
        self, studies: StudyStore
    ) -> None:
        waits = replace(a_trial(1), state=TrialState.ACTIVE, job="7")
        runs = replace(a_trial(2), state=TrialState.ACTIVE, job="8", started_at=T0)
        study = await studies.insert_study(a_study(), "", (waits, runs, a_trial(3)))
        assert (await studies.figures([study]))[study.id].waiting == 1
