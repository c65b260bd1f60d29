"""Jobs on a real cluster, through a real server: gangs, logs, cancelling, kill -9, deleted pods."""

import json
import time
from collections.abc import Sequence

import pytest

from tests.kubernetes.cluster import Cluster, wait_for
from tests.live import LiveServer

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(600)]

MEETS_ALL = """
import json, os, socket, time
spec = json.loads(os.environ["CLUSTER_SPEC"])
hosts = [place.partition(":")[0] for places in spec["cluster"].values() for place in places]
print(socket.gethostname(), len({socket.gethostbyname(host) for host in hosts}), flush=True)
time.sleep(5)  # the name of a pod that has ended leads nowhere, and others may begin later
"""
COUNTS = "import time\nfor number in range(40): print(number, flush=True); time.sleep(0.25)"
WAITS = "import time; print('ready', flush=True); time.sleep(600)"
FAILS_SOON = "import sys, time; print('ready', flush=True); time.sleep(2); sys.exit(3)"
HUNGRY = "kept = bytearray(400 << 20); print(len(kept))"
ENDS_IN_ITS_SECOND_RUN = """
import os, sys, time
if int(os.environ["TRAINSHED_RUN"].rpartition(".")[2]): sys.exit(0)
print("ready", flush=True); time.sleep(600)
"""


def submit(server: LiveServer, program: str, *counts: int, env: Sequence[object] = (), **spec: object) -> str:
    """A job of one pool for each count; of one replica where none is given."""
    container = {"imageUri": "localhost/python:3", "command": ["python3", "-c", program], "env": list(env)}
    pools = [
        {
            "machineSpec": {"machineType": "custom-1-256"},
            "replicaCount": count,
            "containerSpec": container,
        }
        for count in counts or (1,)
    ]
    return server.submit(pools=pools, name="in pods", spec=spec)


def lines(server: LiveServer, job: str) -> list[str]:
    return [entry["text"] for entry in server.lines(job)]


def objects(cluster: Cluster, job: str) -> list[str]:
    selector = f"?labelSelector=trainshed.dev/job%3D{job.rpartition('/')[2]}"
    kinds = ("pods", "services", "secrets")
    answers = [cluster.ask("GET", f"/api/v1/namespaces/default/{kind}{selector}") for kind in kinds]
    return [str(item["metadata"]["name"]) for answer in answers for item in answer["items"]]


def pod_of(cluster: Cluster, job: str) -> str:
    """The path of its only pod."""
    selector = f"?labelSelector=trainshed.dev/job%3D{job.rpartition('/')[2]}"
    [pod] = cluster.ask("GET", f"/api/v1/namespaces/default/pods{selector}")["items"]
    return f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}"


def is_gone(cluster: Cluster, job: str) -> None:
    wait_for(lambda: not objects(cluster, job), "that nothing of the job is left in the cluster")


def test_replicas_of_a_gang_find_each_other_by_name_from_their_first_line(
    server: LiveServer, cluster: Cluster
):
    job = submit(server, MEETS_ALL, 1, 2)
    done = server.wait(job, 180)
    assert done["state"] == "JOB_STATE_SUCCEEDED", json.dumps(done)
    said, events = sorted(lines(server, job)), server.get(f"/v1/{job}:events")
    assert said == ["workerpool0-0 3", "workerpool1-0 3", "workerpool1-1 3"], json.dumps(events)
    is_gone(cluster, job)


def test_a_cancelled_job_leaves_nothing_in_the_cluster(server: LiveServer, cluster: Cluster):
    job = submit(server, WAITS)
    wait_for(lambda: "ready" in lines(server, job), "that its program runs")
    assert len(objects(cluster, job)) == 3
    server.cancel(job)
    assert server.wait(job, 120)["state"] == "JOB_STATE_CANCELLED"
    is_gone(cluster, job)


def test_a_job_goes_on_while_its_server_is_killed_and_each_line_comes_once(
    server: LiveServer, cluster: Cluster
):
    job = submit(server, COUNTS)
    for mark in ("3", "12", "25"):
        wait_for(lambda mark=mark: mark in lines(server, job), f"line {mark}")
        server.kill()
        server.start()
    assert server.wait(job, 120)["state"] == "JOB_STATE_SUCCEEDED"
    assert lines(server, job) == [str(number) for number in range(40)]
    is_gone(cluster, job)


