"""TrainJobs as jobs: the runtimes that are known here, and what they tell the nodes."""

from typing import Any

import pytest

from tests.unit.dialects.kubernetes.test_manifest import job_of, read, refused
from trainshed.wire.custom_job import render_spec

JOB = """
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: digits}
spec:
  runtimeRef: {name: torch-distributed}
  activeDeadlineSeconds: 90
  trainer:
    image: digits:1
    command: [torchrun, train.py]
    args: [--nodes, $(PET_NNODES), --rank, $(PET_NODE_RANK)]
    env: [{name: LR, value: "0.1"}]
    numNodes: 3
    numProcPerNode: 2
    resourcesPerNode: {limits: {cpu: 2500m, memory: 4Gi}}
"""


def changed(**trainer: Any) -> dict[str, Any]:
    document = read(JOB)
    document["spec"]["trainer"] |= trainer
    return document


def env_of(document: dict[str, Any]) -> dict[str, str]:
    return dict(job_of(document).draft.spec.pools[0].env)


def test_the_nodes_are_the_replicas_of_one_pool():
    found = job_of(read(JOB))
    (pool,) = found.draft.spec.pools
    assert (pool.image, pool.replicas, pool.machine_type) == ("digits:1", 3, "custom-2.5-4096")
    assert pool.command == ("torchrun", "train.py")
    assert pool.args == ("--nodes", "3", "--rank", "$(PET_NODE_RANK)")
    assert dict(pool.env) == {
        "LR": "0.1",
        "JOB_COMPLETION_INDEX": "$(pod-index)",
        "PET_NNODES": "3",
        "PET_NPROC_PER_NODE": "2",
    }
    assert found.manifest.pools[0].names(2)[:2] == ("digits-node-0-2", "digits-node-0-2.digits")
    assert render_spec(found.draft.spec)["scheduling"] == {
        "timeout": "90s",
        "successPools": [0],
        "restartRule": {
            "retryExitCodes": ["1-255"],
            "maxReplicaRestarts": 6,
            "maxJobRetries": 0,
            "maxBackoff": "300s",
        },
    }


def test_a_runtime_brings_its_image_and_one_node_unless_more_are_said():
    document = read(JOB)
    document["spec"]["trainer"] = {"command": ["torchrun", "train.py"]}
    (pool,) = job_of(document).draft.spec.pools
    assert (pool.image, pool.replicas) == ("trainshed/pytorch", 1)
    assert dict(pool.env)["PET_NPROC_PER_NODE"] == "4"  # the CPUs of the machine it gets


@pytest.mark.parametrize(
    ("given", "limits", "processes"),
    [
        (None, {"cpu": "2500m"}, "3"),
        ("auto", {"memory": "1Gi"}, "1"),
        ("auto", {"cpu": 8, "nvidia.com/gpu": 2}, "auto"),
        ("gpu", {"nvidia.com/gpu": 2}, "gpu"),
        ("cpu", {"cpu": 8, "nvidia.com/gpu": 2}, "8"),
        ("12", {}, "12"),
    ],
)
def test_processes_of_a_node_follow_its_resources(given: object, limits: dict[str, object], processes: str):
    env = env_of(changed(numProcPerNode=given, resourcesPerNode={"limits": limits}))
    assert env["PET_NPROC_PER_NODE"] == processes


def test_what_the_runtime_sets_wins_and_that_is_said():
    found = job_of(changed(env=[{"name": "PET_NNODES", "value": "9"}]))
    assert dict(found.draft.spec.pools[0].env)["PET_NNODES"] == "3"
    assert "spec.trainer.env[0] is ignored: PET_NNODES is set here." in found.notes


def test_jax_and_xgboost_find_their_coordinator():
    jax = env_of(read(JOB, runtimeRef={"name": "jax-distributed"}))
    assert {name: jax[name] for name in jax if name.startswith("JAX")} == {
        "JAX_NUM_PROCESSES": "3",
        "JAX_PROCESS_ID": "$(RANK)",
        "JAX_COORDINATOR_ADDRESS": "$(MASTER_ADDR):$(MASTER_PORT)",
        "JAX_COORDINATOR_PORT": "$(MASTER_PORT)",
        "JAX_DISTRIBUTED_BACKEND": "gloo",
    }
    boost = env_of(read(JOB, runtimeRef={"name": "xgboost-distributed"}))
    assert {name: boost[name] for name in boost if name.startswith("DMLC")} == {
        "DMLC_TRACKER_URI": "$(MASTER_ADDR)",
        "DMLC_TRACKER_PORT": "$(MASTER_PORT)",
        "DMLC_TASK_ID": "$(RANK)",
        "DMLC_NUM_WORKER": "3",
    }


def test_an_unknown_runtime_is_refused_with_those_that_are_known():
    assert refused(read(JOB, runtimeRef={"name": "mine"})) == {
        "spec.runtimeRef.name": (
            "must be a runtime that is known here (torch-distributed, jax-distributed, xgboost-distributed), "
            "not 'mine'; or write a JobSet."
        )
    }
    assert (
        "over ssh" in refused(read(JOB, runtimeRef={"name": "deepspeed-distributed"}))["spec.runtimeRef.name"]
    )


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"runtimeRef": None}, "spec.runtimeRef.name"),
        ({"runtimeRef": "torch"}, "spec.runtimeRef"),
        ({"suspend": True}, "spec.suspend"),
        ({"initializer": {"dataset": {"storageUri": "hf://x"}}}, "spec.initializer"),
        ({"podTemplateOverrides": [{}]}, "spec.podTemplateOverrides"),
        ({"runtimePatches": [{}]}, "spec.runtimePatches"),
        ({"activeDeadlineSeconds": 0}, "spec.activeDeadlineSeconds"),
        ({"trainer": None}, "spec.trainer.command"),
        ({"trainer": []}, "spec.trainer.command"),
    ],
)
def test_what_cannot_be_had_is_refused_at_its_path(changes: dict[str, Any], path: str):
    assert path in refused(read(JOB, **changes))


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"numNodes": 0}, "numNodes"),
        ({"numNodes": 5000}, "numNodes"),
        ({"numNodes": "three"}, "numNodes"),
        ({"numProcPerNode": "many"}, "numProcPerNode"),
        ({"numProcPerNode": 0}, "numProcPerNode"),
        ({"numProcPerNode": "9" * 5000}, "numProcPerNode"),
        ({"resourcesPerNode": {"limits": {"cpu": "much"}}}, "resourcesPerNode.limits.cpu"),
        ({"resourcesPerNode": {"limits": {"google.com/tpu": 4}}}, "resourcesPerNode.limits.google.com/tpu"),
        ({"image": "Not An Image"}, "image"),
        ({"env": [{"name": "A", "valueFrom": {"secretKeyRef": {}}}, {"name": "=", "value": "x"}]}, "env"),
        ({"command": "torchrun"}, "command"),
    ],
)
def test_what_cannot_be_had_of_a_trainer_is_refused(changes: dict[str, Any], path: str):
    found = refused(changed(**changes))
    assert any(field.startswith(f"spec.trainer.{path}") for field in found), found
