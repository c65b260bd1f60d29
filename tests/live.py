"""A real server for tests: killed as machines kill it, gone without a trace.

    with LiveServer("--cpus", "8", "--memory", "8GiB") as server:
        job = server.submit(["python", "-c", "print('hello')"])
        done = server.wait(job)
        server.kill(); server.start()            # kill -9, and up again on the same port and home

In benchmarks it is started as people start it, in tests as a copy of a process that has imported all it
needs, and finds its C programs compiled (`tests/programs.py`). Each server has a temporary home of its own
with a short path. On leaving, the server and every process that bears its home in its environment, command
line or working directory is ended, and the home is removed. Only the standard library is used, so that what
is tested is the server and not our own client.
"""

import contextlib
import http.client
import json
import os
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from tests.preloaded_server import COMMAND, CopiedServer

PROJECT, LOCATION = "p1", "us-central1"
PARENT = f"/v1/projects/{PROJECT}/locations/{LOCATION}"
JOBS = f"{PARENT}/customJobs"
FINAL = ("JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED", "JOB_STATE_CANCELLED")
PATIENCE = 60.0  # seconds anything may take on a busy machine before a test gives up
IMAGE = "trainshed/python:3"
_OWN = "(own token)"


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]  # lower-case names
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> Any:
        """The google.rpc.Status inside an error's body."""
        return self.json["error"]

    @property
    def violations(self) -> dict[str, str]:
        """Field -> description of every violation told; several of one field are joined."""
        found: dict[str, str] = {}
        for detail in self.error.get("details", []):
            for one in detail.get("fieldViolations", []):
                field = one.get("field", "")
                found[field] = " ".join(filter(None, (found.get(field), one["description"])))
        return found


