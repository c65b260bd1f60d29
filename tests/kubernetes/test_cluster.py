"""The cluster for tests is a real one: pods run, end, are found by name, and are lost with their node."""

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.cluster_parts import groups, network, processes
from scripts.cluster_parts.place import Programs, cache_folder
from tests.containers.engine_images import on_disk
from tests.kubernetes import pods
from tests.kubernetes.cluster import SCRIPT, Cluster, a_cluster_apart, command, wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(900)]

HUNGRY = "import time; kept = bytearray(300 << 20); time.sleep(60)"
ASKS_FOR_A_PEER = """
import socket, time, urllib.request
while True:
    try:
        address = socket.gethostbyname("peer.gang")
        status = urllib.request.urlopen("http://peer.gang:8000/", timeout=60).status
        break
    except OSError:
        time.sleep(0.1)
print(address, status)
for name in ("nobody.gang", "gang.example"):
    try:
        print(socket.gethostbyname(name))
    except socket.gaierror as reason:
        print(name, reason.errno == socket.EAI_NONAME)
"""
ASKS_THE_API = """
import ssl, urllib.error, urllib.request
folder = "/var/run/secrets/kubernetes.io/serviceaccount"
context = ssl.create_default_context(cafile=f"{folder}/ca.crt")
words = {"Authorization": "Bearer " + open(f"{folder}/token").read()}
for path in ("/version", "/api/v1/pods"):
    try:
        asked = urllib.request.Request("https://kubernetes.default.svc" + path, headers=words)
        print(urllib.request.urlopen(asked, context=context, timeout=60).status)
    except urllib.error.HTTPError as refused:
        print(refused.code)
"""


@pytest.fixture
def space(cluster: Cluster) -> Iterator[str]:
    with cluster.namespace() as name:
        yield name


@pytest.fixture(scope="module")
def disk() -> Iterator[Path]:
    """Not in memory: nodes keep images in the folder of their cluster."""
    with tempfile.TemporaryDirectory(prefix="cluster-", dir=on_disk()) as name:
        yield Path(name)


@pytest.fixture(scope="module")
def apart(disk: Path) -> Iterator[Cluster]:
    with a_cluster_apart(disk / "apart") as one:
        yield one


def python(program: str) -> list[str]:
    return ["python3", "-u", "-c", program]


# ---- pods


def test_a_pod_runs_to_its_end_and_its_output_can_be_read(cluster: Cluster, space: str):
    pods.make(cluster, space, "speaks", ["sh", "-c", "echo one; echo two >&2"])
    end = pods.end_of(cluster, space, "speaks")
    assert (end["exitCode"], end["reason"]) == (0, "Completed")
    assert sorted(pods.log_of(cluster, space, "speaks").split()) == ["one", "two"]


def test_the_exit_code_of_a_pod_is_kept(cluster: Cluster, space: str):
    pods.make(cluster, space, "fails", ["sh", "-c", "exit 3"])
    end = pods.end_of(cluster, space, "fails")
    assert (end["exitCode"], end["reason"]) == (3, "Error")


def test_a_pod_that_takes_too_much_memory_is_killed_and_that_is_said(cluster: Cluster, space: str):
    pods.make(cluster, space, "hungry", python(HUNGRY), limits={"memory": "64Mi"})
    end = pods.end_of(cluster, space, "hungry")
    assert (end["exitCode"], end["reason"]) == (137, "OOMKilled")


def test_a_pod_reads_the_api_with_the_rights_of_its_account(cluster: Cluster, space: str):
    pods.make(cluster, space, "asks", python(ASKS_THE_API))
    assert pods.end_of(cluster, space, "asks")["exitCode"] == 0, pods.log_of(cluster, space, "asks")
    assert pods.log_of(cluster, space, "asks").split() == ["200", "403"]


def test_a_pod_is_found_by_name_from_another_node_also_before_it_is_ready(cluster: Cluster, space: str):
    service = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"app": "test"}}
    body = {"metadata": {"name": "gang"}, "spec": {**service, "ports": [{"port": 8000}]}}
    cluster.ask("POST", f"/api/v1/namespaces/{space}/services", body)
    never = {"readinessProbe": {"exec": {"command": ["false"]}}}
    named = {"subdomain": "gang", "nodeSelector": pods.on("node1")}
    pods.make(cluster, space, "asks", python(ASKS_FOR_A_PEER), hostname="asks", **named)
    named["nodeSelector"] = pods.on("node2")
    server = ["python3", "-m", "http.server", "8000"]
    pods.make(cluster, space, "peer", server, hostname="peer", container=never, **named)
    assert pods.end_of(cluster, space, "asks")["exitCode"] == 0, pods.log_of(cluster, space, "asks")
    address = pods.get(cluster, space, "peer")["status"]["podIP"]
    lines = pods.log_of(cluster, space, "asks").splitlines()
    assert lines == [f"{address} 200", "nobody.gang True", "gang.example True"]


# ---- nodes


