"""A server in the cluster of tests: the chart of deploy/helm, applied as an administrator would.

    with installed(cluster, folder) as server:
        server.cli("submit", "job.yaml")       # trainshed, inside its pod
        server.kill()                          # its pod, at once

The volume is a folder of this machine, which all nodes see. Namespaces, rights and volume go with it.
"""

import contextlib
import json
import os
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts import chart
from tests.kubernetes.cluster import LONG, Cluster, wait_for
from tests.kubernetes.server_image import pack_server

IMAGE = "localhost/trainshed:test"
USER = 10001  # as the chart has it
NAME = "trainshed"
TOKEN = "a-word-of-more-than-16-letters"  # in the secret `word`


@dataclass(frozen=True, slots=True)
class InstalledServer:
    cluster: Cluster
    namespace: str
    jobs: str  # the namespace of jobs
    objects: tuple[Any, ...]  # as they were applied

    def kubectl(self, *words: str, given: str | None = None, check: bool = True) -> str:
        program = self.cluster.place.programs.path("kubectl")
        done = subprocess.run(
            [program, "--kubeconfig", str(self.cluster.place.kubeconfig), *words],
            input=given,
            capture_output=True,
            text=True,
            timeout=LONG,
            check=False,
        )
        assert done.returncode == 0 or not check, f"kubectl {' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout

    def cli(self, *words: str, given: str | None = None, check: bool = True) -> str:
        inside = ["-n", self.namespace, "exec", "-i", f"deployment/{NAME}", "-c", "server", "--"]
        return self.kubectl(*inside, "trainshed", *words, given=given, check=check)

    def wait_ready(self) -> None:
        self.kubectl("-n", self.namespace, "rollout", "status", f"deployment/{NAME}", "--timeout=180s")

    def pod(self) -> Any:
        """The server's own, where there is one."""
        path = f"/api/v1/namespaces/{self.namespace}/pods?labelSelector=app.kubernetes.io/component%3Dserver"
        items = self.cluster.ask("GET", path)["items"]
        return items[0] if items else None

    def kill(self) -> None:
        """Its pod, without a moment to end well, and until another one is ready."""
        before = self.pod()["metadata"]
        path = f"/api/v1/namespaces/{self.namespace}/pods/{before['name']}"
        self.cluster.ask("DELETE", path, {"gracePeriodSeconds": 0})
        wait_for(lambda: (pod := self.pod()) and pod["metadata"]["uid"] != before["uid"], "another pod")
        self.wait_ready()

    def lines(self, job: str) -> list[str]:
        return self.cli("logs", job, check=False).splitlines()

    def submit(self, program: str) -> str:
        pool = {
            "machineSpec": {"machineType": "custom-1-256"},
            "replicaCount": 1,
            "containerSpec": {"imageUri": self.cluster.image, "command": ["python3", "-c", program]},
        }
        text = yaml.safe_dump({"displayName": "inside", "jobSpec": {"workerPoolSpecs": [pool]}})
        answer = json.loads(self.cli("submit", "-", "--detach", "--json", given=text))
        return str(answer["name"]).rpartition("/")[2]

    def rights(self) -> Iterator[tuple[str, Any]]:
        """Each role that was applied, with its path in the API."""
        for item in self.objects:
            if item["kind"] in ("Role", "ClusterRole"):
                meta = item["metadata"]
                where = f"/namespaces/{meta['namespace']}" if "namespace" in meta else ""
                path = f"/apis/rbac.authorization.k8s.io/v1{where}/{item['kind'].lower()}s/{meta['name']}"
                yield path, item


@contextlib.contextmanager
def installed(cluster: Cluster, folder: Path, *options: str) -> Iterator[InstalledServer]:
    """The chart with these values more, ready."""
    if chart.words() is None:
        pytest.skip("Helm is not here: python -m scripts.chart fetch")
    archive = folder / "server.tar"
    pack_server(archive, IMAGE)
    cluster.command("load", str(archive))
    archive.unlink()
    home = folder / "volume"
    home.mkdir()
    os.chown(home, USER, USER)
    with cluster.namespace() as namespace, cluster.namespace() as jobs, _volume(cluster, home) as volume:
        values = [f"image.repository={IMAGE.partition(':')[0]}", f"image.tag={IMAGE.partition(':')[2]}"]
        values += [f"jobs.namespace={jobs}", "volume.storageClass=-", "volume.size=1Gi"]
        words = [word for value in (*values, *options) for word in ("--set", value)]
        secret = {"metadata": {"name": "word"}, "stringData": {"token": TOKEN}}
        cluster.ask("POST", f"/api/v1/namespaces/{namespace}/secrets", secret)
        text = chart.render(NAME, namespace, *words)
        server = InstalledServer(cluster, namespace, jobs, tuple(filter(None, yaml.safe_load_all(text))))
        try:
            server.kubectl("apply", "-f", "-", given=text)
            yield server
        finally:
            server.kubectl("delete", "--wait=false", "-f", "-", given=text, check=False)
            cluster.api.ask("DELETE", f"/api/v1/persistentvolumes/{volume}")


@contextlib.contextmanager
def _volume(cluster: Cluster, folder: Path) -> Iterator[str]:
    name = f"test-{uuid.uuid4().hex[:8]}"
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": str(folder)},
        "persistentVolumeReclaimPolicy": "Retain",
    }
    cluster.ask("POST", "/api/v1/persistentvolumes", {"metadata": {"name": name}, "spec": spec})
    yield name