class LiveServer:
    """One server process with its home. `flags` are those of `python -m trainshed.server`."""

    copies = False  # of a process that has imported what they need, so that they start sooner

    def __init__(
        self, *flags: str, home: Path | None = None, env: Mapping[str, str] | None = None, port: int = 0
    ) -> None:
        # Short: sockets under TMPDIR of a replica must stay below 108 characters.
        self.base = Path(tempfile.mkdtemp(prefix="ts-"))
        self.home = home or self.base / "h"
        self.flags = flags
        self.port, self.scheme = port, "http"
        self.log = self.base / "server.log"
        self.process: subprocess.Popen[bytes] | CopiedServer | None = None
        self._env = dict(env or {})
        self.prefix: tuple[str, ...] = ()  # words before its command: what gives it another world

    # ---- life

    def start(self, *, wait: bool = True) -> "LiveServer":
        """Start it; the second time on the port it had before."""
        env = {k: v for k, v in os.environ.items() if not k.startswith(("TRAINSHED_", "COV_", "PYTEST_"))}
        env["TRAINSHED_ENGINE"] = "none"  # whatever runs on this machine; who needs one says which
        words = ["--port", str(self.port), "--home", str(self.home), *self.flags]
        with self.log.open("ab") as log:
            if self.copies and not self.prefix and not any(map(_changes_a_start, self._env)):
                self.process = CopiedServer(words, env | self._env, self.base, log)
            else:
                self.process = subprocess.Popen(
                    [*self.prefix, *COMMAND, *words],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=env | self._env,
                    cwd=self.base,
                    start_new_session=True,
                )
        if wait:
            self.wait_ready()
        return self

    def wait_ready(self) -> None:
        """Until the server has announced itself; its last words in the error where it does not."""
        assert self.process is not None
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError, ValueError, KeyError):
                note = json.loads((self.home / "server.json").read_text())
                if note["pid"] == self.process.pid:  # one that was killed left its own behind
                    self.port = urlsplit(note["url"]).port or 0
                    self.scheme = urlsplit(note["url"]).scheme
                    return
            if self.process.poll() is not None:
                raise AssertionError(f"the server ended with {self.process.returncode}:\n{self.said()}")
            time.sleep(0.005)
        raise AssertionError(f"the server was not ready within {PATIENCE} s:\n{self.said()}")

    def kill(self) -> None:
        """kill -9, as a machine would."""
        self._end(signal.SIGKILL)

    def stop(self, *, patience: float = 20) -> int | None:
        """As Ctrl-C or an init system does; SIGKILL where that does not help. The exit status."""
        self._end(signal.SIGTERM, patience)
        return self.process.returncode if self.process else None

    def restart(self) -> None:
        self.stop()
        self.start()

    def _end(self, number: signal.Signals, patience: float = 20) -> None:
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(number)
        try:
            self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(patience)

    def lose_home(self) -> None:
        """By `rm`: the folders that an overlay makes for itself are closed to their own user."""
        subprocess.run(["rm", "-rf", self.home], check=True)

    def close(self) -> None:
        """End all that is left, and forget the home."""
        self.stop()
        sweep(self.base)
        if not self.home.is_relative_to(self.base):
            sweep(self.home)
        subprocess.run(["rm", "-rf", self.base], check=False)

    def __enter__(self) -> "LiveServer":
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- what one knows of it

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    @property
    def token(self) -> str:
        """The token; empty for a server that asks for none."""
        try:
            return (self.home / "token").read_text().strip()
        except FileNotFoundError:
            return ""

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def said(self) -> str:
        """All the server wrote."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def processes(self) -> list[int]:
        """The pids of all that lives under this home, the server itself excepted."""
        own = {self.process.pid} if self.process else set[int]()
        return [pid for pid in bearing(self.base) if pid not in own]

    def commands(self) -> list[str]:
        """The command lines of all of them that live on while they are read."""
        found: list[str] = []
        for pid in self.processes():
            with contextlib.suppress(OSError):
                found.append(Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode())
        return found

    # ---- talking to it

    def cli(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        """The command line on this server, in the project of `submit`."""
        own = {name: value for name, value in os.environ.items() if not name.startswith("TRAINSHED_")}
        return subprocess.run(
            [sys.executable, "-P", "-m", "trainshed.cli", *words],
            env={**own, "TRAINSHED_HOME": str(self.home), "TRAINSHED_PROJECT": "p1", **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE,
            check=False,
        )

    def request(
        self,
        verb: str,
        path: str,
        body: object = None,
        *,
        headers: Mapping[str, str] | None = None,
        token: str | None = _OWN,
        timeout: float = PATIENCE,
    ) -> Answer:
        """One HTTP request on a connection of its own. `token=None` sends no Authorization."""
        sent = {"Content-Type": "application/json"} if body is not None else {}
        bearer = self.token if token == _OWN else token
        if bearer:
            sent["Authorization"] = f"Bearer {bearer}"
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        if self.scheme == "https":
            trusting = ssl.create_default_context(cafile=str(self.home / "tls" / "own" / "ca.pem"))
            connection = http.client.HTTPSConnection(
                "127.0.0.1", self.port, timeout=timeout, context=trusting
            )
        try:
            connection.request(verb, path, body=data, headers=sent | dict(headers or {}))
            reply = connection.getresponse()
            return Answer(reply.status, {k.lower(): v for k, v in reply.getheaders()}, reply.read())
        finally:
            connection.close()

    def get(self, path: str, **query: str | int) -> Any:
        return self._good("GET", path + (f"?{urlencode(query)}" if query else ""))

    def post(self, path: str, body: object = None, **query: str) -> Any:
        return self._good("POST", path + (f"?{urlencode(query)}" if query else ""), body or {})

    def _good(self, verb: str, path: str, body: object = None) -> Any:
        answer = self.request(verb, path, body)
        assert answer.status == 200, f"{verb} {path}: {answer.status} {answer.body.decode()[:2000]}"
        return answer.json

    def submit(
        self,
        command: Sequence[str] = (),
        *,
        pools: Sequence[Mapping[str, object]] | None = None,
        name: str = "job",
        spec: Mapping[str, object] | None = None,
        **job: object,
    ) -> str:
        """Create a job; the name it was given. One pool that runs `command`, unless pools are given."""
        job_spec = {"workerPoolSpecs": list(pools) if pools is not None else [pool(command)], **(spec or {})}
        created = self.post(JOBS, {"displayName": name, "jobSpec": job_spec, **job})
        return str(created["name"])

    def job(self, name: str) -> Any:
        return self.get(f"/v1/{name}")

    def state(self, name: str) -> str:
        return str(self.job(name)["state"])

    def cancel(self, name: str) -> None:
        self.post(f"/v1/{name}:cancel")

    def wait(self, name: str, patience: float = PATIENCE) -> Any:
        """The job once it is final."""
        return self.wait_for(name, FINAL, patience)

    def wait_for(self, name: str, states: Sequence[str], patience: float = PATIENCE) -> Any:
        """The job once it is in one of the states."""
        deadline, pause = time.monotonic() + patience, 0.02
        only_final = set(states) <= set(FINAL)
        while True:
            job = self.get(f"/v1/{name}:wait", timeout="5s") if only_final else self.job(name)
            if job["state"] in states:
                return job
            assert job["state"] not in FINAL, f"{name} ended as {job['state']}: {job.get('error')}"
            assert time.monotonic() < deadline, f"{name} is {job['state']}, not in {states}"
            if not only_final:
                time.sleep(pause)
                pause = min(1.5 * pause, 0.1)

    def entries(self, filter: str, **body: object) -> list[Any]:
        """All log entries the filter matches, page by page."""
        ask: dict[str, object] = {"resourceNames": [f"projects/{PROJECT}"], "filter": filter, **body}
        found: list[Any] = []
        while True:
            page = self.post("/v2/entries:list", ask)
            found += page.get("entries", [])
            if not page.get("nextPageToken"):
                return found
            ask["pageToken"] = page["nextPageToken"]

    def lines(self, name: str, **query: str | int) -> list[Any]:
        """What the job printed so far: task, attempt, stream, text of each line, in order."""
        answer = self.request("GET", f"/v1/{name}:tail" + (f"?{urlencode(query)}" if query else ""))
        assert answer.status == 200, answer.body
        return [json.loads(row) for row in answer.body.splitlines()]


def pool(
    command: Sequence[str] = (),
    *,
    replicas: int = 1,
    machine: str = "n1-standard-4",
    env: Mapping[str, str] | None = None,
    args: Sequence[str] = (),
) -> dict[str, Any]:
    """A worker pool that runs a command with the plain interpreter."""
    container: dict[str, Any] = {"imageUri": IMAGE, "command": list(command)}
    if args:
        container["args"] = list(args)
    if env:
        container["env"] = [{"name": name, "value": value} for name, value in env.items()]
    return {"machineSpec": {"machineType": machine}, "replicaCount": replicas, "containerSpec": container}


def python(source: str) -> list[str]:
    """The command that runs a piece of Python."""
    return ["python", "-c", source]


def by_id(name: str) -> str:
    """The last part of a resource's name, safe in a path."""
    return quote(name.rsplit("/", 1)[-1], safe="")


