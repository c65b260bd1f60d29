"""A real Kubernetes for tests: the cluster of `scripts/cluster`, one for all workers of a test run.

    def test_it(cluster: Cluster):
        cluster.api.get("/api/v1/nodes")       # as its administrator
        cluster.namespace()                    # for the objects of one test
        cluster.command("status")              # scripts/cluster

A cluster that runs already (`make cluster`) is used and left running. Otherwise the first worker that asks
starts one, and it is removed when the last worker has ended, however that comes. Tests that treat nodes badly
start a cluster of their own (`a_cluster_apart`), since others look at this one.
"""

import contextlib
import fcntl
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from scripts.cluster_parts import life, missing
from scripts.cluster_parts.api import Answer, Api
from scripts.cluster_parts.image import BASE
from scripts.cluster_parts.place import Place, Programs, cache_folder, state_folder
from scripts.cluster_parts.processes import running
from tests.containers.engine import HOW_TO_GET_IT
from tests.live import PATIENCE

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "cluster"
LONG = 5 * PATIENCE  # a start beside all other tests
GRACE = 8  # seconds until a silent node is not ready, in a cluster apart
GUARDS: list["subprocess.Popen[bytes]"] = []  # they outlive this process


@cache
def why_not() -> str | None:
    """What keeps this machine from having a cluster for tests; None where nothing does."""
    return missing.to_run(Programs(cache_folder()))


@dataclass(frozen=True, slots=True)
class Cluster:
    """One that runs. `place` has its addresses and the path of its kubeconfig."""

    place: Place
    api: Api = field(repr=False)
    image: str = BASE

    @property
    def registry(self) -> str:
        """The address of its own, to which anybody may push."""
        if not running(self.place.folder, "registry"):
            pytest.skip(f"the cluster has no registry: docker-registry is not here; {HOW_TO_GET_IT}")
        return self.place.addresses.registry

    def command(self, *words: str) -> str:
        return command(self.place.folder, *words)

    @contextlib.contextmanager
    def namespace(self) -> Iterator[str]:
        """A new one, in which pods can be made; all of it is removed afterwards."""
        name = f"test-{uuid.uuid4().hex[:8]}"
        self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        try:
            account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
            wait_for(lambda: _secrets(self.api.get(account)), "a service account with a token")
            yield name
        finally:
            self.ask("DELETE", f"/api/v1/namespaces/{name}")

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The answer's object; fails the test where it is refused."""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        answer = self.api.ask(method, path, body, kind)
        assert answer.ok, f"{method} {path}: {answer.status} {answer.text}"
        return answer.body


def _secrets(account: Answer) -> list[Any]:
    return account.body.get("secrets") or [] if account.ok else []


def wait_for(look: Callable[[], Any], what: str, seconds: float = 3 * PATIENCE, every: float = 0.1) -> Any:
    """What the look gives as soon as that is true; a server that does not answer is looked at again."""
    deadline = time.monotonic() + seconds
    while True:
        with contextlib.suppress(OSError):
            if seen := look():
                return seen
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(every)


def command(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--folder", str(folder), *words],
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
    )
    assert done.returncode == 0, f"scripts/cluster {' '.join(words)}: {done.stdout}{done.stderr}"
    return done.stdout


def started(folder: Path) -> Cluster | None:
    """The cluster in this folder, where it is ready."""
    place = life.find(folder)
    return Cluster(place, life.admin(place)) if place is not None and life.is_ready(place) else None


@contextlib.contextmanager
def the_cluster() -> Iterator[Cluster]:
    """The one that all tests share; the test is skipped, with the reason, where none can be had."""
    if reason := why_not():
        pytest.skip(reason)
    folder = state_folder()
    users = folder.with_name(f"{folder.name}.users")
    with users.open("w") as used, folder.with_name(f"{folder.name}.tests").open("w") as starting:
        fcntl.flock(used, fcntl.LOCK_SH)  # waits while the one of an earlier run is removed
        fcntl.flock(starting, fcntl.LOCK_EX)
        cluster = started(folder) or _start_shared(folder, users)
        _see_to_image(cluster)
        fcntl.flock(starting, fcntl.LOCK_UN)
        yield cluster


def _start_shared(folder: Path, users: Path) -> Cluster:
    """A guard removes it as soon as nobody uses it, also where the test run was killed."""
    guard = ["flock", str(users), sys.executable, str(SCRIPT), "--folder", str(folder), "down"]
    nothing = subprocess.DEVNULL
    GUARDS.append(
        subprocess.Popen(
            guard, start_new_session=True, cwd="/", stdin=nothing, stdout=nothing, stderr=nothing
        )
    )
    command(folder, "up")
    cluster = started(folder)
    assert cluster is not None
    return cluster


def _see_to_image(cluster: Cluster) -> None:
    nodes = cluster.ask("GET", "/api/v1/nodes")["items"]
    names = [
        [name for image in row["status"].get("images") or [] for name in image.get("names") or ()]
        for row in nodes
    ]
    if not all(BASE in images for images in names):
        cluster.command("load")


@contextlib.contextmanager
def a_cluster_apart(folder: Path, nodes: int = 2, node_grace: int = GRACE) -> Iterator[Cluster]:
    """For tests that cut nodes off or remove the cluster; it notices lost nodes after this many seconds."""
    if reason := why_not():
        pytest.skip(reason)
    try:
        command(folder, "up", "--nodes", str(nodes), "--node-grace", str(node_grace))
        cluster = started(folder)
        assert cluster is not None
        cluster.command("load")
        yield cluster
    finally:
        command(folder, "down")
        folder.with_name(f"{folder.name}.lock").unlink(missing_ok=True)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """The one that all tests share."""
    with the_cluster() as shared:
        yield shared
