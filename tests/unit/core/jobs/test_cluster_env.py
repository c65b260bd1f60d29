"""The environment of a replica, compared whole: a variable too many is as wrong as one missing."""

import json
from dataclasses import replace

import pytest

from tests.builders import EMPTY, a_job, a_pool, admitted
from trainshed.core.jobs.cluster_env import MOST_ARGUMENTS, JobCluster
from trainshed.core.jobs.job import Job, Pool
from trainshed.core.jobs.replica import Replica

HOST = "10.0.0.1"
WORKER_POOLS: list[dict[str, object]] = [
    {
        "machine_spec": {"machine_type": "n1-standard-4"},
        "replica_count": replicas,
        "container_spec": {
            "image_uri": "trainshed/python:3",
            "command": ["python", "-c", "pass"],
            "args": [],
        },
    }
    for replicas in (2, 2, 1)
]


def three_pools() -> Job:
    """Two in the first pool, two workers, one parameter server; ports 2222 to 2226."""
    return admitted(a_job(a_pool(2), a_pool(2), a_pool(1), output="gs://b/out/"))


def env_of(job: Job, pool: int, index: int, run: int = 0) -> dict[str, str]:
    return JobCluster(job).env(Replica(pool=pool, index=index, run=run))


def expected(pool: int, index: int, rank: int, role: str, number: int) -> dict[str, object]:
    """All variables, the two JSON ones as values."""
    return {
        "CLUSTER_SPEC": {
            "cluster": {
                "workerpool0": [f"{HOST}:2222", f"{HOST}:2223"],
                "workerpool1": [f"{HOST}:2224", f"{HOST}:2225"],
                "workerpool2": [f"{HOST}:2226"],
            },
            "environment": "cloud",
            "task": {"type": f"workerpool{pool}", "index": index, "trial": ""},
            "job": json.dumps({"worker_pool_specs": WORKER_POOLS}),
        },
        "TF_CONFIG": {
            "cluster": {
                "chief": [f"{HOST}:2222"],
                "worker": [f"{HOST}:2223", f"{HOST}:2224", f"{HOST}:2225"],
                "ps": [f"{HOST}:2226"],
            },
            "environment": "cloud",
            "job": {"worker_pool_specs": WORKER_POOLS},
            "task": {"type": role, "index": number},
        },
        "CLOUD_ML_JOB_ID": "1",
        "CLOUD_ML_PROJECT_ID": "shed",
        "CLOUD_ML_REGION": "here",
        "TRAINSHED_JOB": "projects/shed/locations/here/customJobs/1",
        "TRAINSHED_ATTEMPT": "0",
        "TRAINSHED_RESTART": "0",
        "TRAINSHED_TASK": f"workerpool{pool}-{index}",
        "MASTER_ADDR": HOST,
        "MASTER_PORT": "2300",
        "PET_MASTER_ADDR": HOST,
        "PET_MASTER_PORT": "2300",
        "RANK": str(rank),
        "WORLD_SIZE": "5",
        "NODE_RANK": str(rank),
        "GROUP_RANK": str(rank),
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "NNODES": "5",
        "PET_NNODES": "5",
        "PET_NODE_RANK": str(rank),
        "CLOUD_ML_HP_TUNING_RANK": str(rank),
        "CLOUD_ML_HP_TUNING_WORLD_SIZE": "5",
        "AIP_MODEL_DIR": "gs://b/out/model/",
        "AIP_CHECKPOINT_DIR": "gs://b/out/checkpoints/",
        "AIP_TENSORBOARD_LOG_DIR": "gs://b/out/logs/",
    }


@pytest.mark.parametrize(
    ("pool", "index", "rank", "role", "number"),
    [
        (0, 0, 0, "chief", 0),
        (0, 1, 1, "worker", 0),
        (1, 0, 2, "worker", 1),
        (1, 1, 3, "worker", 2),
        (2, 0, 4, "ps", 0),
    ],
)
def test_every_replica_of_a_job_of_three_pools_is_told_who_it_is_and_where_the_others_are(
    pool: int, index: int, rank: int, role: str, number: int
):
    env: dict[str, object] = dict(env_of(three_pools(), pool, index))
    for name in ("CLUSTER_SPEC", "TF_CONFIG"):
        env[name] = json.loads(str(env[name]))
    assert env == expected(pool, index, rank, role, number)


