"""A real Podman for tests: a service of its own, with storage, networks and registries that disturb nobody.

    def test_it(podman: Podman):                 # one for each worker, see tests/conftest.py
        podman.run("run", "--rm", BASE, "true")  # the command line, on the same containers
        Engine(str(podman.socket))               # the API

The base image is made once for each checkout (.images) and shared by all services as a read-only store. A
guard process waits for the end of the test run, however that comes, and then removes the service with its
containers, mounts and networks: nothing is left even where the run is killed.
"""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.containers.engine_guard import end_all, engine_made, forget_networks, mounted, second_byte
from tests.containers.engine_images import BASE, base_store, on_disk
from tests.live import PATIENCE

ROOT = Path(__file__).parents[2]
PLACES = "/usr/local/sbin:/usr/sbin:/sbin:/usr/lib/podman:/usr/libexec/podman"
PROGRAMS = ("podman", "runc", "conmon", "netavark", "iptables")
HOW_TO_GET_IT = "get it on Debian or Ubuntu, as root, with: scripts/containers-env"
TRIES = 5
SLOTS = 40  # test runs and workers at once on one machine

# Each engine has what others would share by default: locks, state, networks, credentials.
CONTAINERS_CONF = """[containers]
default_ulimits = ["nofile=20000:20000", "nproc=20000:20000"]
log_driver = "k8s-file"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
lock_type = "file"
tmp_dir = "{folder}/state"
image_copy_tmp_dir = "{folder}/tmp"
[network]
network_backend = "netavark"
network_config_dir = "{folder}/networks"
default_subnet_pools = [{{"base" = "10.{second}.128.0/17", "size" = 24}}]
"""
STORAGE_CONF = """[storage]
driver = "overlay"
graphroot = "{folder}/graph"
runroot = "{folder}/run"
[storage.options]
additionalimagestores = ["{images}"]
"""
REGISTRIES_CONF = """unqualified-search-registries = []
[[registry]]
location = "127.0.0.1:{first}"
insecure = true
[[registry]]
location = "127.0.0.1:{other}"
insecure = true
"""


def why_not() -> str | None:
    """What keeps this machine from running containers for tests; None where nothing does."""
    if os.getuid() != 0:
        return "limits and networks of containers need root"
    path = f"{os.environ['PATH']}:{PLACES}"
    lacking = [program for program in PROGRAMS if shutil.which(program, path=path) is None]
    return f"not here: {', '.join(lacking)}; {HOW_TO_GET_IT}" if lacking else None


def settings(folder: Path, slot: int, images: Path) -> dict[str, str]:
    """Writes the engine's configuration; the environment that leads to it."""
    ports = registry_ports(slot)
    texts = {
        "containers.conf": CONTAINERS_CONF.format(folder=folder, second=second_byte(slot)),
        "storage.conf": STORAGE_CONF.format(folder=folder, images=images),
        "registries.conf": REGISTRIES_CONF.format(first=ports[0], other=ports[1]),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "auth.json").write_text("{}")
    for name in ("tmp", "networks"):
        (folder / name).mkdir(exist_ok=True)
    return {
        "CONTAINERS_CONF": f"{folder}/containers.conf",
        "CONTAINERS_STORAGE_CONF": f"{folder}/storage.conf",
        "CONTAINERS_REGISTRIES_CONF": f"{folder}/registries.conf",
        "REGISTRY_AUTH_FILE": f"{folder}/auth.json",
        "DOCKER_HOST": f"unix://{folder}/podman.sock",
    }


def registry_ports(slot: int) -> tuple[int, int]:
    return 15100 + 2 * slot, 15101 + 2 * slot


@contextlib.contextmanager
def a_slot() -> Iterator[tuple[int, int]]:
    """A number that no other engine of tests on this machine has, for addresses and ports; and its lock."""
    for slot in range(SLOTS):
        path = Path(tempfile.gettempdir()) / f"trainshed-engine-{slot}.lock"
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if all(_is_free(port) for port in registry_ports(slot)):
                yield slot, lock
                return
        except BlockingIOError:
            continue
        finally:
            os.close(lock)
    raise AssertionError(f"{SLOTS} engines of tests run already")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return True
    return False


class CommandLine:
    """Of an engine, on its own containers."""

    program: str
    env: dict[str, str]
    said = ""  # by the last one, to its standard error

    def run(self, *words: str, check: bool = True, feed: bytes | None = None) -> str:
        """What it printed."""
        done = subprocess.run(
            [self.program, *words],
            env=os.environ | self.env,
            input=feed,
            stdin=subprocess.DEVNULL if feed is None else None,
            capture_output=True,
            timeout=2 * PATIENCE,
            check=False,
        )
        self.said = done.stderr.decode(errors="replace")
        assert done.returncode == 0 or not check, (
            f"{self.program} {' '.join(words)}: {done.returncode} {self.said}"
        )
        return done.stdout.decode(errors="replace")


