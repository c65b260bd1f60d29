"""Simulated nodes for a real API server and scheduler: thousands of pods on one machine.

    with fake_nodes(cluster, 100): ...

A process in the cluster's own network registers the nodes, keeps their leases, moves the pods that the
scheduler gives them through their phases, and answers for the inits of ours: each pod has an address of its
own, and all lead to this process. Nothing runs in such a pod: a program that was begun prints one line, never
touches a file, and goes on until it is asked to end or killed.
"""

import argparse
import asyncio
import contextlib
import copy
import platform
import subprocess
import sys
import time
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scripts.cluster_parts.network import run as run_words
from tests.kubernetes.cluster import ROOT, Cluster, started, wait_for
from trainshed.backends.cluster.api import ApiFault, ClusterApi, find_config
from trainshed.backends.cluster.object_cache import ObjectCache
from trainshed.backends.cluster.objects import Object
from trainshed.backends.cluster.pod import CONTAINER, FINALIZER, PORT
from trainshed.backends.cluster.pod_connection import ChannelBroken
from trainshed.backends.cluster.pod_frames import frame, read_frames
from trainshed.backends.cluster.pod_template import NOTHING_MORE

CPUS, MEMORY, PODS = 32, "128Gi", 250  # of each node
RENEWED = 10.0  # seconds between two leases
AT_ONCE = 16  # calls to the API server
PREFIX = "fake-"
MACHINE = NOTHING_MORE.for_machine(platform.machine()).spec["nodeSelector"]  # labels of its nodes
SIMULATED = {"simulated": "yes"}  # a label of the nodes
LINE = b"ready\n"
NO_FILES = (1).to_bytes(8)  # the number that stands for an empty list


def _range(cluster: Cluster) -> str:
    """Addresses for pods that no real node has."""
    return f"10.{100 + cluster.place.addresses.slot}.128.0/17"


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@dataclass(slots=True, eq=False)
class FakePod:
    """What the init of one pod would have."""

    name: str
    namespace: str
    address: str
    record: bytes = b""
    is_shown_over: bool = False  # the API server has its end
    writer: asyncio.StreamWriter | None = None

    @property
    def is_over(self) -> bool:
        return b"exit " in self.record or b"signal " in self.record

    def begin(self) -> None:
        if not self.record:
            self.record = b"init fake %d\n" % time.time_ns()
            self.send(b"o", LINE)
            self.tell()

    def end(self, how: bytes) -> None:
        if self.record and not self.is_over:
            self.record += b"%s %d\n" % (how, time.time_ns())
            self.tell()

    def tell(self) -> None:
        self.send(b"r", self.record)

    def send(self, kind: bytes, data: bytes) -> None:
        if self.writer is not None:
            self.writer.write(frame(kind, data))


