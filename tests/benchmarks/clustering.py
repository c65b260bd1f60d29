"""What a job in a Kubernetes cluster costs beside a bare pod, and what size costs, on simulated nodes."""

import contextlib
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

from tests.benchmarks.printing import SEEN, SLOWLY
from tests.benchmarks.resting import cpu_seconds
from tests.benchmarks.row import Row, ms
from tests.benchmarks.starting import STAMP
from tests.containers.engine_images import on_disk
from tests.kubernetes import pods
from tests.kubernetes.cluster import Cluster, command, started, the_cluster, wait_for
from tests.kubernetes.fake_kubelet import PREFIX, SIMULATED, fake_nodes
from tests.live import FINAL, LiveServer
from trainshed.backends.cluster.pod import HOME
from trainshed.client.api import Client

ROUNDS = 10
AGAIN = 5
GANG, NODES = 1000, 40
IDLE, IDLE_NODES, IDLE_SECONDS = 10_000, 100, 30.0
LONG = 600.0  # seconds for a gang on a busy machine
EVERY = 0.5  # seconds between two looks at it
STAYS = f"{STAMP}; time.sleep(600)"
SOON = {"restartRule": {"backoff": "0s", "maxReplicaRestarts": 100}}
OURS = f"labelSelector={HOME}"


def one_pod() -> Row:
    """Pairs of a bare pod and a job, so that a busy moment hurts both; both print when they got there."""
    bare: list[float] = []
    ours: list[float] = []
    with the_cluster() as cluster, _server(cluster) as (server, client, space):
        for number in range(ROUNDS):
            began = time.time_ns()
            pods.make(cluster, space, f"bare-{number}", ["python3", "-c", STAMP])
            pods.wait_until(cluster, space, f"bare-{number}", *pods.ENDED)
            bare.append((int(pods.log_of(cluster, space, f"bare-{number}")) - began) / 1e9)
            began = time.time_ns()
            name = _submit(client, cluster, STAMP)
            client.wait(name)
            ours.append((int(next(iter(server.lines(name)))["text"]) - began) / 1e9)
    return Row(
        what="submit -> first line in a pod",
        floor=f"bare pod {ms(bare)}",
        ours=ms(ours),
        value=(median(ours) - median(bare)) * 1e3,
        goal=150,
        unit="ms more",
    )


def follower() -> Row:
    """From just before print() in a pod to the line parsed by an HTTP follower."""
    with the_cluster() as cluster, _server(cluster) as (_, client, _):
        name = _submit(client, cluster, SLOWLY)
        late = [(time.time_ns() - int(row["text"])) / 1e9 for row in client.tail(name, follow=True)]
    assert len(late) == SEEN, late
    return Row(
        what="line printed in a pod -> follower",
        floor="0",
        ours=ms(late),
        value=median(late) * 1e3,
        goal=100,
        unit="ms",
    )


def killed_replica() -> Row:
    """From kill -9 of the program to the first line of the next one, on the same node."""
    took: list[float] = []
    with the_cluster() as cluster, _server(cluster) as (server, client, _):
        name = _submit(client, cluster, STAYS, scheduling=SOON)
        for number in range(AGAIN):
            wait_for(lambda count=number: len(server.lines(name)) > count, "that it runs")
            began = time.time_ns()
            os.kill(_program(f"{name.rpartition('/')[2]}.0.0.0.{number}"), signal.SIGKILL)
            wait_for(lambda count=number: len(server.lines(name)) > count + 1, "that it runs again")
            took.append((int(server.lines(name)[number + 1]["text"]) - began) / 1e9)
        server.cancel(name)
        server.wait(name)
    return Row(
        what="replica killed -> runs again", floor="-", ours=ms(took), value=median(took), goal=2, unit="s"
    )


