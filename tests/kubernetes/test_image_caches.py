"""Images on the nodes of a real cluster, before any job needs them: caches through a real server."""

import asyncio
import tarfile
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from scripts.cluster_parts.image import BASE_PATH, pack, pack_base
from tests.containers.gated_registry import Gate, GatedRegistry
from tests.kubernetes.cluster import Cluster, wait_for
from tests.live import PARENT, PROJECT, LiveServer
from tests.shell import Shell

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(600)]

CACHES = f"{PARENT}/imageCaches"
PRINTED = Path(__file__).parents[1] / "acceptance" / "seed_003"
TRAINER = "registry-vpc.cn-zhangjiakou.aliyuncs.com/eci/tensorflow:1.0"
SCRIPT = "models/tutorials/image/imagenet/classify_image.py"


class TurnedRegistry:
    """A gated registry that a test turns while it waits for a server."""

    def __init__(self, cluster: Cluster) -> None:
        self._loop = asyncio.new_event_loop()
        host, _, port = cluster.place.addresses.machine_registry.partition(":")
        self.registry = GatedRegistry(int(port), host)

    def turn(self, gate: Gate) -> None:
        self._loop.call_soon_threadsafe(self.registry.turn, gate)

    @contextmanager
    def serving(self) -> Iterator["TurnedRegistry"]:
        thread = threading.Thread(target=self._loop.run_forever)
        thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self.registry.start(), self._loop).result(30)
            yield self
            asyncio.run_coroutine_threadsafe(self.registry.close(), self._loop).result(30)
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join()
            self._loop.close()


@pytest.fixture
def registry(cluster: Cluster) -> Iterator[TurnedRegistry]:
    with TurnedRegistry(cluster).serving() as registry:
        yield registry


@pytest.fixture
def image(registry: TurnedRegistry) -> str:
    return registry.registry.image(f"caches/{uuid.uuid4().hex}:1")


def images_of(cluster: Cluster) -> dict[str, set[str]]:
    """The names of images by node, as nodes tell them."""
    return {
        node["metadata"]["name"]: {
            name for image in node["status"].get("images") or [] for name in image["names"] or []
        }
        for node in cluster.ask("GET", "/api/v1/nodes")["items"]
    }


def pull_pods(cluster: Cluster) -> list[Any]:
    return cluster.ask("GET", "/api/v1/namespaces/default/pods?labelSelector=trainshed.dev/image")["items"]


def ends_as(server: LiveServer, cache: str, state: str) -> Any:
    def look() -> Any:
        answer = server.get(f"{CACHES}/{cache}")
        return answer if answer["state"] == state else None

    return wait_for(look, f"cache {cache} is {state}")


def test_a_cache_brings_its_image_to_every_node_and_tells_how_far_it_is(
    server: LiveServer, cluster: Cluster, registry: TurnedRegistry, image: str, tmp_path: Path
):
    shell = Shell(server, tmp_path, {"TRAINSHED_PROJECT": PROJECT})
    made = shell(f"trainshed images cache create everywhere {image}")
    assert made.returncode == 0, made.stderr
    wait_for(lambda: len(pull_pods(cluster)) == 2, "a pod on each node")
    nodes = {pod["spec"].get("nodeName") for pod in wait_for(lambda: _placed(cluster), "both are placed")}
    assert nodes == {"node1", "node2"}
    going = server.get(f"{CACHES}/everywhere")
    assert (going["state"], going["progress"]) == ("CREATING", 0)
    assert "is on 0 of 2 nodes. node1: " in going["reason"]
    registry.turn(Gate.OPEN)
    ready = ends_as(server, "everywhere", "READY")
    assert ready["progress"] == 100
    wait_for(lambda: all(image in names for names in images_of(cluster).values()), "all nodes have it")
    wait_for(lambda: not pull_pods(cluster), "no pod is left")
    listed = shell("trainshed images ls --json").stdout
    assert image in listed and '"trainshed.dev/nodes": "node1 node2"' in listed, listed
    kept = shell(f"trainshed images rm {image}")
    assert kept.returncode != 0
    assert shell("trainshed images cache rm everywhere").returncode == 0
    told = shell(f"trainshed images rm {image}")
    assert "the kubelet of each node removes images that are not used" in told.stderr


def _placed(cluster: Cluster) -> list[Any]:
    pods = pull_pods(cluster)
    return pods if len(pods) == 2 and all(pod["spec"].get("nodeName") for pod in pods) else []


def test_a_cache_whose_image_no_registry_has_fails_with_the_registrys_words(
    server: LiveServer, cluster: Cluster, registry: TurnedRegistry, image: str
):
    registry.turn(Gate.EMPTY)
    server.post(f"{CACHES}?imageCacheId=nowhere", {"images": [image]})
    failed = ends_as(server, "nowhere", "FAILED")
    assert "could not be pulled to node" in failed["reason"] and "not found" in failed["reason"]
    wait_for(lambda: not pull_pods(cluster), "no pod is left")


def test_the_printed_cache_is_applied_and_a_job_starts_from_it(
    server: LiveServer, cluster: Cluster, tmp_path: Path
):
    load_trainer(cluster, tmp_path)
    for printed in PRINTED.iterdir():
        (tmp_path / printed.name).write_bytes(printed.read_bytes())
    shell = Shell(server, tmp_path, {"TRAINSHED_PROJECT": PROJECT})
    made = shell("trainshed apply -f imagecache.yaml")
    assert (made.returncode, made.stdout) == (0, "imagecache/tensorflow created\n"), made.stderr
    ends_as(server, "tensorflow", "READY")
    assert "tensorflow  READY" in shell("trainshed get imagecaches").stdout
    told = shell("trainshed apply -f gpu_pod.yaml --dry-run --json")
    assert told.returncode == 0, told.stderr
    pool = {"machineSpec": {"machineType": "custom-1-256"}, "replicaCount": 1}
    pool["containerSpec"] = {"imageUri": TRAINER, "command": ["sh", "-c", f"python3 /{SCRIPT}"]}
    job = server.submit(pools=[pool])
    assert server.wait(job, 180)["state"] == "JOB_STATE_SUCCEEDED"
    assert [line["text"] for line in server.lines(job)] == ["giant panda (score = 0.89)"]
    events = server.get(f"/v1/{job}:events")["events"]
    assert f"Image cache tensorflow has {TRAINER}." in [event["message"] for event in events]


def load_trainer(cluster: Cluster, folder: Path) -> None:
    """Give all nodes the image that the printed files name, with the script that they run."""
    base = pack_base(folder)
    with tarfile.open(base) as tar:
        tar.extract("layer.tar", folder, filter="data")
    script = folder / "script.py"
    script.write_text('print("giant panda (score = 0.89)")\n')
    with tarfile.open(folder / "layer.tar", "a") as layer:
        layer.add(script, SCRIPT)
    pack(folder / "layer.tar", folder / "trainer.tar", TRAINER, {"Env": [BASE_PATH]})
    cluster.command("load", str(folder / "trainer.tar"))
    wait_for(lambda: all(TRAINER in names for names in images_of(cluster).values()), "all nodes list it")
