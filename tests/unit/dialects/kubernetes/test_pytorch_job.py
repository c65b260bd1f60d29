"""PyTorchJobs as jobs: what their operator sets is there, what cannot be had is refused with its path."""

from typing import Any

import pytest

from tests.unit.dialects.kubernetes.test_manifest import job_of, read, refused
from trainshed.core.jobs.pool_words import PoolWords
from trainshed.wire.custom_job import render_spec

JOB = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: digits, namespace: kubeflow, labels: {team: vision}}
spec:
  runPolicy: {backoffLimit: 3, activeDeadlineSeconds: 600, cleanPodPolicy: None}
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      restartPolicy: OnFailure
      template:
        metadata: {labels: {app: digits}}
        spec:
          containers:
          - name: pytorch
            image: digits:1
            command: [torchrun, --node-rank=$(RANK), --nnodes=$(PET_NNODES), $$(RANK), train.py]
            env:
            - {name: ME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
            - {name: APP, valueFrom: {fieldRef: {fieldPath: "metadata.labels['app']"}}}
            - {name: RANK, value: "7"}
            resources: {limits: {cpu: 2, memory: 4Gi, nvidia.com/gpu: 1}}
            ports: [{name: pytorchjob-port, containerPort: 23456}]
    Worker:
      replicas: 2
      restartPolicy: OnFailure
      template:
        spec:
          terminationGracePeriodSeconds: 5
          containers:
          - {name: pytorch, image: "digits:1"}
"""
WORKERS = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: elastic}
spec:
  elasticPolicy:
    rdzvBackend: c10d
    minReplicas: 1
    maxReplicas: 4
    maxRestarts: 10
    rdzvId: one
    rdzvConf: [{key: timeout, value: "60"}, {key: last_call_timeout, value: "5"}]
    standalone: true
  nprocPerNode: 2
  pytorchReplicaSpecs:
    Worker:
      replicas: 3
      template:
        spec:
          containers: [{name: pytorch, image: "digits:1"}]
"""


def spec_of(document: dict[str, Any]) -> Any:
    return render_spec(job_of(document).draft.spec)


def env_of(document: dict[str, Any], pool: int = 0) -> dict[str, str]:
    return dict(job_of(document).draft.spec.pools[pool].env)


def master(document: dict[str, Any]) -> dict[str, Any]:
    return document["spec"]["pytorchReplicaSpecs"]["Master"]


def test_the_master_is_the_first_pool_and_the_workers_the_second():
    found = job_of(read(JOB))
    spec = render_spec(found.draft.spec)
    assert [pool["replicaCount"] for pool in spec["workerPoolSpecs"]] == ["1", "2"]
    assert spec["workerPoolSpecs"][0]["machineSpec"] == {
        "machineType": "custom-2-4096",
        "acceleratorType": "NVIDIA_TESLA_T4",
        "acceleratorCount": 1,
    }
    assert spec["scheduling"] == {
        "timeout": "600s",
        "gracePeriod": "5s",
        "drainDuration": "86400s",
        "restartRule": {
            "retryExitCodes": ["1-255"],
            "maxReplicaRestarts": 3,
            "maxJobRetries": 0,
            "maxBackoff": "300s",
        },
    }
    assert (found.manifest.kind, found.manifest.name) == ("PyTorchJob", "digits")
    assert found.draft.labels == {"team": "vision"}


def test_replicas_have_the_names_of_their_services():
    words = job_of(read(JOB)).manifest.pools
    assert words[1].names(1) == (
        "digits-worker-1",
        "digits-worker-1.kubeflow",
        "digits-worker-1.kubeflow.svc",
        "digits-worker-1.kubeflow.svc.cluster.local",
    )
    assert words[0].names(0)[0] == "digits-master-0"


def test_texts_name_what_the_operator_sets():
    found = job_of(read(JOB))
    pool = found.draft.spec.pools[0]
    assert pool.command == ("torchrun", "--node-rank=$(RANK)", "--nnodes=3", "$$(RANK)", "train.py")
    assert dict(pool.env) == {
        "ME": "digits-master-$(job-index)",
        "APP": "digits",
        "WORLD_SIZE": "3",
        "PET_NNODES": "3",
    }
    path = "spec.pytorchReplicaSpecs.Master.template.spec.containers[0]"
    assert f"{path}.env[2] is ignored: RANK is set here." in found.notes


def test_processes_of_a_node_count_for_the_size_of_the_world():
    assert env_of(read(JOB, nprocPerNode="4"))["WORLD_SIZE"] == "12"
    env = env_of(read(JOB, nprocPerNode="auto"), 1)
    assert (env["WORLD_SIZE"], env["PET_NPROC_PER_NODE"]) == ("3", "auto")


def test_elastic_workers_meet_at_the_first_of_them():
    assert env_of(read(WORKERS)) == {
        "WORLD_SIZE": "6",
        "PET_NNODES": "1:4",
        "PET_NPROC_PER_NODE": "2",
        "PET_RDZV_BACKEND": "c10d",
        "PET_RDZV_ENDPOINT": "$(host-0-0):$(MASTER_PORT)",
        "PET_MAX_RESTARTS": "10",
        "PET_RDZV_ID": "one",
        "PET_RDZV_CONF": "timeout=60,last_call_timeout=5",
        "PET_STANDALONE": "1",
    }


@pytest.mark.parametrize(
    ("policy", "endpoint"),
    [
        ({"rdzvHost": "elastic-worker-0", "rdzvPort": 29400}, "$(host-0-0):29400"),
        ({"rdzvHost": "etcd", "rdzvPort": 2379}, "etcd:2379"),
        ({"nProcPerNode": 1}, "$(host-0-0):$(MASTER_PORT)"),
    ],
)
def test_another_place_to_meet_can_be_named(policy: dict[str, object], endpoint: str):
    env = env_of(read(WORKERS, elasticPolicy=policy))
    assert (env["PET_RDZV_ENDPOINT"], env["PET_NNODES"]) == (endpoint, "3")


def test_workers_without_a_master_must_all_succeed():
    scheduling = spec_of(read(WORKERS))["scheduling"]
    assert scheduling["successPools"] == [0]
    assert scheduling["restartRule"]["maxReplicaRestarts"] == 1000
    assert job_of(read(WORKERS)).manifest.pools[0] == PoolWords(
        hosts=tuple(
            f"elastic-worker-$(job-index){rest}"
            for rest in ("", ".default", ".default.svc", ".default.svc.cluster.local")
        )
    )


@pytest.mark.parametrize(
    ("policy", "rule"),
    [
        ("Never", {"disableRetries": True}),
        (
            "ExitCode",
            {
                "restartRule": {
                    "retryExitCodes": ["128-255"],
                    "maxReplicaRestarts": 1000,
                    "maxJobRetries": 0,
                    "maxBackoff": "300s",
                }
            },
        ),
    ],
)
def test_the_restart_policy_is_the_restart_rule(policy: str, rule: dict[str, object]):
    document = read(WORKERS)
    document["spec"]["pytorchReplicaSpecs"]["Worker"]["restartPolicy"] = policy
    scheduling = spec_of(document)["scheduling"]
    assert {name: scheduling[name] for name in rule} == rule


def test_workers_that_are_cleaned_up_have_only_the_usual_time_to_end():
    assert "drainDuration" not in spec_of(read(JOB, runPolicy={"cleanPodPolicy": "Running"}))["scheduling"]


def test_what_is_ignored_is_said():
    policy = {"ttlSecondsAfterFinished": 60, "schedulingPolicy": {"minAvailable": 3}}
    notes = job_of(read(JOB, runPolicy=policy, elasticPolicy={"metrics": [{"type": "Resource"}]})).notes
    assert {note.partition(" ")[0] for note in notes} >= {
        "spec.runPolicy.ttlSecondsAfterFinished",
        "spec.runPolicy.schedulingPolicy",
        "spec.elasticPolicy.metrics",
    }


@pytest.mark.parametrize(
    ("changes", "paths"),
    [
        ({"pytorchReplicaSpecs": {}}, ["spec.pytorchReplicaSpecs"]),
        (
            {"pytorchReplicaSpecs": {"Chief": {}}},
            ["spec.pytorchReplicaSpecs.Chief", "spec.pytorchReplicaSpecs"],
        ),
        ({"pytorchReplicaSpecs": []}, ["spec.pytorchReplicaSpecs"]),
        ({"nprocPerNode": "many"}, ["spec.nprocPerNode"]),
        ({"nprocPerNode": 0}, ["spec.nprocPerNode"]),
        ({"nprocPerNode": [1]}, ["spec.nprocPerNode"]),
        ({"runPolicy": {"suspend": True}}, ["spec.runPolicy.suspend"]),
        ({"runPolicy": {"backoffLimit": -1}}, ["spec.runPolicy.backoffLimit"]),
        ({"runPolicy": {"activeDeadlineSeconds": 0}}, ["spec.runPolicy.activeDeadlineSeconds"]),
        ({"runPolicy": {"cleanPodPolicy": "Some"}}, ["spec.runPolicy.cleanPodPolicy"]),
        ({"elasticPolicy": {"minReplicas": 3}}, ["spec.elasticPolicy.minReplicas"]),
        ({"elasticPolicy": {"maxReplicas": 1}}, ["spec.elasticPolicy.maxReplicas"]),
        ({"elasticPolicy": {"rdzvPort": 70000}}, ["spec.elasticPolicy.rdzvPort"]),
        ({"elasticPolicy": {"minReplicas": "two"}}, ["spec.elasticPolicy.minReplicas"]),
    ],
)
def test_what_cannot_be_had_is_refused_at_its_path(changes: dict[str, Any], paths: list[str]):
    assert sorted(refused(read(JOB, **changes))) == sorted(paths)


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"replicas": 2}, "replicas"),
        ({"restartPolicy": "Always"}, "restartPolicy"),
        ({"template": {"spec": {"containers": []}}}, "template.spec.containers"),
        (
            {"template": {"spec": {"containers": [{"image": "a:1"}, {"image": "b:1"}]}}},
            "template.spec.containers[1]",
        ),
        (
            {"template": {"spec": {"hostNetwork": True, "containers": [{"image": "a:1"}]}}},
            "template.spec.hostNetwork",
        ),
        ({"template": {"spec": {"containers": [{}]}}}, "template.spec.containers[0].image"),
    ],
)
def test_what_cannot_be_had_of_a_replica_is_refused(changes: dict[str, Any], path: str):
    document = read(JOB)
    master(document).update(changes)
    assert f"spec.pytorchReplicaSpecs.Master.{path}" in refused(document)


def test_master_and_workers_have_one_restart_policy():
    document = read(JOB)
    master(document)["restartPolicy"] = "Never"
    assert refused(document) == {
        "spec.pytorchReplicaSpecs.Worker.restartPolicy": (
            "must be Never, as Master's is: a job has one restart rule."
        )
    }


def test_a_label_that_only_a_cluster_gives_cannot_be_had():
    document = read(JOB)
    where = "metadata.labels['training.kubeflow.org/unheard-of']"
    env = [{"name": "X", "valueFrom": {"fieldRef": {"fieldPath": where}}}]
    master(document)["template"]["spec"]["containers"][0]["env"] = env
    path = "spec.pytorchReplicaSpecs.Master.template.spec.containers[0].env[0].valueFrom.fieldRef.fieldPath"
    assert list(refused(document)) == [path]


def test_a_version_of_another_operator_is_refused():
    assert list(refused(read(JOB) | {"apiVersion": "kubeflow.org/v1beta2"})) == ["apiVersion"]
