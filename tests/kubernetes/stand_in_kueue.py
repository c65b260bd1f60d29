"""A stand-in for Kueue: it does what Kueue documents for groups of pods, as far as Kubernetes 1.20 allows.

    with StandInKueue(cluster) as kueue:
        kueue.add_queue("team-a")
        kueue.words = "insufficient quota for cpu"    # why it admits nobody; empty: it admits all
        kueue.evict("GROUP", "Preempted to …")

Kueue cannot be had here. Its kinds are made by definitions that take any field. Kubernetes 1.20 has no gates
of pods: `gate` stops the scheduler instead, so that pods get no node. All else is by what Kueue's documents
say: label and finalizer of pods, one Workload for each group that is whole, its owners, conditions and
finalizer.
"""

import contextlib
import os
import signal
import threading
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from scripts.cluster_parts.processes import running
from tests.kubernetes.cluster import Cluster, wait_for

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PODS = "/api/v1/namespaces/default/pods"
GROUP, COUNT, MANAGED = (
    f"kueue.x-k8s.io/{name}" for name in ("pod-group-name", "pod-group-total-count", "managed")
)
IN_USE = "kueue.x-k8s.io/resource-in-use"
PATCH, MERGE = "application/json-patch+json", "application/merge-patch+json"
CHANGED = 422  # the status of a patch whose test does not hold
PAUSE = 0.1  # seconds between two looks


