"""The server is found inside pods where it is outside, and knows whose programs ask."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.acceptance.test_gcs_paths import BUCKET, a_bucket
from tests.containers.test_reach import ASK, NAMED, PUT
from tests.kubernetes.cluster import Cluster, wait_for
from tests.live import LiveServer, python

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(600)]

MANY = (
    ASK
    + """
import threading
def put(number):
    ask(f'/upload/storage/v1/b/training-data/o?uploadType=media&name={number}', b'x' * 100_000)
calls = [threading.Thread(target=put, args=(number,)) for number in range(64)]
[call.start() for call in calls]
[call.join() for call in calls]
print('put', flush=True)
"""
)
WAITS = (
    ASK
    + """
print('ready', flush=True)
for number in range(60):
    try:
        ask('/storage/v1/b/training-data/o'); time.sleep(0.2)
    except OSError as error:
        print(type(error).__name__, flush=True); break
ask('/storage/v1/b/training-data/o')
print('answered', flush=True)
"""
)


@pytest.fixture(autouse=True)
def bucket(server: LiveServer) -> Iterator[None]:
    with a_bucket(server):
        yield


def pooled(source: str, image: str = "localhost/python:3", replicas: int = 1) -> dict[str, Any]:
    return {
        "machineSpec": {"machineType": "custom-1-256"},
        "replicaCount": replicas,
        "containerSpec": {"imageUri": image, "command": python(source)},
    }


def lines(server: LiveServer, job: str) -> list[str]:
    return [line["text"] for line in server.lines(job)]


def ended(server: LiveServer, job: str) -> list[str]:
    done = server.wait(job, 180)
    assert done["state"] == "JOB_STATE_SUCCEEDED", (done.get("error"), lines(server, job)[-3:])
    return lines(server, job)


def objects(server: LiveServer) -> set[str]:
    return {row["name"] for row in server.get(f"/storage/v1/b/{BUCKET}/o").get("items", [])}


def test_pods_of_a_job_put_objects_by_the_address_they_are_told(server: LiveServer):
    job = server.submit(pools=[pooled(PUT), pooled(PUT, replicas=2)])
    assert ended(server, job) == ["put"] * 3
    assert objects(server) == {"workerpool0-0", "workerpool1-0", "workerpool1-1"}


def test_many_connections_of_a_pod_at_once_reach_the_server(server: LiveServer):
    assert ended(server, server.submit(pools=[pooled(MANY)])) == ["put"]
    assert len(objects(server)) == 64


def test_googles_names_lead_out_of_a_pod_to_the_server(server: LiveServer):
    """With the job's token and, known by its tunnel, without one."""
    job = server.submit(pools=[pooled(NAMED)])
    assert ended(server, job) == ["200 200", f"/.trainshed/roots.pem 127.0.0.1:{server.port}"]


def test_a_pod_goes_on_asking_over_a_restart_of_the_server(server: LiveServer):
    job = server.submit(pools=[pooled(WAITS)])
    wait_for(lambda: "ready" in lines(server, job), "that its program runs")
    server.kill()
    server.start()
    assert ended(server, job)[-1] == "answered"


def test_no_token_of_a_job_is_in_its_pod(server: LiveServer, cluster: Cluster):
    job = server.submit(pools=[pooled("import time; print('up', flush=True); time.sleep(600)")])
    wait_for(lambda: "up" in lines(server, job), "that its program runs")
    selector = f"?labelSelector=trainshed.dev/job%3D{job.rpartition('/')[2]}"
    text = cluster.api.get(f"/api/v1/namespaces/default/pods{selector}").text
    assert "STORAGE_EMULATOR_HOST" in text and f"job.{job.rpartition('/')[2]}." not in text
    server.cancel(job)
    server.wait(job, 60)


def test_an_isolated_job_says_where_the_cluster_does_not_keep_it_apart(server: LiveServer, cluster: Cluster):
    """The cluster of tests enforces no network policies."""
    job = server.submit(pools=[pooled("print('begun')")], spec={"network": "none"})
    done = server.wait(job, 180)
    assert done["state"] == "JOB_STATE_FAILED" and "begun" not in lines(server, job)
    assert "enforces no network policies" in done["error"]["message"], done["error"]
    path = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"
    label = f"?labelSelector=trainshed.dev/job%3D{job.rpartition('/')[2]}"
    wait_for(lambda: not cluster.ask("GET", path + label)["items"], "that its network policy is gone")
