from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.wire.bodies import NOW, OFFER, a_pool, any_json, job_of, names
from trainshed.core.errors import Invalid
from trainshed.core.event import Reason
from trainshed.core.jobs.job import Failure, Job, JobState, Owner, OwnerKind
from trainshed.core.model import model_of
from trainshed.wire.custom_job import JobDraft, render_custom_job
from trainshed.wire.job_schema import CustomJobSpec
from trainshed.wire.job_status import render_job_status
from trainshed.wire.model import parse_model_filter, plain_id, render_model
from trainshed.wire.training_pipeline import (
    CUSTOM_TASK,
    TrainingPipeline,
    parse_training_pipeline,
    render_training_pipeline,
)

INPUTS = "training_task_inputs"


def a_body(*pools: Mapping[str, object], inputs: Any = None, **changes: object) -> dict[str, Any]:
    given = {"worker_pool_specs": list(pools) or [a_pool()], **(inputs or {})}
    return {
        "displayName": "mine",
        "trainingTaskDefinition": CUSTOM_TASK,
        "trainingTaskInputs": given,
        **changes,
    }


def a_model(**changes: object) -> dict[str, Any]:
    return {
        "displayName": "digits",
        "containerSpec": {"imageUri": "serving:1", "ports": [{"containerPort": 1.0}]},
    } | changes


OUT = {"baseOutputDirectory": {"output_uri_prefix": "gs://b/out/"}}


def parsed(body: Mapping[str, object]) -> JobDraft:
    return parse_training_pipeline(body, OFFER)


def faults(body: Mapping[str, object]) -> dict[str, str]:
    with pytest.raises(Invalid) as refused:
        parsed(body)
    return {one.field: one.description for one in refused.value.violations}


def a_job(body: Mapping[str, object] | None = None, **status: Any) -> Job:
    job = job_of(parsed(body or a_body(inputs=OUT, modelToUpload=a_model())), **status)
    return replace(job, owner=Owner(OwnerKind.PIPELINE, job.id))  # as the service keeps it


def test_the_inputs_are_a_job_s_spec_in_either_spelling_with_doubles_and_nulls() -> None:
    pool = {
        "machine_spec": {
            "machine_type": "n1-standard-4",
            "accelerator_type": "NVIDIA_TESLA_T4",
            "accelerator_count": 1.0,
        },
        "replica_count": 2.0,
        "containerSpec": {"imageUri": "i", "args": ["--epochs", 5.0, "--rate", 0.1, "--n", 7]},
        "disk_spec": {"boot_disk_type": "pd-ssd", "boot_disk_size_gb": 100.0},
    }
    scheduling = {"timeout": "60s", "strategy": 4.0, "max_wait_duration": None, "disable_retries": True}
    draft = parsed(
        a_body(pool, {}, inputs={"scheduling": scheduling, "enable_web_access": True, "tensorboard": "t"})
    )
    first, second = draft.spec.pools
    assert (first.replicas, first.accelerator, first.accelerators) == (2, "NVIDIA_TESLA_T4", 1)
    assert first.args == ("--epochs", "5", "--rate", "0.1", "--n", "7")
    assert second.is_empty
    assert draft.spec.scheduling.timeout == timedelta(minutes=1)
    assert draft.spec.scheduling.strategy == "SPOT"
    assert draft.spec.scheduling.restart.disabled
    assert draft.spec.web_access
    assert draft.spec.extras == {"tensorboard": "t"}


