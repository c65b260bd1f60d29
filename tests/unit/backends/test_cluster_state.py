"""What pods and nodes say, as objects of the API server: pure readings of them."""

from typing import Any

import pytest

from trainshed.backends.cluster.nodes import elsewhere, nodes_of, quantity, requested, slim_pod
from trainshed.backends.cluster.pod import HOME, avoided_nodes, meant_node, node_affinity, not_on, on_node
from trainshed.backends.cluster.pod_state import state_of


def pod(phase: str = "Pending", state: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    """On a node, where it has a container."""
    containers = [] if state is None else [{"name": "replica", "state": state}]
    spec = {"nodeName": "n1"} if containers else {}
    return {
        "metadata": {"uid": "u"},
        "spec": spec,
        "status": {"phase": phase, "containerStatuses": containers, **status},
    }


def test_a_pod_without_a_status_waits_to_be_placed():
    state = state_of({"metadata": {"uid": "u"}})
    assert not state.is_running and not state.is_over and "not placed it yet" in state.waits_for


@pytest.mark.parametrize("reason", ["ErrImagePull", "ImagePullBackOff", "InvalidImageName"])
def test_an_image_that_cannot_be_pulled_shows_the_registrys_words(reason: str):
    state = state_of(pod(state={"waiting": {"reason": reason, "message": "manifest unknown"}}))
    assert state.pull_failure == "manifest unknown" and reason in state.waits_for


def test_a_running_pod_waits_for_nothing():
    state = state_of(pod("Running", {"running": {}}, podIP="10.0.0.7"))
    assert state.is_running and state.address == "10.0.0.7" and state.waits_for == ""


def test_the_end_of_a_pod_has_what_its_init_left_and_what_kubernetes_saw():
    ended = {
        "exitCode": 137,
        "reason": "OOMKilled",
        "message": "init - 1\n",
        "finishedAt": "2026-11-17T10:00:00Z",
    }
    state = state_of(pod("Failed", {"terminated": ended}))
    assert state.is_over and state.out_of_memory and state.record == "init - 1\n"
    assert state.ended_at is not None and state.ended_at.hour == 10


@pytest.mark.parametrize(
    ("reason", "says"),
    [
        ("Error", "ended with Error, exit status 137."),
        ("StartError", "ended with StartError, exit status 137: no such device: /dev/x."),
    ],
)
def test_the_end_of_a_container_is_told_in_kubernetes_words_without_what_its_init_left(
    reason: str, says: str
):
    ended = {"exitCode": 137, "reason": reason, "message": "no such device:\n /dev/x"}
    state = state_of(pod("Failed", {"terminated": ended}))
    assert state.ended_as == f"Kubernetes says that its container {says}"
    assert state_of(pod("Running", {"running": {}})).ended_as == ""


def test_an_evicted_pod_is_over_without_a_container():
    state = state_of(pod("Failed", reason="Evicted", message="The node was low on resource: memory. "))
    assert state.is_over and state.record == ""
    assert state.interruption == "Its node evicted it: The node was low on resource: memory."


@pytest.mark.parametrize(
    ("status", "says"),
    [
        ({"reason": "Preempting", "message": "Preempted in order to admit critical pod"}, "critical pod"),
        ({"reason": "Shutdown", "message": "Node is shutting, evicting pods"}, "was shut down"),
        ({"reason": "NodeLost"}, "Its node is lost."),
        ({"reason": "OutOfcpu", "message": "Node didn't have enough resource: cpu"}, "had no room"),
    ],
)
def test_a_pod_that_its_node_ended_was_interrupted(status: dict[str, Any], says: str):
    assert says in state_of(pod("Failed", **status)).interruption


@pytest.mark.parametrize(
    ("reason", "says"),
    [
        ("PreemptionByScheduler", "preempted"),
        ("DeletionByTaintManager", "taint"),
        ("EvictionByEvictionAPI", "evicted"),
        ("SomethingNew", "SomethingNew"),
    ],
)
def test_a_disruption_that_kubernetes_announces_is_told_with_its_words(reason: str, says: str):
    target = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": "so they say"}
    interruption = state_of(pod("Running", {"running": {}}, conditions=[target])).interruption
    assert says in interruption and interruption.endswith("so they say.")


def test_a_pod_that_somebody_deletes_is_interrupted():
    deleted = pod("Running", {"running": {}})
    assert state_of(deleted).interruption == ""
    deleted["metadata"]["deletionTimestamp"] = "2026-11-17T10:00:00Z"
    assert state_of(deleted).interruption == "Somebody deleted its pod."


def test_a_pod_over_its_own_limit_of_disk_was_not_interrupted():
    words = "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. "
    state = state_of(pod("Failed", reason="Evicted", message=words))
    assert state.interruption == "" and state.over_disk == words.strip()


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("250m", 0.25),
        ("2", 2),
        ("1Gi", 1 << 30),
        ("3k", 3000),
        (None, 0),
        ("16Ki", 16384),
        ("1Ei", 1 << 60),
        ("1E", 10**18),
    ],
)
def test_quantities_are_read_as_kubernetes_writes_them(text: str | None, number: float):
    assert quantity(text) == number


