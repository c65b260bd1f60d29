"""JobSets as jobs: each replicated job is a pool whose replicas know their names and numbers."""

from typing import Any

import pytest

from tests.unit.dialects.kubernetes.test_manifest import job_of, read, refused
from trainshed.wire.custom_job import render_spec

SET = """
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: digits}
spec:
  failurePolicy: {maxRestarts: 3}
  coordinator: {replicatedJob: workers, jobIndex: 1, podIndex: 1}
  replicatedJobs:
  - name: driver
    template:
      spec:
        template:
          spec:
            containers: [{name: main, image: "digits:1"}]
  - name: workers
    replicas: 2
    template:
      spec:
        parallelism: 3
        completions: 3
        backoffLimit: 0
        activeDeadlineSeconds: 60
        template:
          metadata: {annotations: {owner: me}}
          spec:
            restartPolicy: Never
            containers:
            - name: main
              image: digits:1
              args: [$(JOB_COMPLETION_INDEX), $(OWNER)]
              env: []
"""
FIELDS = {
    "NAME": "metadata.name",
    "INDEX": "metadata.annotations['batch.kubernetes.io/job-completion-index']",
    "JOB": "metadata.labels['jobset.sigs.k8s.io/job-index']",
    "GLOBAL": "metadata.labels['jobset.sigs.k8s.io/job-global-index']",
    "JOBS": "metadata.annotations['jobset.sigs.k8s.io/replicatedjob-replicas']",
    "ALL": "metadata.annotations['jobset.sigs.k8s.io/global-replicas']",
    "KIND": "metadata.labels['jobset.sigs.k8s.io/replicatedjob-name']",
    "TRY": "metadata.labels['jobset.sigs.k8s.io/restart-attempt']",
    "FIRST": "metadata.annotations['jobset.sigs.k8s.io/coordinator']",
    "OWNER": "metadata.annotations['owner']",
    "NONE": "metadata.labels['none']",
}


def workers(document: dict[str, Any]) -> dict[str, Any]:
    return document["spec"]["replicatedJobs"][1]


def with_fields(fields: dict[str, str]) -> dict[str, Any]:
    document = read(SET)
    env = [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()]
    workers(document)["template"]["spec"]["template"]["spec"]["containers"][0]["env"] = env
    return document


def scheduling_of(document: dict[str, Any]) -> Any:
    return render_spec(job_of(document).draft.spec)["scheduling"]


def test_the_version_without_a_suffix_is_read_as_the_older_one():
    newer = read(SET) | {"apiVersion": "jobset.x-k8s.io/v1"}
    assert job_of(newer).draft == job_of(read(SET)).draft


def test_each_replicated_job_is_a_pool_with_the_pods_of_all_its_jobs():
    found = job_of(read(SET))
    assert [pool.replicas for pool in found.draft.spec.pools] == [1, 6]
    assert scheduling_of(read(SET)) == {
        "timeout": "60s",
        "successPools": [0, 1],
        "restartRule": {
            "retryExitCodes": ["1-255"],
            "maxReplicaRestarts": 0,
            "maxBackoff": "300s",
        },
    }
    assert "spec.replicatedJobs[0].template.spec.backoffLimit is read as 0, the least of all." in found.notes


def test_replicas_have_the_host_names_of_their_pods():
    driver, worker = job_of(read(SET)).manifest.pools
    assert driver.names(0)[:2] == ("digits-driver-0-0", "digits-driver-0-0.digits")
    assert worker.names(4) == (
        "digits-workers-1-1",
        "digits-workers-1-1.digits",
        "digits-workers-1-1.digits.default",
        "digits-workers-1-1.digits.default.svc",
        "digits-workers-1-1.digits.default.svc.cluster.local",
    )


def test_the_subdomain_can_be_chosen_and_names_can_be_left_out():
    pools = job_of(read(SET, network={"subdomain": "net"})).manifest.pools
    assert pools[1].names(0)[1] == "digits-workers-0-0.net"
    pools = job_of(read(SET, network={"enableDNSHostnames": False})).manifest.pools
    assert pools[1].names(0) == ()


def test_labels_and_annotations_of_pods_can_be_read():
    pool = job_of(with_fields(FIELDS)).draft.spec.pools[1]
    assert dict(pool.env) == {
        "NAME": "digits-workers-$(job-index)-$(pod-index)",
        "INDEX": "$(pod-index)",
        "JOB": "$(job-index)",
        "GLOBAL": "$(job-global-index)",
        "JOBS": "2",
        "ALL": "3",
        "KIND": "workers",
        "TRY": "$(TRAINSHED_ATTEMPT)",
        "FIRST": "$(host-1-4)",
        "OWNER": "me",
        "NONE": "",
        "JOB_COMPLETION_INDEX": "$(pod-index)",
    }
    assert pool.args == ("$(pod-index)", "me")


@pytest.mark.parametrize("path", ["metadata.labels['jobset.sigs.k8s.io/job-key']", "status.podIP"])
def test_what_only_a_cluster_knows_cannot_be_read(path: str):
    where = (
        "spec.replicatedJobs[1].template.spec.template.spec.containers[0].env[0].valueFrom.fieldRef.fieldPath"
    )
    assert list(refused(with_fields({"X": path}))) == [where]


