"""Jobs of AI Platform Training: what they ask for in our nouns, and every way to get it wrong."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.wire.bodies import NOW, OFFER
from trainshed.core.errors import Invalid
from trainshed.core.event import Reason
from trainshed.core.jobs.job import Failure, Job, JobState, Status, planned_replicas
from trainshed.core.query import AllOf, Compare, Operator, QueryField
from trainshed.dialects.ai_platform.filter import parse_training_filter
from trainshed.dialects.ai_platform.job import (
    TrainingJobDraft,
    etag,
    parse_labels,
    parse_training_job,
    render_training_job,
)
from trainshed.dialects.ai_platform.origin import TrainingJobRecord

PYTHON = "trainshed/python:3"
SEED_000: dict[str, Any] = {  # what gcloud sends for the printed command: no scaleTier, numbers as text
    "jobId": "three_images",
    "trainingInput": {
        "region": "us-central1",
        "enableWebAccess": False,
        "masterType": "complex_model_m",
        "masterConfig": {"imageUri": "somewhere/master:1"},
        "workerType": "complex_model_m",
        "workerConfig": {"imageUri": "somewhere/worker:1"},
        "workerCount": "9",
        "parameterServerType": "large_model",
        "parameterServerConfig": {"imageUri": "somewhere/ps:1"},
        "parameterServerCount": "3",
        "args": ["--model-dir=gs://bucket/model", "--epochs=10"],
    },
}
SEED_001: dict[str, Any] = {
    "jobId": "my_job_20190531_164700",
    "trainingInput": {
        "region": "asia-southeast1",
        "scaleTier": "PREMIUM_1",
        "runtimeVersion": "2.0",
        "pythonVersion": "3.5",
        "packageUris": ["gs://my-staging-bucket/my_job_20190531_164700/0a1b/trainer-0.0.0.tar.gz"],
        "pythonModule": "trainer.task",
        "jobDir": "gs://my-mnist-model-bucket/trained_model",
        "args": ["--my-extra-argument1", "foo", "--my-extra-argument2", "bar"],
    },
}


def body(**training_input: object) -> dict[str, Any]:
    """A small job of one container, with what is said of it."""
    said: dict[str, object] = {"region": "us-central1", "masterConfig": {"imageUri": PYTHON}}
    said |= training_input
    return {"jobId": "j", "trainingInput": {name: value for name, value in said.items() if value is not None}}


def module(**training_input: object) -> dict[str, Any]:
    return body(**({"masterConfig": None, "pythonModule": "trainer.task"} | training_input))


def parsed(given: Mapping[str, object]) -> TrainingJobDraft:
    return parse_training_job(given, OFFER)


def faults(given: Mapping[str, object]) -> dict[str, str]:
    try:
        parsed(given)
    except Invalid as error:
        return {one.field: one.description for one in error.violations}
    return {}


def counts(draft: TrainingJobDraft) -> list[int]:
    return [pool.replicas for pool in draft.spec.pools]


def a_job(given: Mapping[str, object], **status: Any) -> Job:
    draft = parsed(given)
    return Job(
        id="123",
        project="p1",
        location=draft.region,
        display_name=draft.job_id,
        spec=draft.spec,
        labels=draft.labels,
        origin=TrainingJobRecord(job_id=draft.job_id, training_input=draft.training_input).origin,
        created_at=NOW,
        status=Status(**status),
    )


def test_the_command_with_three_images_is_a_custom_cluster_of_thirteen() -> None:
    draft = parsed(SEED_000)
    assert counts(draft) == [1, 9, 3]
    images = [pool.image for pool in draft.spec.pools]
    assert images == ["somewhere/master:1", "somewhere/worker:1", "somewhere/ps:1"]
    assert [pool.machine_type for pool in draft.spec.pools] == [
        "complex_model_m",
        "complex_model_m",
        "large_model",
    ]
    assert {pool.args for pool in draft.spec.pools} == {("--model-dir=gs://bucket/model", "--epochs=10")}
    assert draft.training_input["scaleTier"] == "CUSTOM"
    assert draft.region == "us-central1"


def test_the_command_with_a_tier_is_twenty_workers_and_eleven_servers_of_one_module() -> None:
    draft = parsed(SEED_001)
    assert counts(draft) == [1, 19, 11]
    assert len(planned_replicas(draft.spec)) == 31
    for pool in draft.spec.pools:
        assert (pool.module, pool.image) == ("trainer.task", "trainshed/tensorflow:2.0-py3.5")
        assert pool.packages == tuple(SEED_001["trainingInput"]["packageUris"])
        assert pool.args == (
            *("--my-extra-argument1", "foo", "--my-extra-argument2", "bar"),
            *("--job-dir", "gs://my-mnist-model-bucket/trained_model"),
        )
    assert draft.spec.output == "gs://my-mnist-model-bucket/trained_model"
    assert draft.training_input == SEED_001["trainingInput"]


@pytest.mark.parametrize(
    ("tier", "machines"),
    [
        ("BASIC", [("n1-standard-4", 1)]),
        (
            "STANDARD_1",
            [("n1-highcpu-8", 1), ("n1-highcpu-8", 4), ("n1-standard-4", 3)],
        ),
        (
            "PREMIUM_1",
            [("n1-highcpu-16", 1), ("n1-highcpu-16", 19), ("n1-highmem-8", 11)],
        ),
        ("BASIC_GPU", [("standard_gpu", 1)]),
        ("BASIC_TPU", [("n1-standard-4", 1)]),
    ],
)
def test_tiers_are_those_of_the_data_file(tier: str, machines: list[tuple[str, int]]) -> None:
    pools = parsed(module(scaleTier=tier)).spec.pools
    assert [(pool.machine_type, pool.replicas) for pool in pools] == machines


def test_without_a_tier_or_a_cluster_a_job_is_basic() -> None:
    assert parsed(module()).training_input["scaleTier"] == "BASIC"
    assert parsed(module(masterConfig={})).training_input["scaleTier"] == "BASIC"
    assert parsed(body()).training_input["scaleTier"] == "CUSTOM"
    assert parsed(body()).spec.pools[0].machine_type == "n1-standard-4"


def test_the_tpu_of_a_worker_is_what_the_master_computes_with() -> None:
    basic = parsed(module(scaleTier="BASIC_TPU"))
    assert [(pool.accelerator, pool.accelerators) for pool in basic.spec.pools] == [("TPU_V2", 8)]
    assert "no worker starts" in basic.remarks[0]
    config = {"acceleratorConfig": {"type": "TPU_V3", "count": "8"}}
    custom = module(masterType="n1-standard-4", workerType="cloud-tpu", workerCount=1, workerConfig=config)
    assert [(pool.accelerator, pool.accelerators) for pool in parsed(custom).spec.pools] == [("TPU_V3", 8)]


def test_a_role_without_a_word_of_its_own_runs_what_the_master_runs() -> None:
    master = {"imageUri": PYTHON, "containerCommand": ["python", "-c"], "containerArgs": ["pass"]}
    own = {"imageUri": "other:1"}
    said = body(
        masterType="n1-standard-4",
        masterConfig=master,
        workerType="n1-standard-8",
        workerCount=2,
        evaluatorType="n1-standard-4",
        evaluatorCount="1",
        evaluatorConfig=own,
        jobDir="gs://b/x",
    )
    master_pool, workers, servers, evaluators = parsed(said).spec.pools
    assert servers.is_empty
    assert workers.image == PYTHON
    assert workers.command == master_pool.command == ("python", "-c")
    assert workers.args == ("pass", "--job-dir", "gs://b/x")
    assert (evaluators.image, evaluators.command, evaluators.args) == (
        "other:1",
        (),
        ("--job-dir", "gs://b/x"),
    )


def test_the_rest_of_the_training_input_is_understood_and_echoed() -> None:
    said = body(
        masterType="n1-standard-8",
        masterConfig={
            "imageUri": PYTHON,
            "acceleratorConfig": {"count": "2", "type": "NVIDIA_TESLA_T4"},
            "diskConfig": {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 200},
        },
        scheduling={"maxRunningTime": "7200s", "maxWaitTime": "60s", "priority": 5},
        network="projects/1/global/networks/n",
        serviceAccount="a@b",
        enableWebAccess=True,
        encryptionConfig={"kmsKeyName": "k"},
        useChiefInTfConfig=True,
    )
    draft = parsed(said)
    assert draft.training_input == said["trainingInput"] | {"scaleTier": "CUSTOM"}
    limits = draft.spec.scheduling
    assert (limits.timeout, limits.max_wait, limits.priority) == (
        timedelta(hours=2),
        timedelta(minutes=1),
        5,
    )
    assert (draft.spec.pools[0].accelerator, draft.spec.pools[0].accelerators) == ("NVIDIA_TESLA_T4", 2)
    assert draft.spec.web_access


def test_hyperparameters_of_a_job_of_an_older_release_are_still_shown() -> None:
    tuning: dict[str, Any] = {
        "goal": "MAXIMIZE",
        "hyperparameterMetricTag": "accuracy",
        "params": [{"parameterName": "lr", "type": "DOUBLE", "minValue": 0.1, "maxValue": 1.0}],
    }
    given = body(hyperparameters=tuning)
    assert parsed(given).training_input["hyperparameters"] == tuning
    assert render_training_job(a_job(given))["trainingOutput"] == {
        "isHyperparameterTuningJob": True,
        "hyperparameterMetricTag": "accuracy",
    }


def test_everything_that_is_wrong_is_told_at_once_by_its_path() -> None:
    wrong = {
        "jobId": "bad-name",
        "colour": "red",
        "labels": {"Team": "x"},
        "trainingInput": {
            "region": "a/b",
            "scaleTier": "HUGE",
            "masterConfig": {"imageUri": "refused:1", "tpuTfVersion": 3},
            "workerCount": "-1",
            "parameterServerCount": 2,
            "jobDir": "here",
            "scheduling": {"maxRunningTime": "-1s"},
            "hyperparameters": {"params": [{"type": "DOUBLE", "minValue": 2, "maxValue": 1}]},
            "packages": [],
        },
    }
    found = faults(wrong)
    paths = ["job_id", "colour", "labels.Team"] + [
        f"training_input.{name}"
        for name in (
            *("region", "scale_tier", "master_config.image_uri", "master_config.tpu_tf_version"),
            *("worker_count", "parameter_server_type", "job_dir", "scheduling.max_running_time"),
            *("hyperparameters.goal", "hyperparameters.params[0].parameter_name"),
            *("hyperparameters.params[0].max_value", "packages"),
        )
    ]
    assert sorted(found) == sorted(paths)
    assert found["training_input.packages"] == (
        "Invalid JSON payload received. Unknown name \"packages\" at 'job.training_input': Cannot find field."
    )


@pytest.mark.parametrize(
    ("given", "path", "words"),
    [
        ({"jobId": "j"}, "training_input", "required"),
        ({"jobId": "j", "trainingInput": {}}, "training_input.python_module", "required"),
        ({"jobId": "j", "predictionInput": {}}, "prediction_input", "no batch prediction"),
        ({"jobId": "1j", "trainingInput": {}}, "job_id", "a letter first"),
        ({"jobId": "j" * 129, "trainingInput": {}}, "job_id", "at most 128"),
        ({"jobId": 5, "trainingInput": {}}, "job_id", "must be a string"),
        (body(masterType="n1-standard-5"), "training_input.master_type", "n1-standard-4"),
        (body(scaleTier="CUSTOM"), "training_input.master_type", "where scaleTier is CUSTOM"),
        (module(scaleTier="PREMIUM_1", workerCount=2), "training_input.worker_count", "CUSTOM"),
        (module(scaleTier="BASIC", masterType="standard"), "training_input.master_type", "CUSTOM"),
        (body(workerType="standard", workerCount=1001), "training_input.worker_count", "1000"),
        (body(workerCount=1), "training_input.worker_type", "where a count is given"),
        (body(runtimeVersion="2.0"), "training_input.runtime_version", "masterConfig.imageUri"),
        (module(runtimeVersion="newest"), "training_input.runtime_version", "such as 2.11"),
        (module(pythonVersion="3"), "", ""),
        (module(pythonModule="no module"), "training_input.python_module", "trainer.task"),
        (
            module(masterConfig={"containerArgs": ["x"]}),
            "training_input.master_config.container_args",
            "needs an imageUri",
        ),
        (
            body(masterConfig={"imageUri": PYTHON, "containerArgs": ["x"]}, args=["y"]),
            "training_input.master_config.container_args",
            "together with args",
        ),
        (
            body(masterConfig={"imageUri": PYTHON, "acceleratorConfig": {"count": 1}}),
            "training_input.master_config.accelerator_config.type",
            "required",
        ),
        (body(jobDir="gs://b/a//b"), "training_input.job_dir", "empty, '.' or '..' part"),
        (body(jobDir="gs://b/a/../c"), "training_input.job_dir", "empty, '.' or '..' part"),
        (body(jobDir="gs://b/a\tb"), "training_input.job_dir", "control characters"),
        (body(jobDir="gs://b/" + "x" * 1025), "training_input.job_dir", "at most 1024 bytes"),
        (module(workerType="standard", workerCount=2), "training_input.master_type", "required"),
        (module(workerCount=2), "training_input.worker_count", "only be given with scaleTier CUSTOM"),
        (body(region="-"), "training_input.region", "slashes"),
        (body(region=None), "training_input.region", "required"),
        (body(args=["x" * 200_000]), "training_input.master_config", "bytes"),
        (module(args=["x" * 200_000]), "training_input", "bytes"),
        (body(scheduling={"priority": "high"}), "training_input.scheduling.priority", "whole number"),
    ],
)
def test_a_wrong_value_is_told_with_its_path(given: dict[str, Any], path: str, words: str) -> None:
    found = faults(given)
    if path:
        assert words in found[path]
    else:
        assert found == {}


def test_an_image_that_all_roles_share_is_refused_once() -> None:
    said = body(masterType="standard", masterConfig={"imageUri": "refused:1"}, workerType="standard")
    said["trainingInput"]["workerCount"] = 3
    assert list(faults(said)) == ["training_input.master_config.image_uri"]


def test_what_describe_prints_can_be_sent_again() -> None:
    answer = render_training_job(a_job(SEED_001))
    assert parsed(answer).spec == parsed(SEED_001).spec


@pytest.mark.parametrize(
    ("state", "told"),
    [
        (JobState.QUEUED, "QUEUED"),
        (JobState.PENDING, "PREPARING"),
        (JobState.RUNNING, "RUNNING"),
        (JobState.CANCELLING, "CANCELLING"),
        (JobState.SUCCEEDED, "SUCCEEDED"),
    ],
)
def test_states_have_the_names_of_the_older_api(state: JobState, told: str) -> None:
    assert render_training_job(a_job(body(), state=state))["state"] == told


def test_a_failed_job_says_why_and_when() -> None:
    failure = Failure(reason=Reason.PROGRAM_FAILED, message="workerpool1-12 exited with code 1.")
    answer = render_training_job(
        a_job(
            body(scaleTier="PREMIUM_1"),
            state=JobState.FAILED,
            failure=failure,
            started_at=NOW,
            ended_at=NOW,
        )
    )
    assert (answer["state"], answer["errorMessage"]) == ("FAILED", "worker-replica-12 exited with code 1.")
    assert answer["createTime"] == answer["startTime"] == answer["endTime"] == "2026-01-31T12:00:00.000005Z"
    assert answer["jobId"] == "j"


def test_an_etag_is_of_the_labels_and_nothing_else() -> None:
    job = a_job(body())
    assert etag(job) == etag(replace(job, status=Status(state=JobState.RUNNING), version=9))
    assert etag(job) != etag(replace(job, labels={"a": "b"}))
    assert len(etag(job)) % 4 == 0, "gcloud reads it as base64 and ends with an error where it is none"


def test_the_labels_of_a_change_are_taken_whole() -> None:
    assert parse_labels({"labels": {"a": "b"}}) == ({"a": "b"}, "")
    assert parse_labels({"labels": {}, "etag": "AA=="}) == ({}, "AA==")
    with pytest.raises(Invalid, match=r"labels\.A"):
        parse_labels({"labels": {"A": "b"}})


def test_the_filter_is_said_in_the_words_of_the_older_api() -> None:
    assert parse_training_filter("") is None
    assert parse_training_filter("jobId:census*") == Compare(
        QueryField.DISPLAY_NAME, Operator.LIKE, "census*"
    )
    assert parse_training_filter("jobId:rnn* AND state:FAILED") == AllOf(
        (
            Compare(QueryField.DISPLAY_NAME, Operator.LIKE, "rnn*"),
            Compare(QueryField.STATE, Operator.EQ, "FAILED"),
        )
    )
    assert parse_training_filter('state="PREPARING"') == Compare(QueryField.STATE, Operator.EQ, "PENDING")
    assert parse_training_filter("labels.team=vision") == Compare(
        QueryField.LABEL, Operator.EQ, "vision", "team"
    )


def test_what_a_filter_cannot_ask_is_refused_with_what_it_can() -> None:
    with pytest.raises(Invalid, match="jobId, state"):
        parse_training_filter("colour=red")
    with pytest.raises(Invalid, match="PREPARING"):
        parse_training_filter("state:TIRED")
