"""A real registry for tests: Debian's docker-registry on loopback; the engine of tests speaks http to it.

with a_registry(podman) as registry:                                  # open to everybody
    podman.run("push", BASE, registry.image("team/python:3"))
with a_registry(podman, user="ann", password="s3cret") as registry:   # 401 for everybody else
"""

import contextlib
import http.client
import os
import shutil
import subprocess
import tempfile
import time
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.containers.engine import HOW_TO_GET_IT, PLACES, Podman
from tests.live import PATIENCE

CONFIG = """version: 0.1
log: {{level: warn}}
storage: {{filesystem: {{rootdirectory: {folder}/data}}, delete: {{enabled: true}}}}
http: {{addr: "127.0.0.1:{port}"}}
"""
USERS = """auth: {{htpasswd: {{realm: tests, path: {folder}/htpasswd}}}}
"""
SALT = "$2y$04$abcdefghijklmnopqrstuu"


@dataclass(frozen=True, slots=True)
class Registry:
    port: int
    folder: Path
    user: str = ""
    password: str = ""

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def image(self, name: str) -> str:
        """The full name of an image in it."""
        return f"{self.host}/{name}"

    def get(self, path: str) -> tuple[int, bytes]:
        """Ask the registry itself, as its user: `get("/v2/_catalog")`."""
        word = b64encode(f"{self.user}:{self.password}".encode()).decode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request("GET", path, headers={"Authorization": f"Basic {word}"} if self.user else {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def log(self) -> str:
        """What the registry wrote."""
        return (self.folder / "log").read_text(errors="replace")


@contextlib.contextmanager
def a_registry(podman: Podman, user: str = "", password: str = "") -> Iterator[Registry]:
    """With a user at the engine's second port, without one at its first: one of each may run."""
    path = f"{os.environ['PATH']}:{PLACES}"
    program = shutil.which("docker-registry", path=path)
    if program is None:
        pytest.skip(f"docker-registry is not here; {HOW_TO_GET_IT}")
    port = podman.registry_ports[1 if user else 0]
    # Inside the engine's folder: its guard ends what is left of a run that was killed.
    folder = Path(tempfile.mkdtemp(prefix="registry-", dir=podman.folder))
    config = CONFIG.format(folder=folder, port=port)
    if user:
        config += USERS.format(folder=folder)
        (folder / "htpasswd").write_text(f"{user}:{scrambled(password)}\n")
    (folder / "config.yml").write_text(config)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [program, "serve", f"{folder}/config.yml"], stdout=log, stderr=log, cwd=folder
        )
    registry = Registry(port, folder, user, password)
    try:
        deadline = time.monotonic() + PATIENCE
        while not answers(registry):
            assert process.poll() is None and time.monotonic() < deadline, registry.log()
            time.sleep(0.02)
        yield registry
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def answers(registry: Registry) -> bool:
    with contextlib.suppress(OSError):
        return registry.get("/v2/")[0] == 200
    return False


def scrambled(password: str) -> str:
    """As registries want it: bcrypt, which the system's own crypt can do."""
    code = "print crypt($ARGV[0], $ARGV[1])"
    done = subprocess.run(["perl", "-e", code, password, SALT], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture(scope="session")
def registry(podman: Podman) -> Iterator[Registry]:
    """An open one, for the engine of this worker."""
    with a_registry(podman) as one:
        yield one
