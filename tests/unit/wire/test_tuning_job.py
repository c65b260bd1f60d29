import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given

from tests.unit.wire.bodies import NOW, OFFER, a_pool, any_json, names
from tests.unit.wire.test_study_spec import BATCH, LAYERS, LR, OPTIMIZER, a_spec, under
from trainshed.core.errors import Invalid
from trainshed.core.jobs.job import JobSpec
from trainshed.core.tuning.measurement import Measurement
from trainshed.core.tuning.study import (
    Study,
    StudyKind,
    StudyLimits,
    StudyState,
    StudyStatus,
    Trial,
    TrialState,
)
from trainshed.wire.job_schema import CustomJobSpec
from trainshed.wire.study_schema import StudySpecFields
from trainshed.wire.tuning_job import TuningDraft, TuningJobFields, parse_tuning_job, render_tuning_job

NAME = "projects/p1/locations/us-central1/hyperparameterTuningJobs/7"


def a_body(**changes: Any) -> dict[str, Any]:
    return {
        "displayName": "tune",
        "studySpec": a_spec(LR, BATCH, LAYERS, OPTIMIZER),
        "maxTrialCount": 20,
        "parallelTrialCount": 4,
        "trialJobSpec": {"workerPoolSpecs": [a_pool()]},
        **changes,
    }


def parsed(body: Mapping[str, Any]) -> TuningDraft:
    return parse_tuning_job(body, OFFER)


def refused(body: Mapping[str, Any]) -> dict[str, str]:
    with pytest.raises(Invalid) as error:
        parsed(body)
    return {violation.field: violation.description for violation in error.value.violations}


def a_study(body: Mapping[str, Any] | None = None, **changes: Any) -> Study:
    draft = parsed(body or a_body())
    study = Study(
        id="7",
        project="p1",
        location="us-central1",
        display_name=draft.display_name,
        spec=draft.spec,
        template=draft.template,
        limits=draft.limits,
        labels=draft.labels,
        extras=draft.extras,
        created_at=NOW,
        seed=1,
    )
    return replace(study, **changes)


def a_trial(**changes: Any) -> Trial:
    point = {"lr": 0.01, "batch": 32.0, "layers": 2, "optimizer": "adam"}
    return replace(Trial(study="7", number=1, point=point, requested_at=NOW), **changes)


def test_a_tuning_job_is_read_with_counts_and_template():
    draft = parsed(a_body(maxFailedTrialCount="3", labels={"team": "vision"}, seed="9"))
    assert draft.limits == StudyLimits(trials=20, parallel=4, failed=3)
    assert draft.seed == 9
    assert draft.labels == {"team": "vision"}
    assert isinstance(draft.template, JobSpec)
    assert draft.template.pools[0].image == "trainshed/python:3"


def test_the_answer_can_be_sent_again():
    body = a_body(labels={"a": "b"}, encryptionSpec={"kmsKeyName": "k"}, maxFailedTrialCount=2)
    study = a_study(body)
    answer = render_tuning_job(study, [a_trial()])
    again = parsed({**answer, "trainshed": {"any": "row"}})
    assert (again.spec, again.template, again.limits) == (study.spec, study.template, study.limits)
    assert (again.labels, again.extras) == (study.labels, study.extras)


def test_every_fault_of_the_job_its_space_and_its_template_is_told_at_once():
    faults = refused(
        a_body(
            displayName="",
            studySpec=a_spec({**LR, "parameterId": "two words"}),
            maxTrialCount=0,
            parallelTrialCount=100_000,
            maxFailedTrialCount=-1,
            seed=-4,
            labels={"Upper": "x"},
            trialJobSpec={"workerPoolSpecs": [{**a_pool(), "replicaCount": 0}], "scheduling": {"timeout": 5}},
            unknown=1,
        )
    )
    assert set(faults) == {
        "display_name",
        "study_spec.parameters[0].parameter_id",
        "max_trial_count",
        "parallel_trial_count",
        "max_failed_trial_count",
        "seed",
        "labels.Upper",
        "trial_job_spec.worker_pool_specs[0].replica_count",
        "trial_job_spec.scheduling.timeout",
        "unknown",
    }
    assert "'hyperparameter_tuning_job'" in faults["unknown"]


def test_an_unknown_field_of_the_template_is_named_by_its_place_in_the_tuning_job():
    faults = refused(a_body(trialJobSpec={"workerPoolSpecs": [a_pool()], "timeout": 1}))
    assert "'hyperparameter_tuning_job.trial_job_spec'" in faults["trial_job_spec.timeout"]


def test_study_and_template_are_required():
    faults = refused({"displayName": "x", "maxTrialCount": 1, "parallelTrialCount": 1})
    assert faults["study_spec"] == faults["trial_job_spec"] == "is required."


def test_secrets_of_the_template_are_taken_out_of_it():
    pool = a_pool()
    pool["containerSpec"] = {**pool["containerSpec"], "env": [{"name": "HF_TOKEN", "value": "abc"}]}
    draft = parsed(a_body(trialJobSpec={"workerPoolSpecs": [pool]}))
    assert draft.secrets == {0: {"HF_TOKEN": "abc"}}
    assert "abc" not in str(draft.template)


def test_a_place_for_a_parameter_that_is_not_there_is_refused():
    pool = a_pool()
    pool["containerSpec"] = {**pool["containerSpec"], "args": ["--x=${trialParameters.learning}"]}
    faults = refused(a_body(trialJobSpec={"workerPoolSpecs": [pool]}))
    assert "trialParameters.learning" in faults["trial_job_spec"]


