"""A real Docker for tests: a daemon of its own beside Podman, with its own storage and addresses.

    def test_it(docker: Docker):
        docker.run("ps")                # the command line, on the same containers
        Engine(str(docker.socket))      # the API

The daemon lives in process and mount namespaces of its own: all of it, with every container and mount, goes
with its first process, which goes with the test run, however that ends. Its network is the machine's, because
registries of tests are there; so there is one at a time, and none where the machine has a Docker running.
"""

import contextlib
import ctypes
import fcntl
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.containers.engine import PLACES, ROOT, CommandLine, answers
from tests.containers.engine_guard import delete_bridges
from tests.containers.engine_images import BASE, on_disk
from tests.live import PATIENCE

PROGRAMS = ("dockerd", "docker", "containerd", "runc", "unshare", "iptables")
HOW_TO_GET_IT = "get it on Debian or Ubuntu, as root, with: scripts/containers-env"
_PR_SET_PDEATHSIG = 1
_BYTE = 209  # the second of all addresses of its networks
_BRIDGE = re.compile(r"\b(?:br-[0-9a-f]{12}|docker0)\b")


def why_not() -> str | None:
    """What keeps this machine from running a Docker for tests; None where nothing does."""
    if os.getuid() != 0:
        return "a Docker daemon needs root"
    lacking = [program for program in PROGRAMS if shutil.which(program, path=_path()) is None]
    if lacking:
        return f"not here: {', '.join(lacking)}; {HOW_TO_GET_IT}"
    if answers(Path("/var/run/docker.sock")):
        return "a Docker runs on this machine: two would quarrel about its firewall"
    return None


def _path() -> str:
    return f"{os.environ['PATH']}:{PLACES}"


class Docker(CommandLine):
    """One private daemon. `subnets` is the range for networks that the code under test makes."""

    program = "docker"
    subnets = f"10.{_BYTE}.0.0/16"
    registry_ports = (15098, 15099)

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="dock-", dir=on_disk()))
        self.socket = self.folder / "docker.sock"
        self.env = {
            "DOCKER_HOST": f"unix://{self.socket}",
            "PATH": _path(),
            "DOCKER_CONFIG": str(self.folder),
        }
        self.service: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        words = ["unshare", "--pid", "--mount-proc", "--kill-child=KILL", "dockerd"]
        words += [
            "--data-root",
            f"{self.folder}/data",
            "--exec-root",
            f"{self.folder}/exec",
            "--bridge",
            "none",
        ]
        words += ["--pidfile", f"{self.folder}/pid", "--host", f"unix://{self.socket}"]
        words += ["--exec-opt", "native.cgroupdriver=cgroupfs", "--default-ulimit", "nofile=20000:20000"]
        with (self.folder / "daemon.log").open("ab") as log:
            self.service = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | self.env,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - nothing but a system call happens there
            )
        deadline = time.monotonic() + PATIENCE
        while not answers(self.socket):
            said = (self.folder / "daemon.log").read_text(errors="replace")[-2000:]
            assert self.service.poll() is None, f"docker's daemon ended: {said}"
            assert time.monotonic() < deadline, f"docker's daemon does not answer: {said}"
            time.sleep(0.05)

    def close(self) -> None:
        if self.service is not None:
            self.service.kill()
            self.service.wait(PATIENCE)
        _forget_network()
        shutil.rmtree(self.folder, ignore_errors=True)

    def remove(self, container: str) -> None:
        """At once, without being asked to end."""
        self.run("rm", "--force", container)

    def load_base(self) -> None:
        """The image of all tests of containers, from this machine's own files."""
        change = ["--change", "ENV PATH=/usr/local/bin:/usr/bin:/bin"]
        script = ROOT / "scripts" / "base_image.py"
        with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE) as tar:
            subprocess.run(
                ["docker", "import", *change, "-", BASE],
                env=os.environ | self.env,
                stdin=tar.stdout,
                check=True,
                capture_output=True,
                timeout=5 * PATIENCE,
            )

    def networks(self) -> set[str]:
        """Those that somebody made: the daemon's own are left out."""
        names = set(self.run("network", "ls", "--format", "{{.Name}}").split())
        return names - {"bridge", "host", "none"}


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _forget_network() -> None:
    """What a daemon leaves, also a killed one: bridges, chains, and rules for bridges that are gone.

    A bridge that stays takes the packets of later networks with its addresses. None of this is another's: no
    Docker runs on this machine.
    """
    delete_bridges(_BYTE)
    for table in ("filter", "nat"):
        listed = _iptables("-t", table, "-S").splitlines()
        for rule in listed:
            gone = [one for one in _BRIDGE.findall(rule) if not Path("/sys/class/net", one).exists()]
            if rule.startswith("-A ") and (" -j DOCKER" in rule or gone):
                _iptables("-t", table, "-D", *shlex.split(rule)[1:])
        chains = [rule.split()[1] for rule in listed if rule.startswith("-N DOCKER")]
        for way in ("-F", "-X"):
            for chain in chains:
                _iptables("-t", table, way, chain)


def _iptables(*words: str) -> str:
    env = os.environ | {"PATH": _path()}
    return subprocess.run(["iptables", *words], env=env, capture_output=True, text=True, check=False).stdout


@contextlib.contextmanager
def a_docker() -> Iterator[Docker]:
    """One for the time of a block; the test is skipped, with the reason, where none can be had."""
    if reason := why_not():
        pytest.skip(reason)
    with (Path(tempfile.gettempdir()) / "trainshed-docker.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _forget_network()  # of one whose tests were killed
        docker = Docker()
        try:
            docker.start()
            docker.load_base()
            first = docker.run("run", "--rm", "--network", "none", BASE, "echo", "it runs", check=False)
            if "it runs" not in first:
                pytest.skip(f"docker is here, but can run nothing: {docker.said}")
            yield docker
        finally:
            docker.close()


@pytest.fixture(scope="session")
def docker() -> Iterator[Docker]:
    with a_docker() as docker:
        yield docker
