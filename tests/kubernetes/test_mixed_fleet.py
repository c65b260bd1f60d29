"""One server over this machine and a real cluster: one queue, and each job is told where it went and why."""

from typing import Any

import pytest

from tests.kubernetes.cluster import Cluster, wait_for
from tests.kubernetes.test_jobs import COUNTS, MEETS_ALL, WAITS, is_gone, lines, objects, submit
from tests.live import PARENT, LiveServer, python

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def server(server: LiveServer) -> LiveServer:
    wait_for(lambda: len(server.get(f"{PARENT}/nodes")["nodes"]) == 3, "that all nodes are known")
    return server


def here(server: LiveServer, program: str) -> str:
    """A job with a runtime of this machine."""
    return server.submit(python(program))


def admitted(server: LiveServer, job: str) -> str:
    events: list[Any] = server.get(f"/v1/{job}:events")["events"]
    return next(str(event["message"]) for event in events if event["reason"] == "ADMITTED")


def test_a_runtime_of_this_machine_runs_here_and_an_image_in_the_cluster(
    server: LiveServer, cluster: Cluster
):
    jobs = here(server, "print('here')"), submit(server, MEETS_ALL, 1, 1)
    for job in jobs:
        assert server.wait(job, 180)["state"] == "JOB_STATE_SUCCEEDED", admitted(server, job)
    assert lines(server, jobs[0]) == ["here"]
    assert "It runs on this machine." in admitted(server, jobs[0])
    assert "It runs on the cluster." in admitted(server, jobs[1])
    nodes = {row["node"] for row in server.get(f"/v1/{jobs[1]}:status")["replicas"]}
    assert nodes <= {"node1", "node2"}
    assert server.get(f"/v1/{jobs[0]}:status")["site"]["name"] == "this machine"
    is_gone(cluster, jobs[1])


def test_jobs_at_both_sites_go_on_while_their_server_is_killed(server: LiveServer, cluster: Cluster):
    jobs = here(server, COUNTS), submit(server, COUNTS)
    for mark in ("3", "15"):
        for job in jobs:
            wait_for(lambda job=job, mark=mark: mark in lines(server, job), f"line {mark}")
        server.kill()
        server.start()
    for job in jobs:
        assert server.wait(job, 120)["state"] == "JOB_STATE_SUCCEEDED"
        assert lines(server, job) == [str(number) for number in range(40)]
    is_gone(cluster, jobs[1])


def test_who_waits_for_this_machine_holds_up_nobody_in_the_cluster(server: LiveServer, cluster: Cluster):
    full = [{"machineSpec": {"machineType": "custom-96-256"}, "replicaCount": 1}]
    full[0]["containerSpec"] = {"imageUri": "trainshed/python:3", "command": python(WAITS)}
    first = server.submit(pools=full, name="all of this machine")
    wait_for(lambda: "ready" in lines(server, first), "that its program runs")
    second = server.submit(pools=full, name="waits")
    job = submit(server, "print('done')")
    assert server.wait(job, 180)["state"] == "JOB_STATE_SUCCEEDED"
    assert server.state(second) == "JOB_STATE_QUEUED"
    why = server.get(f"/v1/{first}:why")
    assert "It runs on this machine." in str(why), why
    for name in (first, second):
        server.cancel(name)
        assert server.wait(name, 60)["state"] == "JOB_STATE_CANCELLED"
    assert objects(cluster, first) == []