def test_points_of_ones_own_have_values_as_the_space_has_them():
    momentum = under(
        {"parentCategoricalValues": {"values": ["sgd"]}},
        {"parameterId": "momentum", "doubleValueSpec": {"maxValue": 1}},
    )
    spec = a_spec(LR, BATCH, LAYERS, {**OPTIMIZER, "conditionalParameterSpecs": [momentum]})
    points = [
        {"lr": 0.1, "batch": 32, "layers": 2.0, "optimizer": "adam"},
        {"momentum": 1, "lr": 0.1, "batch": 64, "layers": 2, "optimizer": "sgd"},
    ]
    first, second = parsed(a_body(studySpec=spec, initialTrials=points)).points
    assert first == {"lr": 0.1, "batch": 32.0, "layers": 2, "optimizer": "adam"}
    assert isinstance(first["layers"], int)
    assert second["momentum"] == 1.0
    faults = refused(
        a_body(
            studySpec=spec,
            initialTrials=[
                {"lr": 3, "batch": 33, "layers": 1.5, "optimizer": "adam", "momentum": 0.5},
                {"lr": "0.01", "batch": 32, "optimizer": True, "other": 1},
            ],
        )
    )
    assert (
        set(faults)
        == {
            "initial_trials[0].lr",
            "initial_trials[0].batch",
            "initial_trials[0].layers",
            "initial_trials[0].momentum",
            "initial_trials[1].lr",
            "initial_trials[1].layers",
            "initial_trials[1].optimizer",
            "initial_trials[1].other",
        }
        or "initial_trials[1].momentum" in faults
    )


def test_a_trial_is_shown_with_point_measurements_and_times():
    trial = a_trial(
        state=TrialState.SUCCEEDED,
        job="55",
        measurements=(Measurement(1, 0.5, {"accuracy": math.nan}), Measurement(2, 1.0, {"accuracy": 0.9})),
        final=Measurement(2, 1.0, {"accuracy": 0.9}),
        started_at=NOW,
        ended_at=NOW + timedelta(seconds=3),
    )
    [shown] = render_tuning_job(a_study(), [trial])["trials"]
    assert shown == {
        "name": f"{NAME}/trials/1",
        "id": "1",
        "state": "SUCCEEDED",
        "parameters": [
            {"parameterId": "lr", "value": 0.01},
            {"parameterId": "batch", "value": 32.0},
            {"parameterId": "layers", "value": 2},
            {"parameterId": "optimizer", "value": "adam"},
        ],
        "finalMeasurement": {
            "elapsedDuration": "1s",
            "stepCount": "2",
            "metrics": [{"metricId": "accuracy", "value": 0.9}],
        },
        "measurements": [
            {
                "elapsedDuration": "0.5s",
                "stepCount": "1",
                "metrics": [{"metricId": "accuracy", "value": "NaN"}],
            },
            {
                "elapsedDuration": "1s",
                "stepCount": "2",
                "metrics": [{"metricId": "accuracy", "value": 0.9}],
            },
        ],
        "startTime": shown["startTime"],
        "endTime": shown["endTime"],
        "customJob": "projects/p1/locations/us-central1/customJobs/55",
    }
    assert render_tuning_job(a_study(), [trial], enum_ints=True)["trials"][0]["state"] == 4


@pytest.mark.parametrize(
    ("status", "state", "code"),
    [
        (StudyStatus(), "JOB_STATE_PENDING", None),
        (StudyStatus(state=StudyState.RUNNING), "JOB_STATE_RUNNING", None),
        (
            StudyStatus(state=StudyState.STOPPING, outcome=StudyState.CANCELLED),
            "JOB_STATE_CANCELLING",
            None,
        ),
        (StudyStatus(state=StudyState.STOPPING, outcome=StudyState.FAILED), "JOB_STATE_RUNNING", None),
        (StudyStatus(state=StudyState.SUCCEEDED, message="All ended."), "JOB_STATE_SUCCEEDED", None),
        (StudyStatus(state=StudyState.FAILED, message="Too many."), "JOB_STATE_FAILED", 9),
        (StudyStatus(state=StudyState.CANCELLED), "JOB_STATE_CANCELLED", 1),
    ],
)
def test_a_study_has_the_state_of_a_job(status: StudyStatus, state: str, code: int | None):
    answer = render_tuning_job(a_study(status=status), [])
    assert answer["state"] == state
    assert answer.get("error", {}).get("code") == code


def test_a_study_of_another_grammar_is_shown_too():
    assert render_tuning_job(a_study(kind=StudyKind.KATIB), [])["name"] == NAME


WORDS = ("tune", "MAXIMIZE", "lr", "gs://b", "1s", "UNIT_LOG_SCALE", "n1-standard-4")


@given(any_json(names(TuningJobFields, StudySpecFields, CustomJobSpec), *WORDS))
def test_any_body_is_read_or_refused(body: Any):
    if not isinstance(body, dict):
        return
    try:
        draft = parsed(a_body(**{str(key): value for key, value in body.items()}))
    except Invalid as error:
        assert error.violations
    else:
        assert draft.spec.space.violations() == ()


@given(any_json(names(StudySpecFields), *WORDS))
def test_any_study_spec_is_read_or_refused(spec: Any):
    body = a_body(studySpec={**a_spec(), **spec} if isinstance(spec, dict) else spec)
    try:
        draft = parsed(body)
    except Invalid as error:
        assert error.violations
    else:
        assert draft.spec.space.violations() == ()