def bearing(home: Path) -> list[int]:
    """The living processes whose environment, command line or working directory lies under the home."""
    text = str(home).encode()
    spared = {os.getpid(), os.getppid()}
    return [pid for pid in _pids() if pid not in spared and _bears(pid, text)]


def sweep(home: Path, patience: float = 20) -> None:
    """Kill, by pid, everything that bears the home; raise where something will not go."""
    deadline = time.monotonic() + patience
    while left := bearing(home):
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise AssertionError(f"processes {left} of {home} cannot be ended")
        time.sleep(0.02)


def _changes_a_start(variable: str) -> bool:
    """Whether it may mean something to Python or the loader: a copy has started already."""
    return not variable.startswith(("TRAINSHED_", "PIP_"))


def _pids() -> list[int]:
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def _bears(pid: int, home: bytes) -> bool:
    folder = f"/proc/{pid}"
    try:
        with open(f"{folder}/stat", "rb") as stat:
            if stat.read().rpartition(b")")[2].split()[0] in (b"Z", b"X"):
                return False
        for part in ("cmdline", "environ"):
            with open(f"{folder}/{part}", "rb") as file:
                if home in file.read():
                    return True
        return os.readlink(f"{folder}/cwd").encode().startswith(home)
    except OSError:
        return False


def until(ask: Callable[[], Any], what: str = "it", patience: float = PATIENCE) -> Any:
    """The first answer that is something. It is asked ever more rarely: each question costs CPU."""
    deadline, pause = time.monotonic() + patience, 0.02
    while not (found := ask()):
        assert time.monotonic() < deadline, f"{what} did not come"
        time.sleep(pause)
        pause = min(1.5 * pause, 0.1)
    return found
