"""The points of trials that graphs are drawn from: all, or the best and the Pareto front."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.homes.many_trials import ended_study, keep_studies
from trainshed.clock import SteadyClock
from trainshed.core.tuning.pareto import optimal_indexes
from trainshed.core.tuning.trial_outline import outline
from trainshed.service.study_views import StudyViews
from trainshed.store.sql import SqlStore
from trainshed.wire.study_row import render_points

STUDY, TRIALS = ended_study("two objectives", 60, metrics=("loss", "seconds"))


@pytest.fixture
async def views(tmp_path: Path) -> AsyncIterator[StudyViews]:
    keep_studies(tmp_path, (STUDY, TRIALS))
    store = SqlStore(f"sqlite:///{tmp_path / 'trainshed.db'}")
    await store.start()
    yield StudyViews(store.studies, store, SteadyClock(tmp_path / "clock.json"))
    await store.close()


async def test_a_small_study_gives_all_that_succeeded_by_number(views: StudyViews):
    points = await views.points(STUDY, 500)
    assert [point.number for point in points] == [trial.number for trial in TRIALS if trial.final is not None]


async def test_a_large_study_gives_its_best_and_its_front(views: StudyViews):
    known = [outline(STUDY, trial) for trial in TRIALS]
    front = {known[at].number for at in optimal_indexes([one.values for one in known], STUDY.spec.objectives)}
    done = sorted((one.values[0], one.number) for one in known if one.values is not None)
    numbers = [point.number for point in await views.points(STUDY, 8)]
    assert set(numbers) == {number for _, number in done[:8]} | front
    assert numbers == sorted(numbers)


async def test_a_point_is_told_with_its_parameters_and_all_values(views: StudyViews):
    answer = render_points(STUDY, await views.points(STUDY, 500))
    first = answer["points"][0]
    assert first["trial"] == "1" and len(first["values"]) == 2 and "lr" in first["parameters"]
    assert [objective["metricId"] for objective in answer["objectives"]] == ["loss", "seconds"]
