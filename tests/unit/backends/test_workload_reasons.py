"""Why Kueue does not let a pod start: from its gate and its Workload to a typed reason and a remedy."""

from datetime import timedelta
from typing import Any

import pytest

from trainshed.backends.cluster.pod_reasons import PodEvent, obstacle_of
from trainshed.backends.cluster.pod_state import slim_own_pod, state_of
from trainshed.backends.cluster.workload_reasons import slim_workload
from trainshed.core.event import Reason
from trainshed.core.obstacle import Obstacle

LABELS = {"kueue.x-k8s.io/queue-name": "team-a", "kueue.x-k8s.io/pod-group-name": "g-0"}
BLOCKED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}
GATED: dict[str, Any] = {
    "metadata": {"name": "p", "labels": LABELS},
    "spec": {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]},
    "status": {"phase": "Pending", "conditions": [BLOCKED]},
}
NO_QUOTA = (
    "couldn't assign flavors to pod set main: insufficient quota for cpu in flavor default in ClusterQueue"
)


def workload(*conditions: tuple[str, str, str], active: bool = True, reason: str = "Pending") -> Any:
    rows = [
        {"type": kind, "status": status, "message": message, "reason": reason}
        for kind, status, message in conditions
    ]
    whole = {"metadata": {"name": "g-0"}, "spec": {"active": active}, "status": {"conditions": rows}}
    return slim_workload(whole)


def obstacle(made: Any, pod: dict[str, Any] = GATED, *events: PodEvent) -> Obstacle:
    seen = obstacle_of(slim_own_pod(pod), {}, events, workload=made)
    assert seen is not None
    return seen


def test_a_job_without_quota_has_kueues_words_and_a_remedy_that_names_the_queue():
    seen = obstacle(workload(("QuotaReserved", "False", NO_QUOTA)))
    assert seen.reason is Reason.WAITS_IN_CLUSTER_QUEUE and seen.patience == timedelta(days=1)
    assert seen.message == f"Kueue has not admitted it in queue team-a: {NO_QUOTA}."
    assert "kubectl describe localqueue team-a" in seen.remedy


@pytest.mark.parametrize(
    "words",
    [
        "LocalQueue team-a doesn't exist",
        "ClusterQueue all doesn't exist",
        "LocalQueue team-a is terminating or missing",
    ],
)
def test_a_queue_that_is_not_there_says_so_in_any_version(words: str):
    old = obstacle(workload(("QuotaReserved", "False", words), reason="Inadmissible"))
    new = obstacle(workload(("QuotaReserved", "False", words), reason="Misconfigured"))
    assert old == new and old.reason is Reason.CLUSTER_QUEUE_UNUSABLE
    assert words in old.message and "kubectl get localqueues" in old.remedy
    assert old.patience == timedelta(minutes=10)


def test_a_queue_that_somebody_stopped_is_waited_for():
    seen = obstacle(workload(("QuotaReserved", "False", "LocalQueue team-a is inactive")))
    assert seen.reason is Reason.WAITS_IN_CLUSTER_QUEUE and "is inactive" in seen.message


def test_a_job_with_quota_waits_for_admission_checks():
    checks = ("Admitted", "False", "The workload has failed admission checks")
    seen = obstacle(workload(("QuotaReserved", "True", ""), checks))
    assert seen.reason is Reason.WAITS_IN_CLUSTER_QUEUE
    assert "reserved quota in queue team-a" in seen.message and "failed admission checks" in seen.message


def test_a_workload_that_is_switched_off_says_how_it_is_switched_on():
    evicted = ("Evicted", "True", "The workload is deactivated")
    seen = obstacle(workload(("QuotaReserved", "False", "x"), evicted, active=False))
    assert "The workload is deactivated" in seen.message and "kubectl edit workload g-0" in seen.remedy


def test_a_gated_pod_without_a_workload_says_what_kueue_says_of_its_group():
    assert "Kueue has not looked at it yet" in obstacle(None).message
    words = "pod group can't include more than 8 roles"
    seen = obstacle(None, GATED, PodEvent("ErrWorkloadCompose", words))
    assert seen.reason is Reason.WAITS_IN_CLUSTER_QUEUE and words in seen.message


def test_a_pod_that_kueue_admitted_waits_for_the_scheduler_as_others_do():
    admitted = workload(("QuotaReserved", "True", ""), ("Admitted", "True", ""))
    open_pod = {**GATED, "spec": {}, "status": {"phase": "Pending"}}
    assert obstacle(admitted, open_pod).message == "Kubernetes has not placed it yet."
    assert obstacle(None, open_pod).reason is Reason.STARTING
    placed = {**open_pod, "spec": {"nodeName": "n1"}}
    refused = workload(("QuotaReserved", "False", NO_QUOTA))
    assert obstacle(refused, placed).reason is Reason.STARTING


def test_a_pod_of_a_namespace_that_kueue_manages_by_itself_is_known_by_its_gate():
    pod = {**GATED, "metadata": {"name": "p"}}
    assert state_of(pod).is_gated and "which manages this namespace" in obstacle(None, pod).message
    assert not state_of({"metadata": {"name": "p"}}).is_gated
