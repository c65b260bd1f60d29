"""GPUs of a cluster: types, nodes that are kept for them, and the Pod that a guide prints.

No machine here has GPUs, so a node is made to offer some: Kubernetes counts them as it counts real ones.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.containers.test_apply import without_nfs
from tests.kubernetes.cluster import Cluster, a_cluster_apart, wait_for
from tests.kubernetes.test_image_caches import PRINTED, TRAINER, load_trainer
from tests.live import PARENT, LiveServer
from tests.shell import Shell
from trainshed.backends.cluster.pod import node_affinity

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(600)]

GPU = "nvidia.com/gpu"
TEMPLATE = """
metadata: {labels: {team: vision}}
spec:
  tolerations: [{key: team, operator: Exists}]
"""


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The first node has GPUs and is kept for them; the second is kept for a team."""
    with a_cluster_apart(tmp_path_factory.mktemp("gpus") / "c") as cluster:
        first, second = nodes(cluster)
        offer(cluster, first, {"nvidia.com/gpu.product": "Tesla-P4"}, 2)
        taint(cluster, first, {"key": GPU, "value": "present", "effect": "NoSchedule"})
        taint(cluster, second, {"key": "team", "value": "vision", "effect": "NoSchedule"})
        yield cluster


@pytest.fixture(scope="module")
def server(apart: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    template = tmp_path_factory.mktemp("template") / "pods.yaml"
    template.write_text(TEMPLATE)
    config = str(apart.place.kubeconfig)
    with LiveServer(
        "--kubernetes", "--here=none", "--kubeconfig", config, f"--pod-template={template}"
    ) as live:
        wait_for(lambda: len(live.get(f"{PARENT}/nodes")["nodes"]) == 2, "that both nodes are known")
        yield live


def nodes(cluster: Cluster) -> list[str]:
    return sorted(item["metadata"]["name"] for item in cluster.ask("GET", "/api/v1/nodes")["items"])


def offer(cluster: Cluster, node: str, labels: dict[str, str], gpus: int) -> None:
    cluster.ask("PATCH", f"/api/v1/nodes/{node}", {"metadata": {"labels": labels}})
    cluster.ask("PATCH", f"/api/v1/nodes/{node}/status", {"status": {"capacity": {GPU: str(gpus)}}})


def taint(cluster: Cluster, node: str, taint: dict[str, str]) -> None:
    cluster.ask("PATCH", f"/api/v1/nodes/{node}", {"spec": {"taints": [taint]}})


def pods_of(cluster: Cluster, job: str) -> list[dict[str, Any]]:
    query = f"labelSelector=trainshed.dev/job%3D{job.rsplit('/', 1)[-1]}"
    return cluster.ask("GET", f"/api/v1/namespaces/default/pods?{query}")["items"]


def a_pool(**machine: object) -> dict[str, Any]:
    return {
        "machineSpec": {"machineType": "custom-1-256", **machine},
        "replicaCount": 1,
        "containerSpec": {
            "imageUri": "localhost/python:3",
            "command": ["python3", "-c", "import time; time.sleep(3)"],
        },
    }


def test_nodes_tell_their_gpus_by_the_type_that_jobs_ask_for(server: LiveServer, apart: Cluster):
    wait_for(lambda: server.get(f"{PARENT}/nodes")["nodes"][0].get("gpus"), "that its GPUs are known")
    first, second = server.get(f"{PARENT}/nodes")["nodes"]
    assert (first["acceleratorType"], len(first["gpus"])) == ("NVIDIA_TESLA_P4", 2)
    assert "gpus" not in second


def test_replicas_with_gpus_go_to_their_node_and_all_others_to_another(server: LiveServer, apart: Cluster):
    first, second = nodes(apart)
    pools = [a_pool(), a_pool(acceleratorType="NVIDIA_TESLA_P4", acceleratorCount=2)]
    job = server.submit(pools=pools, name="both")
    wait_for(
        lambda: len([pod for pod in pods_of(apart, job) if pod["spec"].get("nodeName")]) == 2, "both pods"
    )
    plain, with_gpus = sorted(pods_of(apart, job), key=lambda pod: pod["metadata"]["name"])
    assert (plain["spec"]["nodeName"], with_gpus["spec"]["nodeName"]) == (second, first)
    assert with_gpus["spec"]["containers"][0]["resources"]["limits"][GPU] == "2"
    assert {pod["metadata"]["labels"]["team"] for pod in (plain, with_gpus)} == {"vision"}
    late = server.submit(pools=[a_pool(acceleratorType="NVIDIA_TESLA_P4", acceleratorCount=1)], name="late")
    why = wait_for(lambda: server.get(f"/v1/{late}:why")["because"].get("message"), "that it waits")
    assert "1 NVIDIA_TESLA_P4; free are" in why and "0 NVIDIA_TESLA_P4 of" in why, why
    for each in (job, late):
        assert server.wait(each, 120)["state"] == "JOB_STATE_SUCCEEDED"


def test_the_printed_pod_runs_on_the_type_that_it_names(server: LiveServer, apart: Cluster, tmp_path: Path):
    load_trainer(apart, tmp_path)
    (tmp_path / "pod.yaml").write_text(without_nfs((PRINTED / "gpu_pod.yaml").read_text()))
    shell = Shell(server, tmp_path)
    done = shell("trainshed apply -f pod.yaml && trainshed wait tensorflow", 180)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert "giant panda (score = 0.89)" in shell("trainshed logs tensorflow").stdout
    told = shell(
        "trainshed describe pod tensorflow; trainshed delete pod tensorflow; trainshed get pods"
    ).stdout
    assert TRAINER in told and nodes(apart)[0] in told


@pytest.fixture
def other_type(server: LiveServer, apart: Cluster) -> Iterator[None]:
    """The second node has GPUs too."""
    second = nodes(apart)[1]
    offer(apart, second, {"accelerator": "nvidia-tesla-t4"}, 2)
    yield
    offer(apart, second, {}, 0)
    wait_for(lambda: "gpus" not in server.get(f"{PARENT}/nodes")["nodes"][1], "that it has none any more")


@pytest.mark.usefixtures("other_type")
def test_a_replica_whose_node_takes_no_pods_any_more_waits_for_its_type(server: LiveServer, apart: Cluster):
    first = nodes(apart)[0]
    pool = a_pool(acceleratorType="NVIDIA_TESLA_P4", acceleratorCount=1)
    pool["containerSpec"]["command"][-1] = "import time; print('begun', flush=True); time.sleep(20)"
    job = server.submit(pools=[pool], name="moved")
    wait_for(lambda: server.lines(job), "its first line")
    apart.ask("PATCH", f"/api/v1/nodes/{first}", {"spec": {"unschedulable": True}})
    [pod] = pods_of(apart, job)
    apart.ask("DELETE", f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}")
    waiting = wait_for(
        lambda: next((p for p in pods_of(apart, job) if unscheduled(p)), None),
        "a pod that waits for its type",
    )
    type_of_first = {"key": "nvidia.com/gpu.product", "operator": "In", "values": ["Tesla-P4"]}
    assert waiting["spec"]["affinity"] == node_affinity([{"matchExpressions": [type_of_first]}])
    apart.ask("PATCH", f"/api/v1/nodes/{first}", {"spec": {"unschedulable": None}})
    assert server.wait(job, 120)["state"] == "JOB_STATE_SUCCEEDED"


def unscheduled(pod: dict[str, Any]) -> bool:
    return any(
        (row["type"], row["status"]) == ("PodScheduled", "False")
        for row in pod["status"].get("conditions", ())
    )