def lost_node() -> Row:
    """From the end of a node's power to the first line on another, with Kubernetes' own times."""
    with tempfile.TemporaryDirectory(prefix="bench-", dir=on_disk()) as base:
        folder = Path(base) / "c"
        try:
            command(folder, "up")
            cluster = started(folder)
            assert cluster is not None
            cluster.command("load")
            with _server(cluster) as (server, client, space):
                took = _move(cluster, server, client, space)
        finally:
            command(folder, "down")
            folder.with_name(f"{folder.name}.lock").unlink(missing_ok=True)
    return Row(
        what="node lost -> runs on another", floor="-", ours=f"{took:.1f} s", value=took, goal=15, unit="s"
    )


def _move(cluster: Cluster, server: LiveServer, client: Client, space: str) -> float:
    name = _submit(client, cluster, STAYS, scheduling=SOON)
    wait_for(lambda: server.lines(name), "that it runs")
    [pod] = cluster.ask("GET", f"/api/v1/namespaces/{space}/pods?{OURS}")["items"]
    cluster.command("node", pod["spec"]["nodeName"], "off")
    began = time.time_ns()
    wait_for(lambda: len(server.lines(name)) > 1, "that it runs elsewhere")
    took = (int(server.lines(name)[1]["text"]) - began) / 1e9
    server.cancel(name)
    server.wait(name)
    return took


def large_gang() -> list[Row]:
    """All of a gang's life on simulated nodes, beside bare pods of the same size."""
    with the_cluster() as cluster, fake_nodes(cluster, NODES), _server(cluster) as (server, client, space):
        began = time.perf_counter()
        name = _submit(client, cluster, "pass", 1, GANG - 1)
        server.wait_for(name, ["JOB_STATE_RUNNING"], LONG)
        runs = time.perf_counter() - began
        one = cluster.ask("GET", f"/api/v1/namespaces/{space}/pods?{OURS}&limit=1")["items"][0]
        server.cancel(name)
        wait_for(lambda: not _any_object(cluster, space), "that nothing is left", LONG, EVERY)
        took = time.perf_counter() - began
        memory, cpu = _peak_memory(server.pid), cpu_seconds(server.pid)
        bare = _bare_gang(cluster, space, one)
    return [
        Row(
            what=f"gang of {GANG}: submitted -> all gone",
            floor=f"bare pods {bare:.1f} s",
            ours=f"{took:.1f} s, runs after {runs:.1f} s, server's CPU {cpu:.1f} s",
            value=took,
            goal=60,
            unit="s",
        ),
        Row(
            what=f"gang of {GANG}: memory",
            floor="-",
            ours=f"{memory:.0f} MB",
            value=memory,
            goal=250,
            unit="MB",
        ),
    ]


def _bare_gang(cluster: Cluster, space: str, like: Any) -> float:
    """The same pods, made by four clients and removed in one call once all of them run."""
    began = time.perf_counter()
    spec = {name: like["spec"][name] for name in ("containers", "restartPolicy")}
    spec["containers"][0] = {**spec["containers"][0], "volumeMounts": [], "env": _env_values(spec)}
    spec |= {"automountServiceAccountToken": False, "terminationGracePeriodSeconds": 0}
    spec |= {"nodeSelector": SIMULATED}

    def make(number: int) -> None:
        metadata = {"name": f"bare-{number}", "labels": {"bench": "bare"}}
        cluster.ask("POST", f"/api/v1/namespaces/{space}/pods", {"metadata": metadata, "spec": spec})

    with ThreadPoolExecutor(4) as some:
        list(some.map(make, range(GANG)))
    path = f"/api/v1/namespaces/{space}/pods?labelSelector=bench"
    wait_for(lambda: _all_run(cluster, path), "that all bare pods run", LONG, EVERY)
    cluster.ask("DELETE", path)
    wait_for(lambda: not _any(cluster, path), "that no bare pod is left", LONG, EVERY)
    return time.perf_counter() - began


def _env_values(spec: Any) -> list[Any]:
    return [row for row in spec["containers"][0]["env"] if "value" in row]


def _all_run(cluster: Cluster, path: str) -> bool:
    return not _any(cluster, f"{path}&fieldSelector=status.phase!=Running")


def _any(cluster: Cluster, path: str) -> bool:
    """Without a list of all of them, which keeps the API server busy."""
    return bool(cluster.ask("GET", f"{path}&limit=1")["items"])


