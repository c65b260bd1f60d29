"""Gang scheduling of the cluster itself: PodGroups are made where they are served, and removed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes.cluster import Cluster, wait_for
from tests.kubernetes.renaming_proxy import REAL_GROUP, RenamingProxy
from tests.kubernetes.stand_in_kueue import DEFINITIONS, define
from tests.kubernetes.test_jobs import ENDS_IN_ITS_SECOND_RUN, is_gone, lines, submit
from tests.live import LiveServer

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(600)]

GROUPS = f"/apis/{REAL_GROUP}/v1beta1/namespaces/default/podgroups"
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture(scope="module")
def proxy(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RenamingProxy]:
    define(cluster, REAL_GROUP, "v1beta1", "podgroups", "PodGroup")
    try:
        with RenamingProxy(cluster, Path(tmp_path_factory.mktemp("proxy"))) as proxy:
            yield proxy
    finally:
        cluster.ask("DELETE", f"{DEFINITIONS}/podgroups.{REAL_GROUP}")


@pytest.fixture(scope="module")
def server(proxy: RenamingProxy) -> Iterator[LiveServer]:
    with LiveServer("--kubernetes", "--kubeconfig", str(proxy.kubeconfig)) as server:
        yield server


def posted(proxy: RenamingProxy, kind: str, job: str) -> list[Any]:
    bodies = [body for body in proxy.posted if body.get("kind") == kind]
    own = job.rpartition("/")[2]
    return [body for body in bodies if body["metadata"]["labels"].get("trainshed.dev/job") == own]


def test_a_gang_is_one_pod_group_of_all_its_pods_and_it_goes_with_the_job(
    server: LiveServer, proxy: RenamingProxy, cluster: Cluster
):
    job = submit(server, ENDS_IN_ITS_SECOND_RUN, 1, 1)
    wait_for(lambda: lines(server, job).count("ready") == 2, "that its programs run")
    [group] = cluster.ask("GET", GROUPS)["items"]
    assert group["spec"] == {"schedulingPolicy": {"gang": {"minCount": 2}}}
    first = posted(proxy, "Pod", job)
    named = {"podGroupName": group["metadata"]["name"]}
    assert [pod["spec"]["schedulingGroup"] for pod in first] == [named, named]
    assert posted(proxy, "PodGroup", job)[0]["apiVersion"] == "scheduling.k8s.io/v1beta1"
    for pod in first:
        cluster.ask("DELETE", f"{PODS}/{pod['metadata']['name']}")
    done = server.wait(job, 180)
    assert done["state"] == "JOB_STATE_SUCCEEDED", json.dumps(done)
    later = posted(proxy, "Pod", job)[2:]
    assert len(later) == 2 and not any("schedulingGroup" in pod["spec"] for pod in later)
    is_gone(cluster, job)
    wait_for(lambda: not cluster.ask("GET", GROUPS)["items"], "that no PodGroup is left")


def test_a_replica_without_peers_needs_no_pod_group(server: LiveServer, proxy: RenamingProxy):
    job = submit(server, "print('done')")
    assert server.wait(job, 120)["state"] == "JOB_STATE_SUCCEEDED"
    [pod] = posted(proxy, "Pod", job)
    assert "schedulingGroup" not in pod["spec"] and not posted(proxy, "PodGroup", job)


def test_a_cluster_without_pod_groups_gets_the_pods_of_before(cluster: Cluster):
    with LiveServer("--kubernetes", "--kubeconfig", str(cluster.place.kubeconfig)) as server:
        job = submit(server, "print('done')", 2)
        assert server.wait(job, 120)["state"] == "JOB_STATE_SUCCEEDED"
        is_gone(cluster, job)