def test_what_is_wrong_is_told_all_at_once_under_the_pipeline_s_own_paths() -> None:
    pool = a_pool(machineSpec={"machineType": "z9"}, oops=1)
    body = a_body(
        pool, labels={"A": "b"}, displayName="", modelToUpload={"labels": {"1": "x"}}, modelId="No", nope=1
    )
    found = faults(body)
    assert set(found) == {
        "display_name",
        "labels.A",
        "model_id",
        "model_to_upload.display_name",
        "model_to_upload.labels.1",
        "nope",
        f"{INPUTS}.worker_pool_specs[0].machine_spec.machine_type",
        f"{INPUTS}.worker_pool_specs[0].oops",
    }
    assert (
        "at 'training_pipeline.training_task_inputs.worker_pool_specs[0]'"
        in found[f"{INPUTS}.worker_pool_specs[0].oops"]
    )


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        (
            {"trainingTaskDefinition": "gs://x/automl_tables_1.0.0.yaml"},
            "training_task_definition",
            "automl_tables",
        ),
        ({"trainingTaskDefinition": ""}, "training_task_definition", CUSTOM_TASK),
        ({"trainingTaskInputs": None}, f"{INPUTS}.worker_pool_specs", "is required"),
        ({"trainingTaskInputs": []}, INPUTS, "must be an object"),
        (
            {"trainingTaskInputs": {"worker_pool_specs": float("nan")}},
            f"{INPUTS}.worker_pool_specs",
            "not a number",
        ),
        ({"trainingTaskInputs": {"a": "\ud800"}}, f"{INPUTS}.a", "Unicode"),
        ({"inputDataConfig": {"datasetId": "5"}}, "input_data_config.dataset_id", "no datasets"),
        ({"inputDataConfig": {"savedQueryId": "5"}}, "input_data_config.saved_query_id", "no datasets"),
        ({"parentModel": "m"}, "parent_model", "one version"),
        ({"modelToUpload": a_model()}, f"{INPUTS}.base_output_directory", "is required where modelToUpload"),
        ({"modelToUpload": {"metadata": 5}}, "model_to_upload.metadata", "must be an object"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(changes: dict[str, Any], field: str, words: str) -> None:
    assert words in faults(a_body(**changes))[field]


def test_inputs_without_end_are_refused() -> None:
    deep: Any = "x"
    for _ in range(500):
        deep = {"a": deep}
    ((field, words),) = faults(a_body(inputs={"b": deep})).items()
    assert field.startswith(f"{INPUTS}.b.a.a") and "deeper" in words


def test_an_input_config_that_needs_no_dataset_is_kept() -> None:
    config = {"fractionSplit": {"trainingFraction": 0.8}, "gcsDestination": {"outputUriPrefix": "gs://b"}}
    job = a_job(a_body(inputDataConfig=config))
    assert render_training_pipeline(job)["inputDataConfig"] == config


def test_a_waiting_pipeline_names_its_job_and_not_yet_its_model() -> None:
    job = a_job(
        a_body(inputs=OUT, modelToUpload=a_model(), labels={"a": "b"}, encryptionSpec={"kmsKeyName": "k"})
    )
    told = render_training_pipeline(job)
    assert told["name"] == "projects/p1/locations/us-central1/trainingPipelines/123"
    assert told["state"] == "PIPELINE_STATE_QUEUED"
    assert told["trainingTaskDefinition"] == CUSTOM_TASK
    assert told["trainingTaskInputs"]["baseOutputDirectory"] == {"output_uri_prefix": "gs://b/out/"}
    assert told["trainingTaskMetadata"] == {
        "backingCustomJob": "projects/p1/locations/us-central1/customJobs/123"
    }
    assert "name" not in told["modelToUpload"]
    assert told["modelToUpload"]["containerSpec"]["imageUri"] == "serving:1"
    assert told["labels"] == {"a": "b"}
    assert told["encryptionSpec"] == {"kmsKeyName": "k"}
    assert "endTime" not in told
    assert "startTime" not in told


def test_a_succeeded_pipeline_names_its_model_version_and_place() -> None:
    job = a_job(state=JobState.SUCCEEDED, started_at=NOW, ended_at=NOW)
    told = render_training_pipeline(job, enum_ints=True)
    assert told["state"] == 4
    assert told["startTime"] == told["endTime"]
    upload = told["modelToUpload"]
    assert upload["name"] == "projects/p1/locations/us-central1/models/123"
    assert upload["versionId"] == "1"
    assert upload["artifactUri"] == "gs://b/out/model"
    model = model_of(job)
    assert model is not None
    shown = render_model(replace(model, created_at=NOW))
    assert shown["versionAliases"] == ["default"]
    assert shown["trainingPipeline"] == told["name"]
    assert shown["createTime"] == shown["versionCreateTime"]
    assert shown["containerSpec"] == upload["containerSpec"]


def test_a_failed_pipeline_has_the_error_of_its_job_and_no_model() -> None:
    failure = Failure(reason=Reason.PROGRAM_FAILED, message="It ended with code 1.")
    job = a_job(state=JobState.FAILED, failure=failure, ended_at=NOW)
    told = render_training_pipeline(job)
    assert told["error"] == render_custom_job(job)["error"] == {"code": 3, "message": "It ended with code 1."}
    assert "name" not in told["modelToUpload"]


def test_the_custom_job_of_a_pipeline_looks_like_any_other() -> None:
    assert set(render_custom_job(a_job())) == {
        "name",
        "displayName",
        "jobSpec",
        "state",
        "createTime",
        "updateTime",
    }


def test_the_status_of_a_job_names_its_pipeline_and_the_model_it_made() -> None:
    assert "model" not in render_job_status(a_job())
    told = render_job_status(a_job(state=JobState.SUCCEEDED))
    assert told["pipeline"] == "projects/p1/locations/us-central1/trainingPipelines/123"
    assert told["model"] == "projects/p1/locations/us-central1/models/123"


def test_a_model_takes_the_id_it_was_given() -> None:
    job = a_job(a_body(inputs=OUT, modelToUpload=a_model(), modelId="mine-1"))
    model = model_of(job)
    assert model is not None
    assert model.name.endswith("/models/mine-1")


@pytest.mark.parametrize(("said", "found"), [("m", "m"), ("m@1", "m"), ("m@default", "m"), ("m@2", None)])
def test_a_model_is_named_with_its_version_or_without(said: str, found: str | None) -> None:
    assert plain_id(said) == found


@pytest.mark.parametrize(
    "text", ["state=RUNNING", 'NOT (display_name="a" OR start_time>"2026-01-01T00:00:00Z")']
)
def test_models_cannot_be_asked_for_what_they_have_not(text: str) -> None:
    with pytest.raises(Invalid, match="Models have no"):
        parse_model_filter(text)


NAMES = names(TrainingPipeline, CustomJobSpec)
JSON = any_json(NAMES, "n1-standard-4")


@given(st.dictionaries(NAMES, JSON, max_size=5))
@settings(max_examples=200)
def test_any_json_is_understood_or_refused(body: dict[str, Any]) -> None:
    for one in (body, a_body() | body, a_body(inputs=body), a_body(modelToUpload=body)):
        try:
            render_training_pipeline(a_job(one))
        except Invalid as error:
            assert error.violations
            assert all(violation.description for violation in error.violations)
            assert len(error.message) < 5000


def test_what_is_told_can_be_sent_again() -> None:
    model = a_model(metadata={"a": [1, None, "é"]}, versionAliases=["best"], labels={"a": "b"})
    job = a_job(
        a_body(inputs=OUT, modelToUpload=model), state=JobState.SUCCEEDED, started_at=NOW, ended_at=NOW
    )
    again = a_job(render_training_pipeline(job, enum_ints=True))
    assert again.spec == job.spec
    first, second = model_of(job), model_of(again)
    assert first is not None
    assert second is not None
    aliases = {"versionAliases": ["default", "best"]}
    assert second == replace(first, said={**first.said, **aliases})


def test_an_output_that_no_path_can_be_is_refused_by_its_path() -> None:
    found = faults(a_body(inputs={"baseOutputDirectory": {"output_uri_prefix": "gs://b/a/../c"}}))
    assert list(found) == [f"{INPUTS}.base_output_directory.output_uri_prefix"]