@dataclass(slots=True)
class FakeKubelet:
    api: ClusterApi
    leases: ClusterApi
    first: int  # address
    pods: dict[str, FakePod] = field(default_factory=dict[str, FakePod])  # by namespace/name
    by_address: dict[str, FakePod] = field(default_factory=dict[str, FakePod])
    _given: int = 0
    _calls: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    _tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    async def serve(self, count: int) -> None:
        for number in range(count):
            await self._register(f"{PREFIX}{number}")
        inits = await asyncio.start_server(self._answer, "0.0.0.0", PORT, backlog=4096)
        bound = "spec.nodeName!="
        pods = ObjectCache(
            self.api, "pods", fields=bound, everywhere=True, changed=self._pod_changed, slim=_slim
        )
        await pods.start()
        async with inits:
            await asyncio.gather(*(self._renew(number, count) for number in range(count)))

    async def _renew(self, number: int, count: int) -> None:
        """Never behind calls for pods: a node whose lease is late counts as lost."""
        await asyncio.sleep(RENEWED * number / count)
        while True:
            with contextlib.suppress(ApiFault):
                await self.leases.patch("leases", f"{PREFIX}{number}", {"spec": {"renewTime": _now()}})
            await asyncio.sleep(RENEWED)

    async def _register(self, name: str) -> None:
        offers = {"cpu": str(CPUS), "memory": MEMORY, "pods": str(PODS)}
        ready = {"type": "Ready", "status": "True", "reason": "Fake", "message": "simulated"}
        times = {"lastHeartbeatTime": _now()[:19] + "Z", "lastTransitionTime": _now()[:19] + "Z"}
        node: Object = {
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **MACHINE, **SIMULATED}},
            "status": {
                "capacity": offers,
                "allocatable": offers,
                "conditions": [ready | times],
                "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
                "images": [{"names": ["localhost/python:3"], "sizeBytes": 1}],
            },
        }
        # Kubernetes never sees a lease renewed that it first saw without a time.
        spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": _now()}
        lease = {"metadata": {"name": name}, "spec": spec}
        await self._quietly(self.api.create("nodes", node))
        await self._quietly(self.api.create("leases", lease | {"apiVersion": "coordination.k8s.io/v1"}))

    # Pods

    def _pod_changed(self, item: Object, is_gone: bool) -> None:
        if not str(item["node"] or "").startswith(PREFIX):
            return
        key = f"{item['metadata']['namespace']}/{item['metadata']['name']}"
        pod = self.pods.get(key)
        if is_gone:
            if pod is not None:
                self._forget(key, pod)
        elif pod is None and not item["is_leaving"]:
            self.pods[key] = pod = FakePod(
                item["metadata"]["name"], item["metadata"]["namespace"], self._address()
            )
            self.by_address[pod.address] = pod
            self._soon(self._start(pod, item["begins"]))
        elif pod is not None and item["is_leaving"]:
            self._soon(self._remove(pod))

    def _forget(self, key: str, pod: FakePod) -> None:
        del self.pods[key], self.by_address[pod.address]
        if pod.writer is not None:
            pod.writer.close()

    def _address(self) -> str:
        number = self.first + self._given % 30_000 + 1
        self._given += 1
        return ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))

    async def _start(self, pod: FakePod, begins: bool) -> None:
        state = {"running": {"startedAt": _now()[:19] + "Z"}}
        await self._show(pod, "Running", state, podIP=pod.address, podIPs=[{"ip": pod.address}])
        if begins:
            pod.begin()

    async def _end(self, pod: FakePod) -> None:
        pod.is_shown_over = True
        ended = {"exitCode": 137, "reason": "Error", "message": pod.record.decode()}
        await self._show(pod, "Failed", {"terminated": ended | {"finishedAt": _now()[:19] + "Z"}})

    async def _remove(self, pod: FakePod) -> None:
        """Somebody has deleted it: end it, as far as it was begun, and let go of it.

        One that had ended is deleted without grace, and gone as soon as its finalizer is.
        """
        if pod.is_shown_over:
            return
        pod.end(b"signal 15")
        await self._end(pod)
        await self._quietly(self._in(pod).delete("pods", pod.name, grace=0))

    async def _show(self, pod: FakePod, phase: str, state: Object, **more: Any) -> None:
        row = {"name": CONTAINER, "state": state, "ready": phase == "Running", "restartCount": 0}
        row |= {"image": "fake", "imageID": ""}
        status = {"phase": phase, "containerStatuses": [row], **more}
        await self._quietly(self._in(pod).patch("pods", f"{pod.name}/status", {"status": status}))

    # Inits

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        pod = self.by_address.get(writer.get_extra_info("sockname")[0])
        try:
            greeting = (await reader.readline()).split()
            if pod is None or len(greeting) < 2:
                return
            if greeting[1] == b"output":
                pod.writer = writer
                if pod.record and greeting[2] == b"0":
                    pod.send(b"o", LINE)
                pod.tell()
                await self._obey(pod, reader)
            elif greeting[1] == b"files":
                await _list_no_files(reader, writer)
            else:
                await reader.read()  # a tunnel that no program uses
        except (ConnectionError, ValueError, ChannelBroken, asyncio.IncompleteReadError):
            pass
        finally:
            if pod is not None and pod.writer is writer:
                pod.writer = None
            writer.close()

    async def _obey(self, pod: FakePod, reader: asyncio.StreamReader) -> None:
        while word := (await reader.readline()).strip():
            if word == b"go":
                pod.begin()
            elif word in (b"term", b"kill"):
                pod.end(b"signal 15" if word == b"term" else b"signal 9")
            elif word == b"done" and pod.is_over:
                await self._end(pod)
                return

    # Calls

    def _in(self, pod: FakePod) -> ClusterApi:
        """The API, for the namespace of that pod."""
        api = copy.copy(self.api)
        api.namespace = pod.namespace
        return api

    async def _quietly(self, call: Coroutine[Any, Any, object]) -> None:
        async with self._calls:
            with contextlib.suppress(ApiFault):  # it is gone, or was there already
                await call

    def _soon(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _list_no_files(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Speak as pod_files.h does, where nothing is brought and nothing is ever written."""
    is_awaited = False  # a list that is sent at the next word
    async for letter, data in read_frames(reader):
        is_list = letter == b"L"
        if is_awaited or (is_list and data[:9] != NO_FILES + b"\1"):
            writer.write(frame(b"=", NO_FILES))
        is_awaited = is_list and data[:9] == NO_FILES + b"\1"
        if letter == b"S":
            writer.write(frame(b"."))


def _slim(pod: Object) -> Object:
    meta, spec = pod["metadata"], pod["spec"]
    is_ours = FINALIZER in (meta.get("finalizers") or ())
    return {
        "metadata": {name: meta[name] for name in ("name", "namespace", "resourceVersion")},
        "node": spec.get("nodeName"),
        "is_leaving": "deletionTimestamp" in meta,
        # Pods of ours wait for the server's word, unless they have no peers; those of others for nobody.
        "begins": not is_ours or "--begin" in spec["containers"][0]["command"],
    }


@contextlib.contextmanager
def fake_nodes(cluster: Cluster, count: int) -> Iterator[None]:
    """So many nodes beside the real ones; they are removed afterwards."""
    space, addresses = _range(cluster), cluster.place.addresses
    inside = ["ip", "-n", addresses.namespace]
    run_words(*inside, "route", "replace", "local", space, "dev", "lo")
    run_words("ip", "route", "replace", space, "via", addresses.control, "dev", addresses.link)
    within = ["nsenter", f"--net=/run/netns/{addresses.namespace}", "--"]
    words = [sys.executable, "-m", "tests.kubernetes.fake_kubelet", str(cluster.place.folder), str(count)]
    kubelet = subprocess.Popen([*within, *words], cwd=ROOT)
    try:
        wait_for(lambda: _ready(cluster) == count, f"{count} nodes that take pods")
        yield
    finally:
        for number in range(count):
            cluster.api.ask("DELETE", f"/api/v1/nodes/{PREFIX}{number}")
        kubelet.kill()
        kubelet.wait()
        run_words("ip", "route", "delete", space, check=False)
        run_words(*inside, "route", "delete", "local", space, check=False)


def _ready(cluster: Cluster) -> int:
    nodes = cluster.ask("GET", "/api/v1/nodes")["items"]
    return sum(row["metadata"]["name"].startswith(PREFIX) and not row["spec"].get("taints") for row in nodes)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("count", type=int)
    args = parser.parse_args()
    cluster = started(args.folder)
    assert cluster is not None, "no cluster runs there"
    first = [int(word) for word in _range(cluster).partition("/")[0].split(".")]
    address = sum(part << shift for part, shift in zip(first, (24, 16, 8, 0), strict=True))

    async def serve() -> None:
        api, leases = (ClusterApi(find_config(str(cluster.place.kubeconfig))) for _ in range(2))
        await FakeKubelet(api, leases, address).serve(args.count)

    asyncio.run(serve())


if __name__ == "__main__":
    main()
