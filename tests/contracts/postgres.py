"""A real PostgreSQL server for the time of a test module, on a socket in a folder of its own.

`initdb` refuses to run as root: then the server runs as nobody. It does not sync: tests kill processes, never
the machine. It does not even write commits before it answers, unless the client asks for that: a crash loses
what was not asked for.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

HOW_TO_GET_IT = "PostgreSQL's server programs are not installed (Debian: apt install postgresql)"
SETTINGS = (
    "-c listen_addresses='' -c fsync=off -c full_page_writes=off -c synchronous_commit=off "
    "-c wal_writer_delay=10s -c wal_writer_flush_after=1GB"
)


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

    def crash(self) -> None:
        """kill -9 of all its processes. What was not written yet is lost."""
        note = self.home / "data" / "postmaster.pid"
        first = int(note.read_text().split()[0])
        pids = [first, *children(first)]
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        while any(is_alive(pid) for pid in pids):
            time.sleep(0.01)
        # Else it does not start while nobody has reaped the first process.
        for left in (note, *self.home.glob(".s.PGSQL.*")):
            left.unlink()

    def save(self) -> None:
        """Keep all that it has now, while it does not run."""
        shutil.rmtree(self.home / "saved", ignore_errors=True)
        subprocess.run(["cp", "-a", self.home / "data", self.home / "saved"], check=True)

    def bring_back(self) -> None:
        """Let it have what was saved, while it does not run: it has lost all later commits."""
        shutil.rmtree(self.home / "data")
        (self.home / "saved").rename(self.home / "data")

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
        log = self.home / "log"
        assert done.returncode == 0, done.stderr + (log.read_text()[-1000:] if log.exists() else "")


def children(parent: int) -> list[int]:
    listed = Path(f"/proc/{parent}/task/{parent}/children").read_text()
    return [int(pid) for pid in listed.split()]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


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