class Podman(CommandLine):
    """One private engine. `subnets` is the range for networks that the code under test makes."""

    program = "podman"

    def __init__(self, slot: int, lock: int) -> None:
        # Short: a socket's path must stay below 108 characters. On a disk: storage in memory would be dear.
        self.folder = Path(tempfile.mkdtemp(prefix="pod-", dir=on_disk()))
        self.slot = slot
        self.socket = self.folder / "podman.sock"
        self.subnets = f"10.{second_byte(slot)}.0.0/17"
        self.registry_ports = registry_ports(slot)
        self.service: subprocess.Popen[bytes] | None = None
        self._guard = subprocess.Popen(
            [sys.executable, "-m", "tests.containers.engine_guard", str(self.folder), str(slot)],
            stdin=subprocess.PIPE,
            cwd=ROOT,
            start_new_session=True,
            pass_fds=[lock],  # the slot is taken for as long as anything is left of it
        )
        try:
            self.env = settings(self.folder, slot, base_store())
            self.start()
        except BaseException:
            self.close()
            raise

    # ---- the service

    def start(self) -> None:
        with (self.folder / "service.log").open("ab") as log:
            self.service = subprocess.Popen(
                ["podman", "system", "service", "-t", "0", f"unix://{self.socket}"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | self.env,
                cwd=self.folder,
                start_new_session=True,
            )
        deadline = time.monotonic() + PATIENCE
        while not answers(self.socket):
            said = (self.folder / "service.log").read_text(errors="replace")
            assert self.service.poll() is None, f"podman's service ended: {said}"
            assert time.monotonic() < deadline, f"podman's service does not answer: {said}"
            time.sleep(0.02)

    def stop(self, number: signal.Signals = signal.SIGKILL) -> None:
        """End the service alone: containers live on, as they do when an engine is updated or crashes."""
        if self.service is not None:
            self.service.send_signal(number)
            self.service.wait(PATIENCE)
            self.service = None
        self.socket.unlink(missing_ok=True)

    def restart(self) -> None:
        self.stop()
        self.start()

    def reboot(self) -> None:
        """As the machine does: every container is dead at once, and what is kept in memory is gone."""
        self.stop()
        end_all(lambda: engine_made(self.folder), self.folder)
        forget_networks(self.slot)
        for name in ("run", "state"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        self.start()

    def close(self) -> None:
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        try:
            self._guard.wait(2 * PATIENCE)
        finally:
            if self.service is not None:
                self.service.wait(PATIENCE)

    # ---- asking it

    def remove(self, container: str) -> None:
        """At once, without being asked to end."""
        self.run("rm", "--force", "--time", "0", container)

    def containers(self, prefix: str = "") -> dict[str, str]:
        """Name -> state of all containers whose name begins so, running or not."""
        rows = json.loads(self.run("ps", "--all", "--format", "json"))
        states = {row["Names"][0]: row["State"] for row in rows}
        return {name: state for name, state in states.items() if name.startswith(prefix)}

    def networks(self) -> set[str]:
        """Those that somebody made: the engine's own is left out."""
        return set(self.run("network", "ls", "--format", "{{.Name}}").split()) - {"podman"}

    def mounts(self) -> list[str]:
        """What is mounted for containers; the engine's own mount of its storage on itself is left out."""
        return [place for place in mounted(self.folder) if place != f"{self.folder}/graph/overlay"]


def answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as talk, contextlib.suppress(OSError):
        talk.settimeout(PATIENCE)
        talk.connect(str(path))
        talk.sendall(b"GET /_ping HTTP/1.0\r\nHost: d\r\n\r\n")
        return b" 200 " in talk.recv(64)
    return False


@contextlib.contextmanager
def an_engine() -> Iterator[Podman]:
    """One for the time of a block; the test is skipped, with the reason, where none can be had."""
    if reason := why_not():
        pytest.skip(reason)
    with a_slot() as (slot, lock):
        engine = Podman(slot, lock)
        try:
            for _ in range(
                TRIES
            ):  # another engine that begins may make the same chain of the firewall meanwhile
                if "it runs" in engine.run("run", "--rm", BASE, "echo", "it runs", check=False):
                    break
                time.sleep(1)
            else:
                pytest.skip(f"podman is here, but can run nothing: {engine.said}")
            yield engine
        finally:
            engine.close()


@pytest.fixture(scope="session")
def podman() -> Iterator[Podman]:
    """The engine of this worker."""
    with an_engine() as engine:
        yield engine