def test_a_pod_that_somebody_deletes_ends_with_its_true_status_and_is_started_again(
    server: LiveServer, cluster: Cluster
):
    job = submit(server, ENDS_IN_ITS_SECOND_RUN)
    wait_for(lambda: "ready" in lines(server, job), "that its program runs")
    cluster.ask("DELETE", pod_of(cluster, job))
    assert server.wait(job, 180)["state"] == "JOB_STATE_SUCCEEDED"
    events = server.get(f"/v1/{job}:events")["events"]
    restarts = [event["message"] for event in events if event["reason"] == "REPLICA_RESTARTED"]
    assert restarts and "signal 15" in restarts[0], events
    is_gone(cluster, job)


def test_the_pod_of_a_run_that_was_lost_is_removed_also_by_the_next_server(
    server: LiveServer, cluster: Cluster
):
    """The server is killed when it has noted that the run is lost, and before it has removed the pod."""
    job = submit(server, WAITS)
    wait_for(lambda: "ready" in lines(server, job), "that its program runs")
    lost = pod_of(cluster, job)
    server.kill()
    (server.home / "kubernetes" / "jobs" / job.rpartition("/")[2] / "0/0-0/0/lost").touch()
    server.start()
    wait_for(lambda: lines(server, job) == ["ready", "ready"], "its second run")
    wait_for(lambda: len(objects(cluster, job)) == 3, "that the pod of its first run is gone")
    assert pod_of(cluster, job) != lost
    server.cancel(job)
    is_gone(cluster, job)


def test_a_program_that_failed_before_its_pod_was_deleted_has_failed_by_itself(
    server: LiveServer, cluster: Cluster
):
    """Nobody saw its end: the server was away."""
    job = submit(server, FAILS_SOON)
    wait_for(lambda: "ready" in lines(server, job), "that its program runs")
    pod = pod_of(cluster, job)
    server.kill()
    time.sleep(8)
    cluster.ask("DELETE", pod)
    server.start()
    assert server.wait(job, 180)["state"] == "JOB_STATE_FAILED"
    events = server.get(f"/v1/{job}:events")["events"]
    assert "REPLICA_RESTARTED" not in {event["reason"] for event in events}, events
    assert "exited with code 3" in events[-1]["message"], events
    is_gone(cluster, job)


def test_a_program_that_takes_too_much_memory_is_told_so(server: LiveServer, cluster: Cluster):
    job = submit(server, HUNGRY, scheduling={"disableRetries": True})
    done = server.wait(job, 180)
    assert done["state"] == "JOB_STATE_FAILED"
    assert "memory" in json.dumps(done["error"]), done["error"]
    is_gone(cluster, job)


def test_an_image_that_no_registry_has_fails_the_job_with_the_registrys_words(
    server: LiveServer, cluster: Cluster
):
    image = f"{cluster.registry}/nobody/has:this"
    pools = [{"machineSpec": {"machineType": "custom-1-256"}, "replicaCount": 1}]
    pools[0]["containerSpec"] = {"imageUri": image, "command": ["true"]}
    job = server.submit(pools=pools, name="no image")
    done = server.wait(job, 180)
    assert done["state"] == "JOB_STATE_FAILED"
    assert "not found" in json.dumps(done["error"]), done["error"]


def test_an_isolated_job_fails_and_says_why_where_the_cluster_enforces_no_policies(server: LiveServer):
    job = submit(server, WAITS, network="none")
    done = server.wait(job, 60)
    assert done["state"] == "JOB_STATE_FAILED"
    assert "not kept apart from the network" in json.dumps(done["error"]), done["error"]


def test_what_a_server_that_is_gone_for_good_kept_can_be_released(cluster: Cluster):
    config = str(cluster.place.kubeconfig)
    with (
        cluster.namespace() as namespace,
        LiveServer("--kubernetes", "--kubeconfig", config, "--namespace", namespace) as server,
    ):
        job = submit(server, WAITS)
        wait_for(lambda: "ready" in lines(server, job), "that its program runs")
        server.kill()
        path = f"/api/v1/namespaces/{namespace}/pods"
        [pod] = cluster.ask("GET", path)["items"]
        cluster.ask("DELETE", f"{path}/{pod['metadata']['name']}", {"gracePeriodSeconds": 0})
        words = ["--delete", "--json", "--kubeconfig", config, "--namespace", namespace]
        released = server.cli("kube", "release", *words)
        assert released.returncode == 0, released.stderr
        kinds = {row["kind"] for row in json.loads(released.stdout)["deleted"]}
        assert kinds == {"pods", "services", "secrets", "configmaps"}
        wait_for(lambda: not cluster.ask("GET", path)["items"], "that the pod is gone")