def test_the_success_of_some_jobs_can_be_that_of_the_set():
    policy = {"operator": "All", "targetReplicatedJobs": ["driver"]}
    found = scheduling_of(read(SET, successPolicy=policy))
    assert (found["successPools"], found["drainDuration"]) == ([0], "0s")
    found = scheduling_of(read(SET, successPolicy=policy | {"operator": "Any"}))
    assert found["successPools"] == [0]


@pytest.mark.parametrize(("action", "retries"), [("RestartJobSet", 2), ("FailJobSet", None)])
def test_a_rule_for_all_failures_decides_whether_the_set_starts_again(action: str, retries: int | None):
    found = scheduling_of(read(SET, failurePolicy={"maxRestarts": 2, "rules": [{"action": action}]}))
    assert found.get("restartRule", {}).get("maxJobRetries") == retries
    assert found.get("disableRetries", False) is (retries is None)


def test_a_replicated_job_without_replicas_is_no_pool():
    document = read(SET)
    document["spec"]["replicatedJobs"][0]["replicas"] = 0
    found = job_of(document)
    assert [pool.replicas for pool in found.draft.spec.pools] == [6]
    assert found.manifest.pools[0].first == 0


def test_an_order_of_starts_is_ignored_and_that_is_said():
    document = read(SET, startupPolicy={"startupPolicyOrder": "InOrder"})
    workers(document)["dependsOn"] = [{"name": "driver", "status": "Ready"}]
    assert {note.partition(" ")[0] for note in job_of(document).notes} >= {
        "spec.startupPolicy",
        "spec.replicatedJobs[1].dependsOn[0]",
    }


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"replicatedJobs": []}, "spec.replicatedJobs"),
        ({"replicatedJobs": "one"}, "spec.replicatedJobs"),
        ({"replicatedJobs": [1]}, "spec.replicatedJobs[0]"),
        ({"suspend": True}, "spec.suspend"),
        ({"volumeClaimPolicies": [{}]}, "spec.volumeClaimPolicies"),
        ({"network": {"subdomain": "a b"}}, "spec.network.subdomain"),
        ({"failurePolicy": {"maxRestarts": -1}}, "spec.failurePolicy.maxRestarts"),
        (
            {"failurePolicy": {"rules": [{"action": "FailJobSet", "targetReplicatedJobs": ["driver"]}]}},
            "spec.failurePolicy.rules[0].action",
        ),
        (
            {"failurePolicy": {"rules": [{"action": "RestartJobSet"}, {"action": "RestartJob"}]}},
            "spec.failurePolicy.rules[1].action",
        ),
        ({"failurePolicy": {"restartStrategy": "Hope"}}, "spec.failurePolicy.restartStrategy"),
        ({"successPolicy": {"operator": "Any"}}, "spec.successPolicy.operator"),
        ({"successPolicy": {"operator": "Most"}}, "spec.successPolicy.operator"),
        ({"successPolicy": {"targetReplicatedJobs": ["x"]}}, "spec.successPolicy.targetReplicatedJobs[0]"),
        ({"startupPolicy": {"startupPolicyOrder": "Last"}}, "spec.startupPolicy.startupPolicyOrder"),
        ({"coordinator": {"replicatedJob": "x"}}, "spec.coordinator.replicatedJob"),
        ({"coordinator": {"replicatedJob": "driver", "podIndex": 1}}, "spec.coordinator.podIndex"),
    ],
)
def test_what_cannot_be_had_is_refused_at_its_path(changes: dict[str, Any], path: str):
    assert path in refused(read(SET, **changes))


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"name": "driver"}, "name"),
        ({"name": "Worker_1"}, "name"),
        ({"replicas": -1}, "replicas"),
        ({"replicas": 1000}, "replicas"),
        ({"dependsOn": [{"name": "driver", "status": "Complete"}]}, "dependsOn[0].status"),
        ({"dependsOn": [{"name": "driver"}]}, "dependsOn[0].status"),
        ({"template": {}}, "template.spec.template.spec.containers"),
    ],
)
def test_what_cannot_be_had_of_a_replicated_job_is_refused(changes: dict[str, Any], path: str):
    document = read(SET)
    workers(document).update(changes)
    assert f"spec.replicatedJobs[1].{path}" in refused(document)


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"completions": 9}, "parallelism"),
        ({"parallelism": 0}, "parallelism"),
        ({"backoffLimit": 5000}, "backoffLimit"),
        ({"suspend": True}, "suspend"),
        ({"template": {"spec": {"restartPolicy": "Always"}}}, "template.spec.restartPolicy"),
    ],
)
def test_what_cannot_be_had_of_its_jobs_is_refused(changes: dict[str, Any], path: str):
    document = read(SET)
    workers(document)["template"]["spec"].update(changes)
    assert f"spec.replicatedJobs[1].template.spec.{path}" in refused(document)


def test_more_replicated_jobs_than_pools_are_refused_at_their_list():
    document = read(SET)
    row = document["spec"]["replicatedJobs"][0]
    document["spec"]["replicatedJobs"] = [row | {"name": f"j{at}"} for at in range(11)]
    del document["spec"]["coordinator"]
    assert list(refused(document)) == ["spec.replicatedJobs"]
