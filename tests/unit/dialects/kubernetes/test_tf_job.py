"""TFJobs as jobs: replicas find the TF_CONFIG that their operator writes."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.builders import a_job, admitted
from tests.unit.dialects.kubernetes.test_manifest import job_of, read, refused
from trainshed.core.jobs.cluster_env import JobCluster
from trainshed.core.jobs.job import Job
from trainshed.core.jobs.replica import Replica
from trainshed.dialects.kubernetes.origin import manifest_of, with_manifest_words
from trainshed.wire.custom_job import render_spec

JOB = """
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: digits, namespace: kubeflow}
spec:
  runPolicy: {backoffLimit: 3}
  tfReplicaSpecs:
    PS: {replicas: 1, template: &replica {spec: {containers: [{name: tensorflow, image: "digits:1"}]}}}
    Worker: {replicas: 2, template: *replica}
    Chief: {replicas: 1, template: *replica}
    Evaluator: {template: *replica}
"""
HOST = "10.0.0.1"


def with_replicas(**counts: int) -> dict[str, Any]:
    document = read(JOB)
    specs = document["spec"]["tfReplicaSpecs"]
    template = specs["PS"]["template"]
    specs.clear()
    specs.update({kind: {"replicas": count, "template": template} for kind, count in counts.items()})
    return document


def placed(document: dict[str, Any]) -> Job:
    found = job_of(document)
    return admitted(replace(a_job(), spec=found.draft.spec, origin=found.manifest.origin))


def config_of(document: dict[str, Any], pool: int, index: int = 0) -> dict[str, Any]:
    config = json.loads(JobCluster(placed(document)).env(Replica(pool=pool, index=index))["TF_CONFIG"])
    return {name: config[name] for name in ("cluster", "task", "environment")}


def scheduling_of(document: dict[str, Any]) -> Any:
    return render_spec(job_of(document).draft.spec)["scheduling"]


def test_each_type_of_replica_is_in_the_pool_of_its_role():
    found = job_of(read(JOB))
    assert [pool.replicas for pool in found.draft.spec.pools] == [1, 2, 1, 1]
    assert found.manifest.pools[1].names(1)[2] == "digits-worker-1.kubeflow.svc"
    assert scheduling_of(read(JOB))["drainDuration"] == "86400s"


@pytest.mark.parametrize(
    ("pool", "index", "task"),
    [(0, 0, "chief"), (1, 1, "worker"), (2, 0, "ps"), (3, 0, "evaluator")],
)
def test_tf_config_has_the_cluster_without_evaluators(pool: int, index: int, task: str):
    assert config_of(read(JOB), pool, index) == {
        "cluster": {
            "chief": [f"{HOST}:2222"],
            "worker": [f"{HOST}:2223", f"{HOST}:2224"],
            "ps": [f"{HOST}:2225"],
        },
        "task": {"type": task, "index": index},
        "environment": "cloud",
    }


def test_workers_without_a_chief_are_workers():
    document = with_replicas(Worker=2, PS=1)
    assert [pool.is_empty for pool in job_of(document).draft.spec.pools] == [False, True, False]
    cluster = {"worker": [f"{HOST}:2222", f"{HOST}:2223"], "ps": [f"{HOST}:2224"]}
    assert config_of(document, 0) == {
        "cluster": cluster,
        "task": {"type": "worker", "index": 0},
        "environment": "cloud",
    }
    assert config_of(document, 0, 1)["task"] == {"type": "worker", "index": 1}


def test_a_master_is_called_so():
    config = config_of(with_replicas(Master=1, Worker=1), 0)
    assert (list(config["cluster"]), config["task"]["type"]) == (["master", "worker"], "master")


def test_a_replica_without_others_finds_no_tf_config():
    assert "TF_CONFIG" not in JobCluster(placed(with_replicas(Worker=1))).env(Replica(pool=0, index=0))


def test_a_job_read_from_the_store_tells_its_replicas_the_same():
    job = placed(with_replicas(Worker=2))
    assert job.origin is not None
    stored = replace(job, origin=replace(job.origin, chief="chief", pools=(), lists_evaluators=True))
    assert with_manifest_words(stored) == job
    assert manifest_of(stored) == job_of(with_replicas(Worker=2)).manifest


def test_the_value_of_the_file_is_not_what_replicas_find():
    document = read(JOB)
    chief = document["spec"]["tfReplicaSpecs"]["Chief"]["template"]["spec"]["containers"][0]
    chief["env"] = [{"name": "TF_CONFIG", "value": "{}"}]
    assert dict(job_of(document).draft.spec.pools[0].env) == {}


def test_all_workers_must_succeed_where_the_file_says_so_and_there_is_no_chief():
    workers = with_replicas(Worker=2)
    assert "successPools" not in scheduling_of(workers)
    workers["spec"]["successPolicy"] = "AllWorkers"
    assert scheduling_of(workers)["successPools"] == [0]
    assert "successPools" not in scheduling_of(read(JOB, successPolicy="AllWorkers"))


def test_the_restart_policy_is_never_where_there_is_none():
    document = with_replicas(Worker=1)
    assert scheduling_of(document)["disableRetries"]
    document["spec"]["tfReplicaSpecs"]["Worker"]["restartPolicy"] = "OnFailure"
    assert scheduling_of(document)["restartRule"]["maxReplicaRestarts"] == 3


@pytest.mark.parametrize(
    ("document", "paths"),
    [
        (with_replicas(), ["spec.tfReplicaSpecs"]),
        (with_replicas(PS=1), ["spec.tfReplicaSpecs"]),
        (with_replicas(Chief=2), ["spec.tfReplicaSpecs.Chief.replicas"]),
        (with_replicas(Chief=1, Master=1), ["spec.tfReplicaSpecs.Master"]),
        (with_replicas(Worker=-1), ["spec.tfReplicaSpecs", "spec.tfReplicaSpecs.Worker.replicas"]),
        (read(JOB, successPolicy="Some"), ["spec.successPolicy"]),
        (read(JOB, runPolicy={"cleanPodPolicy": "Some"}), ["spec.runPolicy.cleanPodPolicy"]),
    ],
)
def test_what_cannot_be_had_is_refused_at_its_path(document: dict[str, Any], paths: list[str]):
    assert sorted(refused(document)) == paths
