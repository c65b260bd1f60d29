"""Queues of Kueue, on a real cluster with a stand-in for Kueue: reasons, evictions, and what is removed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes.cluster import Cluster, a_cluster_apart, wait_for
from tests.kubernetes.stand_in_kueue import GROUP, StandInKueue
from tests.kubernetes.test_jobs import ENDS_IN_ITS_SECOND_RUN, WAITS, is_gone, lines, objects
from tests.kubernetes.test_reasons import waits
from tests.live import LiveServer
from trainshed.core.jobs.launch import QUEUE_LABEL

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(900)]

NO_ROOM = "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default"
PREEMPTED = (
    "Preempted to accommodate a workload (UID: 1, JobUID: UNKNOWN) due to prioritization in the ClusterQueue"
)
ENDS_IN_ITS_SECOND_ATTEMPT = """
import os, sys, time
if os.environ["TRAINSHED_RUN"].split(".")[-4] != "0": sys.exit(0)
print("ready", flush=True); time.sleep(600)
"""


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with a_cluster_apart(Path(tmp_path_factory.mktemp("queues")) / "c") as cluster:
        yield cluster


@pytest.fixture
def kueue(apart: Cluster) -> Iterator[StandInKueue]:
    with StandInKueue(apart) as kueue:
        kueue.add_queue("team-a")
        yield kueue


@pytest.fixture
def server(apart: Cluster, kueue: StandInKueue) -> Iterator[LiveServer]:
    with serving(apart, "--kueue-queue", "team-a") as server:
        yield server


def serving(cluster: Cluster, *words: str) -> LiveServer:
    return LiveServer("--kubernetes", "--kubeconfig", str(cluster.place.kubeconfig), *words)


def submit(server: LiveServer, program: str, *counts: int, queue: str = "", **spec: object) -> str:
    """A job of one pool for each count, with a label where a queue is named."""
    pools = [
        {
            "machineSpec": {"machineType": "custom-1-256"},
            "replicaCount": count,
            "containerSpec": {"imageUri": "localhost/python:3", "command": ["python3", "-c", program]},
        }
        for count in counts or (1,)
    ]
    labels = {QUEUE_LABEL: queue} if queue else {}
    return server.submit(pools=pools, name="in a queue", spec=spec, labels=labels)


def events(server: LiveServer, job: str) -> list[Any]:
    return server.get(f"/v1/{job}:events")["events"]


def objects_of_pods(cluster: Cluster) -> list[Any]:
    return cluster.ask("GET", "/api/v1/namespaces/default/pods")["items"]


def nothing_is_left(kueue: StandInKueue, job: str) -> None:
    is_gone(kueue.cluster, job)
    wait_for(lambda: not kueue.workloads(), "that no Workload is left")


def test_a_job_waits_with_kueues_own_words_until_it_is_admitted_and_leaves_nothing(
    server: LiveServer, kueue: StandInKueue
):
    kueue.words = NO_ROOM
    with kueue.gate():
        job = submit(server, "print('done')", 1, 1)
        waiting = waits(server, job, "WAITS_IN_CLUSTER_QUEUE")
        assert NO_ROOM in waiting["message"] and "team-a" in waiting["message"], waiting
        assert "kubectl describe localqueue team-a" in waiting["remedy"], waiting
        [workload] = kueue.workloads()
        assert workload["spec"]["queueName"] == "team-a"
        pods = objects_of_pods(kueue.cluster)
        assert not any(pod["spec"].get("affinity") for pod in pods), "Kueue and Kubernetes choose the node"
        kueue.words = ""
    done = server.wait(job, 180)
    assert done["state"] == "JOB_STATE_SUCCEEDED", json.dumps(done)
    nothing_is_left(kueue, job)


def test_a_job_that_is_cancelled_while_it_waits_leaves_nothing(server: LiveServer, kueue: StandInKueue):
    kueue.words = NO_ROOM
    with kueue.gate():
        job = submit(server, WAITS, 2)
        waits(server, job, "WAITS_IN_CLUSTER_QUEUE")
        server.cancel(job)
        assert server.wait(job, 120)["state"] == "JOB_STATE_CANCELLED"
        nothing_is_left(kueue, job)


def test_a_queue_that_gives_up_ends_the_job_with_its_words(apart: Cluster, kueue: StandInKueue):
    kueue.words = NO_ROOM
    with serving(apart, "--give-up", "WAITS_IN_CLUSTER_QUEUE=4s") as server, kueue.gate():
        job = submit(server, WAITS, queue="team-a")
        assert server.wait(job, 120)["state"] == "JOB_STATE_FAILED"
        failure = server.get(f"/v1/{job}:status")["failure"]
        assert failure["reason"] == "WAITS_IN_CLUSTER_QUEUE" and NO_ROOM in failure["message"], failure
        nothing_is_left(kueue, job)


def test_a_replica_that_kueue_evicts_starts_again_and_no_restart_is_counted(
    server: LiveServer, kueue: StandInKueue
):
    job = submit(server, ENDS_IN_ITS_SECOND_RUN)
    wait_for(lambda: "ready" in lines(server, job), "that its program runs")
    [workload] = kueue.workloads()
    kueue.evict(workload["metadata"]["name"], PREEMPTED)
    done = server.wait(job, 180)
    assert done["state"] == "JOB_STATE_SUCCEEDED", json.dumps(done)
    restarts = [event["message"] for event in events(server, job) if event["reason"] == "REPLICA_RESTARTED"]
    assert restarts and "Kueue evicted it from its queue: Preempted to accommodate" in restarts[0], restarts
    assert "counts as none of its 5 restarts" in restarts[0], restarts
    nothing_is_left(kueue, job)


def test_a_new_attempt_is_a_new_group_and_frees_the_quota_of_the_one_before(
    server: LiveServer, kueue: StandInKueue
):
    job = submit(server, ENDS_IN_ITS_SECOND_ATTEMPT, 2, scheduling={"restartJobOnWorkerRestart": True})
    wait_for(lambda: lines(server, job).count("ready") == 2, "that its programs run")
    [first] = kueue.workloads()
    [pod, *_] = objects_of_pods(kueue.cluster)
    kueue.words = NO_ROOM
    with kueue.gate():
        kueue.cluster.ask("DELETE", f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}")
        waits(server, job, "WAITS_IN_CLUSTER_QUEUE")
        [second] = wait_for(
            lambda: kueue.workloads() if len(kueue.workloads()) == 1 else None, "one Workload"
        )
        assert second["metadata"]["name"] != first["metadata"]["name"]
        groups = [pod["metadata"]["labels"][GROUP] for pod in objects_of_pods(kueue.cluster)]
        assert groups == [second["metadata"]["name"]] * 2, "pods of the first attempt are still there"
        kueue.words = ""
    assert server.wait(job, 180)["state"] == "JOB_STATE_SUCCEEDED"
    nothing_is_left(kueue, job)


def test_a_job_that_waits_is_found_again_by_a_server_that_was_killed(server: LiveServer, kueue: StandInKueue):
    kueue.words = NO_ROOM
    with kueue.gate():
        job = submit(server, "print('done')")
        waits(server, job, "WAITS_IN_CLUSTER_QUEUE")
        server.kill()
        server.start()
        kueue.words = f"{NO_ROOM}, still"
        wait_for(lambda: "still" in waits(server, job, "WAITS_IN_CLUSTER_QUEUE")["message"], "newer words")
        kueue.words = ""
    assert server.wait(job, 180)["state"] == "JOB_STATE_SUCCEEDED"
    nothing_is_left(kueue, job)


def test_a_queue_that_is_not_there_is_named_and_so_is_a_kueue_that_is_not_installed(apart: Cluster):
    with serving(apart, "--give-up", "CLUSTER_QUEUE_UNUSABLE=90s") as server:
        without = submit(server, "print('done')", queue="nowhere")
        absent = waits(server, without, "CLUSTER_QUEUE_UNUSABLE")
        assert "queue nowhere of Kueue, which is not installed" in absent["message"], absent
        assert QUEUE_LABEL in absent["remedy"], absent
        words = ("--kubernetes", "--kubeconfig", str(apart.place.kubeconfig), "--kueue-queue", "team-a")
        doctor = server.cli("doctor", *words, "--json")
        assert doctor.returncode == 1 and "which is not installed" in doctor.stdout, doctor.stdout
        server.cancel(without)
        with StandInKueue(apart, "v1beta1") as kueue:
            kueue.add_queue("team-a")
            doctor = server.cli("doctor", *words)
            assert "LocalQueue team-a of ClusterQueue all is active, but" in doctor.stdout, doctor.stdout
            wait_for(lambda: server.state(without) == "JOB_STATE_CANCELLED", "that it is cancelled")
            with serving(apart) as other:
                job = submit(other, "print('done')", queue="nowhere")
                missing = waits(other, job, "CLUSTER_QUEUE_UNUSABLE")
                assert "no LocalQueue nowhere in namespace default" in missing["message"], missing
                assert not kueue.workloads() and not objects_of_pods(apart)
                other.cancel(job)
                assert other.wait(job, 60)["state"] == "JOB_STATE_CANCELLED"


def test_what_a_server_that_is_gone_for_good_left_in_a_queue_can_be_released(
    apart: Cluster, kueue: StandInKueue
):
    with serving(apart, "--kueue-queue", "team-a") as server:
        job = submit(server, WAITS, 2)
        wait_for(lambda: lines(server, job).count("ready") == 2, "that its programs run")
        server.kill()
        words = ["--kubeconfig", str(apart.place.kubeconfig), "--delete", "--json"]
        released = server.cli("kube", "release", *words)
        assert released.returncode == 0, released.stderr
        assert "workloads" in {row["kind"] for row in json.loads(released.stdout)["deleted"]}
        wait_for(lambda: not objects(apart, job) and not kueue.workloads(), "that nothing is left", 120)


def test_a_server_without_queues_asks_nobody_for_kueue(apart: Cluster, kueue: StandInKueue):
    with serving(apart) as server:
        job = submit(server, "print('done')", 2)
        assert server.wait(job, 120)["state"] == "JOB_STATE_SUCCEEDED"
        assert not kueue.workloads()