def node(name: str = "n1", ready: str = "True", **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": {"nvidia.com/gpu.product": "H200"}},
        "spec": spec,
        "status": {
            "allocatable": {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "2"},
            "conditions": [{"type": "Ready", "status": ready}],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
        },
    }


def other_pod(cpu: str, home: str = "", phase: str = "Running") -> dict[str, Any]:
    requests = {"resources": {"requests": {"cpu": cpu, "memory": "1Gi", "nvidia.com/gpu": "1"}}}
    return slim_pod(
        {
            "metadata": {"name": "p", "namespace": "x", "labels": {HOME: home} if home else {}},
            "spec": {"nodeName": "n1", "containers": [requests]},
            "status": {"phase": phase},
        }
    )


def test_a_node_offers_what_pods_of_others_leave():
    pods = [other_pod("500m"), other_pod("1", home="ours"), other_pod("1", phase="Succeeded")]
    [offered] = nodes_of([node()], pods, "ours")
    assert (offered.cpus, offered.memory, offered.gpus) == (3.5, 7 << 30, ("0",))
    assert offered.host == "10.0.0.1" and offered.gpu_kind == "H200"


def container(cpu: str, **more: str) -> dict[str, Any]:
    return {"resources": {"requests": {"cpu": cpu}}, **more}


def test_a_pod_takes_the_most_that_its_containers_take_at_a_time():
    sidecar = container("1", restartPolicy="Always")
    assert requested({"containers": [container("2"), container("500m")]}) == {"cpu": 2.5}
    assert requested({"containers": [container("2")], "initContainers": [container("3")]}) == {"cpu": 3}
    assert requested({"containers": [container("2")], "initContainers": [sidecar]}) == {"cpu": 3}
    inits = [sidecar, container("4")]
    assert requested({"containers": [container("2")], "initContainers": inits}) == {"cpu": 5}


def test_a_pod_takes_its_overhead_and_what_is_requested_for_it_as_a_whole():
    spec = {"containers": [container("2")], "overhead": {"cpu": "250m"}}
    assert requested(spec) == {"cpu": 2.25}
    assert requested({**spec, "resources": {"requests": {"cpu": "4"}}}) == {"cpu": 4.25}


def test_a_pod_for_a_type_of_gpu_is_meant_for_the_nodes_whose_labels_name_it():
    other = {"metadata": {"labels": {"cloud.google.com/gke-accelerator": "h200"}}}
    nodes = [node("a"), node("b"), other, {"metadata": {"labels": {"accelerator": "t4"}}}, {}]
    by_product = {"key": "nvidia.com/gpu.product", "operator": "In", "values": ["H200"]}
    by_cloud = {"key": "cloud.google.com/gke-accelerator", "operator": "In", "values": ["h200"]}
    is_meant = lambda device: device.upper() == "H200"  # noqa: E731
    assert elsewhere(nodes, is_meant, ()) == node_affinity(
        [{"matchExpressions": [by_cloud]}, {"matchExpressions": [by_product]}]
    )
    others = {"matchFields": [not_on("b"), not_on("c")]}
    assert elsewhere(nodes, is_meant, ("b", "c")) == node_affinity(
        [{"matchExpressions": [by_cloud], **others}, {"matchExpressions": [by_product], **others}]
    )
    assert elsewhere(nodes, lambda device: device == "A100", ()) == {}


def test_a_pod_that_may_be_on_all_nodes_but_some_is_meant_for_none():
    affinity = elsewhere((), lambda _: False, ("b", "c"))
    assert affinity == node_affinity([{"matchFields": [not_on("b"), not_on("c")]}])
    avoiding = {"spec": {"affinity": affinity}}
    assert (meant_node(avoiding), avoided_nodes(avoiding)) == ("", ("b", "c"))
    assert meant_node({"spec": {"affinity": on_node("a")}}) == "a"


@pytest.mark.parametrize(
    "closed",
    [
        node(ready="Unknown"),
        node(unschedulable=True),
        node(taints=[{"key": "a", "effect": "NoSchedule"}]),
    ],
)
def test_a_node_that_takes_no_pods_is_not_offered(closed: dict[str, Any]):
    assert nodes_of([closed], [], "ours") == ()


@pytest.mark.parametrize(
    ("reason", "says"),
    [
        ("WorkloadEvicted", "Kueue evicted it from its queue: Preempted to accommodate a workload."),
        ("WorkloadEvictedDueToPreempted", "Kueue evicted it from its queue: Preempted"),
        ("WorkloadDeleted", "because somebody deleted its Workload"),
        ("SomethingNew", "Kueue ended it (SomethingNew)"),
    ],
)
def test_a_pod_that_kueue_ends_was_interrupted_by_kueue(reason: str, says: str):
    target = {"type": "TerminationTarget", "status": "True", "reason": reason}
    target["message"] = "Preempted to accommodate a workload"
    ended = pod("Running", {"running": {}}, conditions=[target])
    ended["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert says in state_of(ended).interruption
