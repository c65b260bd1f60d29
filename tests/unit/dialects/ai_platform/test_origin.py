"""Jobs of the older API: what they and their replicas are called, and what TF_CONFIG tells them."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.builders import EMPTY, a_job, a_pool, admitted
from trainshed.core.jobs.cluster_env import MOST_ARGUMENTS, JobCluster
from trainshed.core.jobs.job import Job, Pool, planned_replicas
from trainshed.core.jobs.origin import Origin
from trainshed.core.jobs.task_names import known_as, task_called, task_meant
from trainshed.dialects.ai_platform.origin import (
    KIND,
    TrainingJobRecord,
    key_of,
    record_of,
    with_training_words,
)

HOST = "10.0.0.1"


def a_training_job(*pools: Pool, **training_input: object) -> Job:
    """As the store reads it: of the origin only the record is kept."""
    record = {"jobId": "mine", "trainingInput": training_input}
    return with_training_words(replace(admitted(a_job(*pools)), origin=Origin(kind=KIND, record=record)))


def config(job: Job, name: str = "TF_CONFIG") -> list[Any]:
    """What every replica finds, master first."""
    return [json.loads(JobCluster(job).env(replica)[name]) for replica in planned_replicas(job.spec)]


def test_each_task_of_a_premium_cluster_knows_its_role_and_index() -> None:
    job = a_training_job(a_pool(1), a_pool(19), a_pool(11), scaleTier="PREMIUM_1", jobDir="gs://b/x")
    told = config(job)
    places = [f"{HOST}:{2222 + number}" for number in range(31)]
    cluster = {"master": places[:1], "worker": places[1:20], "ps": places[20:]}
    assert all(one["cluster"] == cluster for one in told)
    assert [(one["task"]["type"], one["task"]["index"]) for one in told] == [
        ("master", 0),
        *(("worker", index) for index in range(19)),
        *(("ps", index) for index in range(11)),
    ]
    assert told[0]["environment"] == "cloud"
    assert told[0]["job"] == {"scale_tier": "PREMIUM_1", "job_dir": "gs://b/x"}


@pytest.mark.parametrize(
    ("said", "first"),
    [
        ({}, "master"),
        ({"runtimeVersion": "1.15"}, "master"),
        ({"runtimeVersion": "1.15", "useChiefInTfConfig": True}, "chief"),
        ({"runtimeVersion": "2.0"}, "chief"),
        ({"runtimeVersion": "2.11"}, "chief"),
        ({"useChiefInTfConfig": True}, "chief"),
    ],
)
def test_the_first_is_master_or_chief(said: dict[str, object], first: str) -> None:
    master, worker = config(a_training_job(a_pool(), a_pool(), **said))
    assert (master["task"]["type"], worker["task"]["type"]) == (first, "worker")
    assert set(worker["cluster"]) == {first, "worker"}


def test_an_evaluator_is_told_the_cluster_and_is_not_in_it() -> None:
    *_, evaluator = config(a_training_job(a_pool(), EMPTY, EMPTY, a_pool()))
    assert evaluator["task"] == {"type": "evaluator", "index": 0}
    assert set(evaluator["cluster"]) == {"master"}


def test_cluster_spec_says_master_always_and_evaluators_too() -> None:
    job = a_training_job(a_pool(), a_pool(2), EMPTY, a_pool(), runtimeVersion="2.0")
    told = config(job, "CLUSTER_SPEC")
    assert {name: len(places) for name, places in told[0]["cluster"].items()} == {
        "master": 1,
        "worker": 2,
        "evaluator": 1,
    }
    assert [one["task"]["type"] for one in told] == ["master", "worker", "worker", "evaluator"]


def test_the_job_in_tf_config_is_the_training_input_by_its_older_names() -> None:
    job = a_training_job(
        a_pool(),
        packageUris=["gs://b/trainer.tar.gz"],
        hyperparameters={"maxTrials": 3, "params": [{"parameterName": "lr", "minValue": 0.5}]},
    )
    assert config(job)[0]["job"] == {
        "package_uris": ["gs://b/trainer.tar.gz"],
        "hyperparameters": {"max_trials": 3, "params": [{"parameter_name": "lr", "min_value": 0.5}]},
    }


@pytest.mark.parametrize("large", ["args", "packageUris", "somethingElse"])
def test_what_would_overflow_a_variable_is_left_out_of_it(large: str) -> None:
    job = a_training_job(a_pool(), region="r", **{large: ["x" * MOST_ARGUMENTS]})
    assert len(json.dumps(config(job)[0]["job"])) <= MOST_ARGUMENTS


def test_programs_and_logs_know_the_job_by_the_name_its_owner_gave_it() -> None:
    job = a_training_job(a_pool(), a_pool(4), a_pool(2), a_pool())
    assert known_as(job) == "mine"
    assert JobCluster(job).env(planned_replicas(job.spec)[0])["CLOUD_ML_JOB_ID"] == "mine"
    for task, called in (
        ("workerpool0-0", "master-replica-0"),
        ("workerpool1-3", "worker-replica-3"),
        ("workerpool2-1", "ps-replica-1"),
        ("workerpool3-0", "evaluator-replica-0"),
        ("service", "service"),
    ):
        assert task_called(job, task) == called
        assert task_meant(job, called) == task


@pytest.mark.parametrize("odd", ["workers-replica-0", "worker-replica-01", "worker-replica-", "", "chief"])
def test_a_name_that_no_replica_has_means_none(odd: str) -> None:
    assert task_meant(a_training_job(a_pool()), odd) == odd


def test_a_job_of_the_newer_api_keeps_its_names() -> None:
    job = admitted(a_job(a_pool()))
    assert record_of(job) is None
    assert known_as(job) == job.id
    assert task_called(job, "workerpool0-0") == "workerpool0-0"
    assert task_meant(job, "worker-replica-3") == "worker-replica-3"


def test_what_is_kept_of_it_comes_back() -> None:
    record = TrainingJobRecord(job_id="mine", training_input={"region": "r"}, request="abc")
    job = replace(a_job(), origin=record.origin)
    assert record_of(job) == record
    assert job.kind == "legacy"


def test_no_header_can_hold_the_key_of_a_name() -> None:
    assert "\n" in key_of("mine")
