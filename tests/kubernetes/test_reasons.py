"""Why replicas do not start, on a real cluster: each reason is typed, and none is waited for for ever."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes.cluster import Cluster, a_cluster_apart, wait_for
from tests.kubernetes.test_jobs import WAITS, lines, submit
from tests.live import LiveServer

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(900)]

QUOTA = "/api/v1/namespaces/default/resourcequotas"
SECRETS = "/api/v1/namespaces/default/secrets"
TAINT = {"spec": {"taints": [{"key": "team", "value": "a", "effect": "NoSchedule"}]}}


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with a_cluster_apart(Path(tmp_path_factory.mktemp("reasons")) / "c") as cluster:
        yield cluster


@pytest.fixture
def no_pods(apart: Cluster) -> Iterator[None]:
    """A quota that allows none; a test may take it away before its end."""
    apart.ask("POST", QUOTA, {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}})
    wait_for(lambda: apart.ask("GET", f"{QUOTA}/none")["status"].get("hard"), "that the quota is in force")
    yield
    apart.api.ask("DELETE", f"{QUOTA}/none")


def waits(server: LiveServer, job: str, reason: str) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        waiting = server.get(f"/v1/{job}:status").get("waiting") or {}
        return waiting if waiting.get("reason") == reason else None

    return wait_for(look, f"that the job waits for {reason}")


def change(apart: Cluster, node: str, body: dict[str, Any]) -> None:
    apart.ask("PATCH", f"/api/v1/nodes/{node}", body)


def test_each_thing_in_the_way_of_a_pod_is_named_until_it_runs(apart: Cluster, no_pods: None):
    with LiveServer("--kubernetes", "--kubeconfig", str(apart.place.kubeconfig)) as server:
        job = submit(server, WAITS)
        quota = waits(server, job, "QUOTA_EXCEEDED")
        assert "exceeded quota: none" in quota["message"] and "ResourceQuota" in quota["remedy"]
        change(apart, "node1", TAINT)
        change(apart, "node2", {"spec": {"unschedulable": True}})
        try:
            apart.ask("DELETE", f"{QUOTA}/none")
            unplaced = waits(server, job, "UNSCHEDULABLE")
            assert "1 has the taint {team: a}" in unplaced["message"], unplaced
            assert "1 has been cordoned" in unplaced["message"] and "kubectl uncordon" in unplaced["remedy"]
            selector = f"?labelSelector=trainshed.dev/job%3D{job.rpartition('/')[2]}"
            [secret] = apart.ask("GET", f"{SECRETS}{selector}")["items"]
            name = secret["metadata"]["name"]
            apart.ask("DELETE", f"{SECRETS}/{name}")
        finally:
            change(apart, "node1", {"spec": {"taints": None}})
            change(apart, "node2", {"spec": {"unschedulable": None}})
        missing = waits(server, job, "CONFIG_MISSING")
        assert f"Secret {name} is not there" in missing["message"], missing
        meta = {key: secret["metadata"][key] for key in ("name", "labels")}
        apart.ask("POST", SECRETS, {"metadata": meta, "data": secret["data"], "type": secret["type"]})
        wait_for(lambda: "ready" in lines(server, job), "that its program runs")
        reasons = [event["reason"] for event in server.get(f"/v1/{job}:events")["events"]]
        told = [word for word in reasons if word in ("QUOTA_EXCEEDED", "UNSCHEDULABLE", "CONFIG_MISSING")]
        assert told == ["QUOTA_EXCEEDED", "UNSCHEDULABLE", "CONFIG_MISSING"], reasons
        server.cancel(job)
        assert server.wait(job, 120)["state"] == "JOB_STATE_CANCELLED"


def test_a_volume_that_cannot_be_mounted_and_a_quota_end_the_job_with_their_words(
    apart: Cluster, no_pods: None
):
    limits = ["--give-up", "QUOTA_EXCEEDED=6s", "--give-up", "MOUNT_FAILED=6s", "--fit", "strict"]
    with LiveServer("--kubernetes", "--kubeconfig", str(apart.place.kubeconfig), *limits) as server:
        fails(server, submit(server, WAITS), "QUOTA_EXCEEDED", "exceeded quota: none")
        apart.ask("DELETE", f"{QUOTA}/none")
        nowhere = {"server": "127.0.0.1", "path": "/nothing", "mountPoint": "data"}
        pool = {
            "machineSpec": {"machineType": "custom-1-256"},
            "replicaCount": 1,
            "nfsMounts": [nowhere],
            "containerSpec": {"imageUri": "localhost/python:3", "command": ["true"]},
        }
        fails(server, server.submit(pools=[pool], name="nfs"), "MOUNT_FAILED", "cannot be mounted")
        huge = {**pool, "machineSpec": {"machineType": "custom-64-256"}, "nfsMounts": []}
        job = server.submit(pools=[huge], name="too large")
        assert "64 CPUs" in waits(server, job, "TOO_LARGE")["message"]


def fails(server: LiveServer, job: str, reason: str, says: str) -> None:
    assert server.wait(job, 180)["state"] == "JOB_STATE_FAILED"
    failure = server.get(f"/v1/{job}:status")["failure"]
    assert failure["reason"] == reason and says in failure["message"], json.dumps(failure)
