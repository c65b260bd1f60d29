"""What becomes of a job whose node is powered off, cut off or drained: it goes on elsewhere, once."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes import pods
from tests.kubernetes.cluster import Cluster, a_cluster_apart, wait_for
from tests.kubernetes.test_jobs import ENDS_IN_ITS_SECOND_RUN, is_gone, lines, pod_of, submit
from tests.live import PARENT, LiveServer

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Kubernetes notices a lost node as late as elsewhere. Until then it would put our pods on it again."""
    with a_cluster_apart(Path(tmp_path_factory.mktemp("lost")) / "c", node_grace=40) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def server(apart: Cluster) -> Iterator[LiveServer]:
    with LiveServer("--kubernetes", "--kubeconfig", str(apart.place.kubeconfig)) as server:
        yield server


def begun(server: LiveServer, apart: Cluster) -> tuple[str, str]:
    """A job that ends in its second run, and the node of its first."""
    job = submit(server, ENDS_IN_ITS_SECOND_RUN)
    wait_for(lambda: "ready" in lines(server, job), "that its program runs")
    return job, str(apart.ask("GET", pod_of(apart, job))["spec"]["nodeName"])


def offered(server: LiveServer) -> set[str]:
    return {str(node["name"]) for node in server.get(f"{PARENT}/nodes")["nodes"]}


def restarts(server: LiveServer, job: str) -> list[str]:
    events: list[Any] = server.get(f"/v1/{job}:events")["events"]
    return [str(event["message"]) for event in events if event["reason"] == "REPLICA_RESTARTED"]


def cordon(apart: Cluster, node: str, value: bool | None) -> None:
    body = {"spec": {"unschedulable": value}}
    apart.ask("PATCH", f"/api/v1/nodes/{node}", body)


def evict(apart: Cluster, pod: str) -> None:
    """As kubectl drain does it."""
    name = pod.rpartition("/")[2]
    apart.ask(
        "POST",
        f"{pod}/eviction",
        {"metadata": {"name": name}, "kind": "Eviction", "apiVersion": "policy/v1beta1"},
    )


def is_counted_elsewhere(server: LiveServer, job: str, node: str) -> None:
    [replica] = server.get(f"/v1/{job}:status")["replicas"]
    assert replica["node"] != node and replica["interruptions"] == 1, replica
    events: list[Any] = server.get(f"/v1/{job}:events")["events"]
    assert [event for event in events if event["reason"] == "REPLICA_MOVED"], events


@pytest.mark.parametrize(("harm", "mend"), [("cut", "join"), ("off", "on")])
def test_a_replica_of_a_node_that_is_lost_runs_on_another_node(
    server: LiveServer, apart: Cluster, harm: str, mend: str
):
    job, node = begun(server, apart)
    apart.command("node", node, harm)
    try:
        assert server.wait(job, 240)["state"] == "JOB_STATE_SUCCEEDED"
        assert "was lost" in restarts(server, job)[0]
        assert "does not answer any more" in restarts(server, job)[0]
        assert "counts as none of its 5 restarts" in restarts(server, job)[0]
        is_counted_elsewhere(server, job, node)
        is_gone(apart, job)
    finally:
        apart.command("node", node, mend)
    wait_for(lambda: {"node1", "node2"} <= offered(server), "that both nodes are back")


def test_a_replica_of_a_node_that_is_drained_runs_on_another_node(server: LiveServer, apart: Cluster):
    job, node = begun(server, apart)
    cordon(apart, node, True)
    try:
        evict(apart, pod_of(apart, job))
        assert server.wait(job, 180)["state"] == "JOB_STATE_SUCCEEDED"
        assert "signal 15" in restarts(server, job)[0]
        assert f"Node {node} is being drained." in restarts(server, job)[0]
        assert "counts as none of its 5 restarts" in restarts(server, job)[0]
        is_counted_elsewhere(server, job, node)
        is_gone(apart, job)
    finally:
        cordon(apart, node, None)


def test_a_replica_whose_place_others_have_taken_runs_on_another_node(server: LiveServer, apart: Cluster):
    job, node = begun(server, apart)
    cpus = int(apart.ask("GET", f"/api/v1/nodes/{node}")["status"]["allocatable"]["cpu"])
    server.kill()
    with apart.namespace() as namespace:
        apart.ask("DELETE", f"{pod_of(apart, job)}?gracePeriodSeconds=1")
        wait_for(lambda: is_over(apart, job), "that its pod was killed")
        pods.make(
            apart, namespace, "large", ["sleep", "600"], limits={"cpu": str(cpus)}, nodeSelector=pods.on(node)
        )
        pods.wait_until(apart, namespace, "large", "Running")
        server.start()
        assert server.wait(job, 180)["state"] == "JOB_STATE_SUCCEEDED"
        is_counted_elsewhere(server, job, node)
        is_gone(apart, job)


def is_over(apart: Cluster, job: str) -> bool:
    """Kubernetes counts a pod no more once its containers have ended."""
    return apart.ask("GET", pod_of(apart, job))["status"].get("phase") in pods.ENDED