def define(cluster: Cluster, group: str, version: str, plural: str, kind: str) -> None:
    """A kind whose objects may have any field."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    name = f"{plural}.{group}"
    body = {
        "metadata": {"name": name, "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"}},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [
                {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
            ],
        },
    }
    cluster.ask("POST", DEFINITIONS, body)
    path = f"/apis/{group}/{version}/namespaces/default/{plural}"
    wait_for(lambda: cluster.api.get(path).ok, f"that {name} is served")


class StandInKueue:
    def __init__(self, cluster: Cluster, version: str = "v1beta2") -> None:
        self.cluster, self.version = cluster, version
        self.path = f"/apis/kueue.x-k8s.io/{version}/namespaces/default"
        self.words = ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "StandInKueue":
        for plural, kind in (("workloads", "Workload"), ("localqueues", "LocalQueue")):
            define(self.cluster, "kueue.x-k8s.io", self.version, plural, kind)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.go_away()
        for pod in self._pods():  # of a test that failed: nobody else takes its finalizers
            path = f"{PODS}/{pod['metadata']['name']}"
            self.cluster.api.ask("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
            self.cluster.api.ask("DELETE", path, {"gracePeriodSeconds": 0})
        for item in self.workloads():
            self._end(item, [])
        for plural in ("workloads", "localqueues"):
            self.cluster.ask("DELETE", f"{DEFINITIONS}/{plural}.kueue.x-k8s.io")

        def are_gone() -> bool:
            names = ("workloads", "localqueues")
            answers = [self.cluster.api.get(f"{DEFINITIONS}/{name}.kueue.x-k8s.io") for name in names]
            return not any(answer.ok for answer in answers)

        wait_for(are_gone, "that the kinds of Kueue are gone")

    def go_away(self) -> None:
        """Nobody sees to Workloads any more."""
        self._stop.set()
        self._thread.join()

    def add_queue(self, name: str) -> None:
        body = {"apiVersion": f"kueue.x-k8s.io/{self.version}", "kind": "LocalQueue"}
        active = {"type": "Active", "status": "True", "reason": "Ready"}
        spec, status = {"clusterQueue": "all"}, {"conditions": [active]}
        made = {**body, "metadata": {"name": name}, "spec": spec, "status": status}
        self.cluster.ask("POST", f"{self.path}/localqueues", made)

    def workloads(self) -> list[Any]:
        return self.cluster.ask("GET", f"{self.path}/workloads")["items"]

    @contextlib.contextmanager
    def gate(self) -> Iterator[None]:
        """No pod gets a node meanwhile."""
        [scheduler] = running(self.cluster.place.folder, "scheduler")
        os.kill(scheduler, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(scheduler, signal.SIGCONT)

    def evict(self, group: str, message: str) -> None:
        """As for a workload that is preempted: its pods are told why, and deleted."""
        evicted = {"type": "Evicted", "status": "True", "reason": "Preempted", "message": message}
        self._set(group, [evicted])
        target = {"type": "TerminationTarget", "status": "True", "reason": "WorkloadEvicted"}
        for pod in self._pods(group):
            path, status = f"{PODS}/{pod['metadata']['name']}", pod["status"]
            conditions = [*status.get("conditions", []), {**target, "message": message}]
            self.cluster.api.ask("PATCH", f"{path}/status", {"status": {"conditions": conditions}}, MERGE)
            self.cluster.api.ask("DELETE", path)

    # What it does by itself

    def _run(self) -> None:
        while not self._stop.wait(PAUSE):
            with contextlib.suppress(OSError):
                self._look()

    def _look(self) -> None:
        groups: defaultdict[str, list[Any]] = defaultdict(list)
        for pod in self._pods():
            groups[pod["metadata"]["labels"][GROUP]].append(pod)
        workloads = {item["metadata"]["name"]: item for item in self.workloads()}
        for name, pods in groups.items():
            for pod in pods:
                self._manage(pod)
            runnable = [pod for pod in pods if pod["status"].get("phase") != "Failed"]
            total = int(pods[0]["metadata"]["annotations"][COUNT])
            if name not in workloads and len(runnable) == total:
                self._make(name, runnable)
        for name, item in workloads.items():
            if "deletionTimestamp" in item["metadata"]:
                self._end(item, groups[name])
            elif not any(row["type"] == "Evicted" for row in item["status"]["conditions"]):
                self._set(name, [])

    def _pods(self, group: str = "") -> list[Any]:
        selector = f"{GROUP}%3D{group}" if group else GROUP
        return self.cluster.ask("GET", f"{PODS}?labelSelector={selector}")["items"]

    def _manage(self, pod: Any) -> None:
        meta = pod["metadata"]
        if MANAGED not in meta["labels"] and "deletionTimestamp" not in meta:
            key = MANAGED.replace("/", "~1")
            rows = [
                {"op": "add", "path": f"/metadata/labels/{key}", "value": "true"},
                {"op": "add", "path": "/metadata/finalizers/-", "value": MANAGED},
            ]
            self.cluster.api.ask("PATCH", f"{PODS}/{meta['name']}", rows, PATCH)

    def _make(self, name: str, pods: list[Any]) -> None:
        owners = [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": pod["metadata"]["name"],
                "uid": pod["metadata"]["uid"],
            }
            for pod in pods
        ]
        queue = pods[0]["metadata"]["labels"]["kueue.x-k8s.io/queue-name"]
        body = {
            "apiVersion": f"kueue.x-k8s.io/{self.version}",
            "kind": "Workload",
            "metadata": {"name": name, "ownerReferences": owners, "finalizers": [IN_USE]},
            "spec": {"queueName": queue, "active": True},
            "status": {"conditions": []},
        }
        self.cluster.api.ask("POST", f"{self.path}/workloads", body)

    def _set(self, name: str, more: list[Any]) -> None:
        is_in = not self.words and not more
        reserved: dict[str, str] = {"type": "QuotaReserved", "status": str(is_in), "message": self.words}
        admitted = {"type": "Admitted", "status": str(is_in), "message": ""}
        rows = [{**row, "reason": "Pending"} for row in (reserved, admitted)]
        change = {"status": {"conditions": [*rows, *more]}}
        self.cluster.api.ask("PATCH", f"{self.path}/workloads/{name}", change, MERGE)

    def _end(self, workload: Any, pods: list[Any]) -> None:
        """Somebody deleted it: its pods go, and lose Kueue's finalizer."""
        for pod in pods:
            meta = pod["metadata"]
            path, finalizers = f"{PODS}/{meta['name']}", meta.get("finalizers") or []
            self.cluster.api.ask("DELETE", path)
            rest = [word for word in finalizers if word != MANAGED]
            rows = [
                {"op": "test", "path": "/metadata/finalizers", "value": finalizers},
                {"op": "replace", "path": "/metadata/finalizers", "value": rest},
            ]
            if self.cluster.api.ask("PATCH", path, rows, PATCH).status == CHANGED:
                return  # by somebody else meanwhile: the next look sees what it is now
        path = f"{self.path}/workloads/{workload['metadata']['name']}"
        self.cluster.api.ask("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