def readiness(cluster: Cluster, node: str) -> str:
    conditions = cluster.ask("GET", f"/api/v1/nodes/{node}")["status"]["conditions"]
    return next(row["status"] for row in conditions if row["type"] == "Ready")


def test_a_node_that_is_cut_off_is_noticed_with_its_pods_and_comes_back_with_them(apart: Cluster):
    with apart.namespace() as space:
        pods.make(apart, space, "stays", ["sleep", "600"], nodeSelector=pods.on("node2"))
        pods.wait_until(apart, space, "stays", "Running")
        apart.command("node", "node2", "cut")
        wait_for(lambda: readiness(apart, "node2") == "Unknown", "the node is missed")
        wait_for(lambda: not is_ready(apart, space, "stays"), "its pod is not ready")
        assert readiness(apart, "node1") == "True"
        apart.command("node", "node2", "join")
        wait_for(lambda: readiness(apart, "node2") == "True", "the node is back")
        wait_for(lambda: is_ready(apart, space, "stays"), "its pod is ready")
        assert pods.get(apart, space, "stays")["status"]["containerStatuses"][0]["restartCount"] == 0


def is_ready(cluster: Cluster, space: str, name: str) -> bool:
    rows = pods.get(cluster, space, name)["status"].get("conditions") or []
    return any(row["type"] == "Ready" and row["status"] == "True" for row in rows)


def test_a_node_that_is_switched_off_loses_its_pods_and_takes_new_ones_when_it_is_on(apart: Cluster):
    marked = "611.25"
    with apart.namespace() as space:
        pods.make(apart, space, "dies", ["sleep", marked], nodeSelector=pods.on("node2"))
        pods.wait_until(apart, space, "dies", "Running")
        assert sleeping(marked)
        apart.command("node", "node2", "off")
        assert not sleeping(marked)
        wait_for(lambda: readiness(apart, "node2") == "Unknown", "the node is missed")
        apart.command("node", "node2", "on")
        wait_for(lambda: readiness(apart, "node2") == "True", "the node is back")
        assert pods.end_of(apart, space, "dies")["exitCode"] != 0
        pods.make(apart, space, "new", ["true"], nodeSelector=pods.on("node2"))
        assert pods.end_of(apart, space, "new")["exitCode"] == 0


def sleeping(marked: str) -> bool:
    words = f"sleep\0{marked}\0".encode()
    return any(_command_line(path) == words for path in Path("/proc").glob("[0-9]*/cmdline"))


def _command_line(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_pods_outlive_the_api_server(apart: Cluster):
    with apart.namespace() as space:
        pods.make(apart, space, "stays", ["sleep", "600"])
        pods.wait_until(apart, space, "stays", "Running")
        apart.command("apiserver", "stop")
        with pytest.raises(OSError, match="refused"):
            apart.api.get("/version", timeout=5)
        apart.command("apiserver", "start")
        wait_for(lambda: apart.api.get("/readyz").ok, "the API server is back")
        assert pods.get(apart, space, "stays")["status"]["phase"] == "Running"


# ---- the end


def remains(folder: Path, link: str) -> list[str]:
    """Whatever is left on the machine of a cluster that had this folder and this link."""
    left = [f"process {pid}" for pid in processes.running(folder)]
    left += [f"link {link}"] if Path("/sys/class/net", link).exists() else []
    left += [str(path) for path in Path("/run/netns").glob(f"{link}*")]
    group = link.replace("tshed", "tshed-cluster-")
    left += [str(tree / group) for tree in groups.all_trees() if (tree / group).exists()]
    left += [line for line in Path("/proc/mounts").read_text().splitlines() if str(folder) in line]
    programs = Programs(cache_folder())  # the machine may have none of its own
    tool, env = programs.path("iptables-save"), programs.environment()
    rules = subprocess.run([tool], env=env, capture_output=True, text=True, check=True).stdout
    left += [line for line in rules.splitlines() if "KUBE-" in line]
    return left + [str(path) for path in [folder] if path.exists()]


def test_down_leaves_nothing_of_a_cluster_with_pods(disk: Path):
    with a_cluster_apart(disk / "whole", nodes=1) as cluster:
        pods.make(cluster, "default", "runs", ["sleep", "600"])
        pods.wait_until(cluster, "default", "runs", "Running")
        cluster.command("down")
        assert remains(cluster.place.folder, cluster.place.addresses.link) == []


@pytest.mark.parametrize("moment", ["network", "node"])
def test_down_leaves_nothing_of_a_start_that_was_killed(disk: Path, moment: str):
    folder = disk / moment
    starting = subprocess.Popen([sys.executable, str(SCRIPT), "--folder", str(folder), "up"])
    begun = {"network": lambda: True, "node": lambda: processes.running(folder, "node2")}
    [addresses] = wait_for(lambda: begun[moment]() and network.claimed(folder), f"the {moment} is begun")
    starting.send_signal(signal.SIGKILL)
    starting.wait()
    time.sleep(0.5)  # what was started goes on
    command(folder, "down")
    assert remains(folder, addresses.link) == []
