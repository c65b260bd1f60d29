"""A real PostgreSQL server for the time of a test module, on a socket in a folder of its own.

`initdb` refuses to run as root: then the server runs as nobody. Sync is off: a test kills the client,
never the server, so nothing depends on it.
"""

import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

HOW_TO_GET_IT = "PostgreSQL's server programs are not installed (Debian: apt install postgresql)"
SETTINGS = "-c listen_addresses='' -c fsync=off -c full_page_writes=off -c synchronous_commit=off"


def programs() -> Path | None:
    """The folder of initdb and pg_ctl: the newest installed, or wherever PATH has them."""
    installed = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]), reverse=True
    )
    if installed:
        return installed[0].parent
    found = shutil.which("initdb")
    return Path(found).resolve().parent if found else None


class Server:
    def __init__(self, home: Path, bin_: Path) -> None:
        self.home = home
        self._bin = bin_
        self._as = (
            ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] if os.getuid() == 0 else []
        )
        if self._as:
            shutil.chown(home, "nobody", "nogroup")
        options = ["-U", "postgres", "-A", "trust", "--no-sync", "--no-locale", "-E", "UTF8"]
        self._run("initdb", "-D", f"{home}/data", *options)

    def start(self) -> None:
        self._run("pg_ctl", "-D", f"{self.home}/data", "-w", "-s", "-l", f"{self.home}/log", "-o",
                  f"-k {self.home} {SETTINGS}", "start")  # fmt: skip

    def stop(self, how: str = "fast") -> None:
        """Orderly, but without waiting for clients; "immediate" is a crash, which without sync loses data."""
        self._run("pg_ctl", "-D", f"{self.home}/data", "-m", how, "-s", "-w", "stop")

    def new_database(self) -> str:
        """The URL of a fresh database."""
        name = f"t{uuid.uuid4().hex}"
        self._run("psql", "-h", str(self.home), "-U", "postgres", "-q", "-c", f"create database {name}")
        return f"postgresql://postgres@/{name}?host={self.home}"

    def _run(self, program: str, *arguments: str) -> None:
        environment = {**os.environ, "HOME": str(self.home), "LC_ALL": "C"}
        done = subprocess.run(
            [*self._as, str(self._bin / program), *arguments],
            cwd=self.home,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr


@contextmanager
def a_server() -> Iterator[Server]:
    found = programs()
    if found is None or (os.getuid() == 0 and shutil.which("setpriv") is None):
        pytest.skip(HOW_TO_GET_IT)
    # Not below pytest's folder: that is closed to others, and the path of a socket must stay short.
    with tempfile.TemporaryDirectory(prefix="pg.", ignore_cleanup_errors=True) as folder:
        server = Server(Path(folder), found)
        server.start()
        try:
            yield server
        finally:
            server.stop("immediate")


@pytest.fixture(scope="module")
def postgres() -> Iterator[Server]:
    with a_server() as server:
        yield server