def idle_pods() -> Row:
    """The server's CPU while many pods of others are there and nothing happens to them."""
    with the_cluster() as cluster, fake_nodes(cluster, IDLE_NODES), cluster.namespace() as space:
        _fill(cluster, space)
        with _server(cluster) as (server, client, _):
            name = _submit(client, cluster, "pass")  # where it runs in a simulated pod, it does not end
            server.wait_for(name, ["JOB_STATE_RUNNING", *FINAL], LONG)
            server.cancel(name)
            server.wait(name)
            time.sleep(5)
            spent = cpu_seconds(server.pid)
            time.sleep(IDLE_SECONDS)
            share = (cpu_seconds(server.pid) - spent) / IDLE_SECONDS * 100
            memory = _peak_memory(server.pid)
        wait_for(lambda: _delete_some(cluster, space), "that no pod is left", LONG)
    return Row(
        what=f"{IDLE} pods of others, idle CPU",
        floor="-",
        ours=f"{share:.2f} %, {memory:.0f} MB",
        value=share,
        goal=2,
        unit="%",
    )


def _delete_some(cluster: Cluster, space: str) -> bool:
    """As many as the API server can within the time of one request; whether none is left."""
    with contextlib.suppress(AssertionError):
        cluster.ask("DELETE", f"/api/v1/namespaces/{space}/pods", {"gracePeriodSeconds": 0})
    return not _any(cluster, f"/api/v1/namespaces/{space}/pods?labelSelector=!{HOME}")


def _fill(cluster: Cluster, space: str) -> None:
    """Pods that skip the scheduler."""

    def make(number: int) -> None:
        limits = {"requests": {"cpu": "10m", "memory": "1Mi"}}
        container = {"name": "main", "image": "none", "resources": limits}
        spec = {"nodeName": f"{PREFIX}{number % IDLE_NODES}", "containers": [container]}
        spec |= {"terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False}
        pod = {"metadata": {"name": f"idle-{number}"}, "spec": spec}
        cluster.ask("POST", f"/api/v1/namespaces/{space}/pods", pod)

    with ThreadPoolExecutor(8) as some:
        list(some.map(make, range(IDLE)))
    path = f"/api/v1/namespaces/{space}/pods?labelSelector=!{HOME}"
    wait_for(lambda: _all_run(cluster, path), "that all of them run", LONG, EVERY)


@contextlib.contextmanager
def _server(cluster: Cluster) -> Iterator[tuple[LiveServer, Client, str]]:
    """A server in a namespace of its own, with a client."""
    config = str(cluster.place.kubeconfig)
    with (
        cluster.namespace() as space,
        LiveServer("--kubernetes", "--kubeconfig", config, "--namespace", space) as server,
        Client(server.url, server.token, "p1", "us-central1") as client,
    ):
        yield server, client, space


def _submit(client: Client, cluster: Cluster, program: str, *counts: int, **spec: object) -> str:
    """A job of one pool for each count; of one replica where none is given."""
    words = ["python3", "-c", program]
    container = {"imageUri": cluster.image, "command": words}
    pools = [
        {"machineSpec": {"machineType": "custom-1-256"}, "replicaCount": count, "containerSpec": container}
        for count in counts or (1,)
    ]
    return str(client.submit("bench", {"workerPoolSpecs": pools, **spec})["name"])


def _any_object(cluster: Cluster, space: str) -> bool:
    kinds = ("pods", "services", "secrets")
    return any(_any(cluster, f"/api/v1/namespaces/{space}/{kind}?{OURS}") for kind in kinds)


def _program(run: str) -> int:
    """The process of a run: not its init, which has that in its environment too."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                env = (entry / "environ").read_bytes().split(b"\0")
                is_init = (entry / "cmdline").read_bytes().startswith(b"/.trainshed")
                if f"TRAINSHED_RUN={run}".encode() in env and not is_init:
                    return int(entry.name)
    raise LookupError(run)


def _peak_memory(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1000
    raise LookupError("no VmHWM")