def test_attempt_and_restart_are_told():
    job = admitted(a_job(), attempt=2)
    env = env_of(job, 0, 0, run=3)
    assert (env["TRAINSHED_ATTEMPT"], env["TRAINSHED_RESTART"]) == ("2", "3")


def test_without_an_output_directory_no_directories_are_named():
    assert not [name for name in env_of(admitted(a_job()), 0, 0) if name.startswith("AIP_")]


def test_an_empty_pool_holds_its_place_in_names_and_roles():
    job = admitted(a_job(a_pool(), EMPTY, a_pool(), a_pool()))
    config = json.loads(env_of(job, 3, 0)["TF_CONFIG"])
    assert config["cluster"] == {
        "chief": [f"{HOST}:2222"],
        "ps": [f"{HOST}:2223"],
        "evaluator": [f"{HOST}:2224"],
    }
    assert config["task"] == {"type": "evaluator", "index": 0}
    assert config["job"]["worker_pool_specs"][1] == {}
    assert "workerpool1" not in json.loads(env_of(job, 3, 0)["CLUSTER_SPEC"])["cluster"]


def test_reducers_have_no_rank_and_speak_no_tensorflow():
    job = admitted(a_job(a_pool(), a_pool(), a_pool(2, reducer=True)))
    worker, reducer = env_of(job, 1, 0), env_of(job, 2, 1)
    assert (worker["RANK"], worker["WORLD_SIZE"], worker["NNODES"]) == ("1", "2", "2")
    assert json.loads(worker["TF_CONFIG"])["cluster"] == {
        "chief": [f"{HOST}:2222"],
        "worker": [f"{HOST}:2223"],
    }
    assert not reducer.keys() & {
        "RANK",
        "WORLD_SIZE",
        "NODE_RANK",
        "PET_NODE_RANK",
        "CLOUD_ML_HP_TUNING_RANK",
    }
    assert "task" not in json.loads(reducer["TF_CONFIG"])
    assert reducer["MASTER_ADDR"] == HOST
    assert len(json.loads(reducer["CLUSTER_SPEC"])["cluster"]["workerpool2"]) == 2


def test_pools_past_the_evaluators_are_plain_workers():
    job = admitted(a_job(a_pool(), EMPTY, EMPTY, EMPTY, a_pool()))
    assert json.loads(env_of(job, 4, 0)["TF_CONFIG"])["task"] == {"type": "worker", "index": 0}


def test_the_jobs_own_variables_win():
    pool = replace(a_pool(), env=(("RANK", "mine"), ("CLUSTER_SPEC", ""), ("EXTRA", "1")))
    env = env_of(admitted(a_job(pool)), 0, 0)
    assert (env["RANK"], env["CLUSTER_SPEC"], env["EXTRA"]) == ("mine", "", "1")


def test_a_pools_variables_are_its_own():
    job = admitted(a_job(replace(a_pool(), env=(("ONLY", "here"),)), a_pool()))
    assert "ONLY" not in env_of(job, 1, 0)


def test_a_python_package_is_described_as_such():
    pool = replace(a_pool(gpus=2), module="trainer.task", packages=("gs://b/t.tar.gz",), args=("--n", "1"))
    config = json.loads(env_of(admitted(a_job(pool)), 0, 0)["TF_CONFIG"])
    assert config["job"]["worker_pool_specs"] == [
        {
            "machine_spec": {
                "machine_type": "n1-standard-4",
                "accelerator_type": "NVIDIA_TESLA_T4",
                "accelerator_count": 2,
            },
            "replica_count": 1,
            "python_package_spec": {
                "executor_image_uri": "trainshed/python:3",
                "package_uris": ["gs://b/t.tar.gz"],
                "python_module": "trainer.task",
                "args": ["--n", "1"],
            },
        }
    ]


def test_arguments_that_would_overflow_a_variable_are_left_out_of_the_description():
    long: Pool = replace(a_pool(), args=("x" * (MOST_ARGUMENTS + 1),))
    env = env_of(admitted(a_job(long)), 0, 0)
    assert all(len(value) < 2 * MOST_ARGUMENTS for value in env.values())


def test_a_job_of_nothing_but_reducers_still_has_a_master():
    env = env_of(admitted(a_job(EMPTY, EMPTY, a_pool(reducer=True))), 2, 0)
    assert env["MASTER_ADDR"] == HOST


def test_a_job_that_is_not_admitted_has_no_addresses_to_tell():
    with pytest.raises(LookupError, match="job 1 is not admitted"):
        JobCluster(a_job()).env(Replica(pool=0, index=0))
