"""The cluster backend keeps the promises, on a real Kubernetes."""

import asyncio
import os
import signal
import uuid
from pathlib import Path

import pytest

from tests.containers.engine_images import BASE
from tests.containers.gated_registry import Gate, GatedRegistry
from tests.contracts.backend import BackendContract
from tests.contracts.backend_bench import Bench, Programs, benched, until
from tests.contracts.test_process_backend import ShellPrograms
from tests.kubernetes.cluster import Cluster
from trainshed.backends.cluster.api import ClusterApi, find_config
from trainshed.backends.cluster.backend import ClusterBackend
from trainshed.backends.machine.run_storage import RunStorage
from trainshed.core.names import RunKey
from trainshed.core.ports import Backend
from trainshed.testing.run_files import FolderRunFiles


class ClusterWorld:
    files: FolderRunFiles

    def __init__(self, home: Path, cluster: Cluster) -> None:
        self.programs: Programs = ShellPrograms()
        self.image, self.refused = BASE, "no/such image"
        self.home, self.cluster = home, cluster
        host, _, port = cluster.place.addresses.machine_registry.partition(":")
        self.registry = GatedRegistry(int(port), host)
        home.mkdir(parents=True)

    async def backend(self) -> Backend:
        api = ClusterApi(find_config(str(self.cluster.place.kubeconfig)))
        self.backend_now = ClusterBackend(self.home, api, storage=RunStorage(files=self.files))
        await self.backend_now.start()
        return self.backend_now

    def unmake(self) -> str:
        return self.registry.image(f"gated/{uuid.uuid4().hex}:1")

    async def make(self, image: str, *, well: bool) -> None:
        self.registry.turn(Gate.OPEN if well else Gate.EMPTY)
        await until(lambda: not self.backend_now._images.pulls.going)
        self.registry.turn(Gate.SHUT)

    async def lose(self, key: RunKey) -> None:
        """Kill the init, which holds the exit status."""
        for pid, words in processes(str(key)):
            if words.startswith("/.trainshed/bin/init"):
                os.kill(pid, signal.SIGKILL)

    def leftovers(self, job: str) -> list[str]:
        return [words for _, words in processes(job)]

    def private_files(self, job: str) -> list[str]:
        query = f"?labelSelector=trainshed.dev/job%3D{job}"
        paths = [f"/api/v1/namespaces/default/{kind}{query}" for kind in ("pods", "services", "secrets")]
        objects = [
            str(item["metadata"]["name"]) for path in paths for item in self.cluster.ask("GET", path)["items"]
        ]
        return [*objects, *(str(path) for path in self.home.rglob(f"*{job}*"))]

    async def close(self) -> None:
        return None


def processes(run: str) -> list[tuple[int, str]]:
    """The programs of a job or run: by the variable that all of them have, or by their command line."""
    result: list[tuple[int, str]] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words, environ = (process / "cmdline").read_bytes(), (process / "environ").read_bytes()
        except OSError:
            continue
        is_of_node = b"containerd" in words.split(b" ")[0] or words.startswith(b"runc")
        if (run.encode() in words or b"TRAINSHED_RUN=" + run.encode() in environ) and not is_of_node:
            result.append((int(process.name), words.replace(b"\0", b" ").decode()))
    return result


class ClusterBench(Bench):
    cpus = 0.1  # the nodes share a small machine


class OnCluster:
    """What a contract needs to run on the shared cluster."""

    @pytest.fixture
    def world(self, tmp_path: Path, cluster: Cluster) -> ClusterWorld:
        return ClusterWorld(tmp_path / "home", cluster)

    @pytest.fixture
    async def bench(self, world: ClusterWorld, tmp_path: Path):
        async with benched(world, tmp_path, ClusterBench) as bench:
            yield bench


@pytest.mark.cluster
class TestCluster(OnCluster, BackendContract):
    many = 12

    @pytest.fixture
    async def world(self, tmp_path: Path, cluster: Cluster):
        world = ClusterWorld(tmp_path / "home", cluster)
        await world.registry.start()
        yield world
        await asyncio.wait_for(world.registry.close(), 10)
