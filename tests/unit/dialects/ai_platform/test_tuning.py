"""The hyperparameters of the older API, as a study."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.dialects.ai_platform.test_job import body, parsed
from tests.unit.wire.bodies import NOW
from trainshed.core.errors import Invalid
from trainshed.core.jobs.job import Pool
from trainshed.core.tuning.measurement import Measurement
from trainshed.core.tuning.search_space import Parameter, ParameterKind, Scale
from trainshed.core.tuning.stopping_rule import StoppingKind
from trainshed.core.tuning.study import Study, StudyKind, StudyLimits, Trial, TrialState
from trainshed.core.tuning.suggestion_port import Algorithm, Objective
from trainshed.dialects.ai_platform.job import render_training_study
from trainshed.dialects.ai_platform.origin import TrainingJobRecord
from trainshed.dialects.ai_platform.tuning import with_trial_folder

PARAMS: list[dict[str, Any]] = [
    {"parameterName": "lr", "type": "DOUBLE", "minValue": 0.1, "maxValue": 1, "scaleType": "UNIT_LOG_SCALE"},
    {"parameterName": "layers", "type": "INTEGER", "minValue": 1, "maxValue": 4},
    {"parameterName": "units", "type": "DISCRETE", "discreteValues": [8.0, 16.0]},
    {"parameterName": "kind", "type": "CATEGORICAL", "categoricalValues": ["a", "b"]},
]


def hyperparameters(**changes: Any) -> dict[str, Any]:
    return {"goal": "MAXIMIZE", "hyperparameterMetricTag": "accuracy", "params": PARAMS, **changes}


def faults(**changes: Any) -> set[str]:
    with pytest.raises(Invalid) as refused:
        parsed(body(hyperparameters=hyperparameters(**changes)))
    prefix = "training_input.hyperparameters."
    return {violation.field.removeprefix(prefix) for violation in refused.value.violations}


def test_hyperparameters_are_a_study() -> None:
    given = hyperparameters(
        maxTrials=30, maxParallelTrials=3, maxFailedTrials=5, enableTrialEarlyStopping=True
    )
    draft = parsed(body(hyperparameters=given))
    assert draft.tuning is not None
    spec, limits = draft.tuning
    assert spec.space.parameters == (
        Parameter(id="lr", kind=ParameterKind.DOUBLE, low=0.1, high=1, scale=Scale.LOG),
        Parameter(id="layers", kind=ParameterKind.INTEGER, low=1, high=4),
        Parameter(id="units", kind=ParameterKind.DISCRETE, values=(8.0, 16.0)),
        Parameter(id="kind", kind=ParameterKind.CATEGORICAL, values=("a", "b")),
    )
    assert spec.objectives == (Objective("accuracy", maximize=True),)
    assert limits == StudyLimits(trials=30, parallel=3, failed=5)
    assert spec.trial_stopping is not None
    assert spec.trial_stopping.kind is StoppingKind.MEDIAN


def test_what_is_absent_has_the_older_api_s_defaults() -> None:
    draft = parsed(body(hyperparameters={"goal": "MINIMIZE", "params": PARAMS, "algorithm": "RANDOM_SEARCH"}))
    assert draft.tuning is not None
    spec, limits = draft.tuning
    assert spec.objectives == (Objective("training/hptuning/metric", maximize=False),)
    assert limits == StudyLimits(trials=1, parallel=1, failed=0)
    assert spec.algorithm is Algorithm.RANDOM


def test_every_fault_has_its_path() -> None:
    wrong = [
        {"parameterName": "a", "type": "DOUBLE", "minValue": 2, "maxValue": 1},
        {"parameterName": "a", "type": "CATEGORICAL"},
        {"type": "DISCRETE", "discreteValues": [2, 1]},
        {"parameterName": "b"},
        {"parameterName": "c", "type": "INTEGER", "minValue": 1},
        {"parameterName": "d", "type": "DOUBLE", "minValue": 0, "maxValue": 1, "scaleType": "UNIT_LOG_SCALE"},
    ]
    assert faults(params=wrong, goal=None, maxTrials=-1) == {
        "goal",
        "max_trials",
        "params[0].max_value",
        "params[1].parameter_name",
        "params[1].categorical_values",
        "params[2].parameter_name",
        "params[2].discrete_values",
        "params[3].type",
        "params[4].max_value",
        "params[5].scale_type",
    }
    assert faults(params=[]) == {"params"}
    assert faults(algorithm="GRID_SEARCH") == {"params[0].type"}


def test_each_trial_has_its_own_folder_behind_job_dir() -> None:
    pool = Pool(replicas=1, args=("--x", "gs://b/o/", "--job-dir", "gs://b/o/", "gs://b/o/"))
    [dressed] = with_trial_folder([pool], "gs://b/o/", 7)
    assert dressed.args == ("--x", "gs://b/o/", "--job-dir", "gs://b/o/7", "gs://b/o/")
    assert with_trial_folder([pool], "", 7) == (pool,)


def test_trials_are_shown_in_the_older_words_the_best_first() -> None:
    draft = parsed(body(hyperparameters=hyperparameters(maxTrials=3)))
    assert draft.tuning is not None
    spec, limits = draft.tuning
    record = TrainingJobRecord(job_id="tuned", training_input=draft.training_input)
    study = Study(
        id="1",
        project="p",
        location="l",
        display_name="tuned",
        spec=spec,
        limits=limits,
        template=draft.spec,
        kind=StudyKind.OLDER,
        record=record.as_json(),
        created_at=NOW,
        seed=1,
    )
    point = {"lr": 0.5, "layers": 2, "units": 8.0, "kind": "a"}
    first = Trial(study="1", number=1, point=point, requested_at=NOW, state=TrialState.ACTIVE, started_at=NOW)
    reports = (Measurement(1, 1.0, {"accuracy": 0.2}), Measurement(2, 2.0, {"accuracy": 0.7}))
    second = replace(
        first,
        number=2,
        state=TrialState.SUCCEEDED,
        measurements=reports,
        final=reports[1],
        stopped="Too slow.",
        ended_at=NOW + timedelta(seconds=5),
    )
    third = replace(
        second, number=3, stopped="", final=Measurement(9, 9.0, {"accuracy": 0.9}), measurements=()
    )
    output = render_training_study(study, [first, second, third])["trainingOutput"]
    assert output["completedTrialCount"] == "2"
    assert (output["isHyperparameterTuningJob"], output["hyperparameterMetricTag"]) == (True, "accuracy")
    assert [trial["trialId"] for trial in output["trials"]] == ["3", "2", "1"]
    best, stopped, running = output["trials"]
    assert best["finalMetric"] == {"trainingStep": "9", "objectiveValue": 0.9}
    assert best["hyperparameters"] == {"lr": "0.5", "layers": "2", "units": "8", "kind": "a"}
    assert stopped["isTrialStoppedEarly"] is True
    assert [row["objectiveValue"] for row in stopped["allMetrics"]] == [0.2, 0.7]
    assert (running["state"], "endTime" in running) == ("RUNNING", False)
