"""Finds the container engine: where it may listen, which one answers, and why none does.

The fleet calls EngineFinder, which makes the backend once an engine answers. Until then nothing of the
backend is imported. It remembers why there is no engine, to tell the jobs that wait. On disk it keeps which
engine has containers of this home: another engine knows nothing of them and would run those jobs a second
time.

The engine is on this machine, because containers mount files of ours. This module starts no engine and
keeps no connection. `is_within_reach` never blocks; `ask` takes LIMIT at most.
"""

import asyncio
import errno
import json
import os
import shutil
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainshed.backends.machine.node import LocalNode
from trainshed.core.errors import TrainshedError, Unavailable
from trainshed.core.jobs.readiness import Readiness, ReadinessState
from trainshed.core.metrics import Measure
from trainshed.core.ports import Backend, Capabilities
from trainshed.core.queue.fleet import Node
from trainshed.core.supplies.image import refusal

AUTO, NONE = "auto", "none"
LIMIT = 20.0  # seconds: the engine may have to be started first, and a busy machine is no missing engine
_LEAST = (1, 41)  # of the API
PODMAN = "libpod-api-version"  # the header of every answer of Podman, with its version
_GONE = frozenset({errno.ENOENT, errno.ECONNREFUSED, errno.ENOTDIR})
CAPABILITIES = Capabilities(
    name="container",
    survives_server=True,
    kills_escapees=True,
    measures=frozenset(Measure),
    private_network=True,
)
READY = 60.0  # seconds for an engine that answers to complete the start of the backend
_ENGINE = "engine"  # the file that names the engine which has containers of this home
_WAITS = "It is looked for again every few seconds, and the job starts when it answers."


@dataclass(frozen=True, slots=True)
class EngineAddress:
    socket: str
    said_by: str = ""  # the setting that names it; empty for a usual place


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweringEngine:
    """An engine that answers."""

    socket: str
    name: str  # Podman, Docker
    version: str
    api: str = "1.41"  # the version of its API to speak

    def __str__(self) -> str:
        return f"{self.name} {self.version} at {self.socket}"


@dataclass(frozen=True, slots=True)
class NoEngine:
    """No engine answers."""

    why: str  # a part of a sentence
    remedy: str

    def __str__(self) -> str:
        return f"none ({self.why}; {self.remedy})"


OFF = NoEngine("containers are switched off by --engine none", "start the server without it")


def places(engine: str, environ: Mapping[str, str]) -> tuple[EngineAddress, ...] | NoEngine:
    """Where to look, in order: --engine alone, or other tools' settings and then the usual places."""
    if engine == NONE:
        return OFF
    if engine != AUTO:
        return (EngineAddress(path_of(engine), "--engine"),)
    named: list[EngineAddress] = []
    for name in ("DOCKER_HOST", "CONTAINER_HOST"):
        value = environ.get(name, "")
        if path := path_of(value):
            named.append(EngineAddress(path, name))
    user = os.getuid()
    own = environ.get("XDG_RUNTIME_DIR") or (f"/run/user/{user}" if user else "")
    usual = [f"{own}/podman/podman.sock"] if own else []
    usual += ["/run/podman/podman.sock", "/var/run/docker.sock"]
    usual += [f"{own}/docker.sock"] if own else []
    if home := environ.get("HOME", ""):
        usual.append(f"{home}/.docker/run/docker.sock")
    known = {place.socket for place in named}
    return (*named, *(EngineAddress(path) for path in usual if path not in known))


def path_of(address: str) -> str:
    """The socket's path in `unix:///run/docker.sock` or `/run/docker.sock`; empty for anything else."""
    path = address.removeprefix("unix://")
    return path if path.startswith("/") else ""


def is_within_reach(there: Sequence[EngineAddress]) -> bool:
    """Whether anything listens at one of them. `look` finds out whether it is an engine."""
    return any(_touch(place.socket) == 0 for place in there)


async def look(engine: str, environ: Mapping[str, str], limit: float = LIMIT) -> AnsweringEngine | NoEngine:
    """The first engine that answers."""
    there = places(engine, environ)
    if isinstance(there, NoEngine):
        return there
    faults: list[str] = []
    for place in there:
        answer = await ask(place.socket, limit)
        if isinstance(answer, AnsweringEngine):
            return answer
        if answer:
            faults.append(f"{place.socket} {answer}")
    return silence(there, faults, environ)


def silence(there: Sequence[EngineAddress], faults: Sequence[str], environ: Mapping[str, str]) -> NoEngine:
    """Why no engine answers: the faults of what listens, else that nothing listens."""
    if faults:
        remedy = "see to it, or name another engine's socket with --engine"
        if any("may not be used" in fault for fault in faults):
            remedy = "let this user use it, by its group or as root, or name another with --engine"
        return NoEngine("; ".join(faults), remedy)
    far = [f"{name}={environ[name]}" for name in ("DOCKER_HOST", "CONTAINER_HOST") if environ.get(name)]
    far = [text for text in far if not path_of(text.partition("=")[2])]
    if far:
        return NoEngine(f"{far[0]} is no socket of this machine", "name one with --engine /PATH/OF/SOCKET")
    where = ", ".join(place.socket for place in there)
    named = [place.said_by for place in there if place.said_by]
    user = "--user " if os.getuid() else ""
    starting = f"start one with 'systemctl {user}start podman.socket' or 'systemctl {user}start docker'"
    remedy = starting if not named else f"start it, or change {named[0]}"
    return NoEngine(f"no engine answers at {where}", remedy)


async def ask(path: str, limit: float = LIMIT) -> AnsweringEngine | str:
    """The engine that answers; else the fault, as a part of a sentence; empty where nothing listens."""
    fault = _touch(path)
    if fault in _GONE:
        return ""
    if fault in (errno.EACCES, errno.EPERM):
        return "may not be used by this user"
    try:
        async with asyncio.timeout(limit):
            head = (await _get(path, "/_ping")).partition(b"\r\n\r\n")[0]
            if (version := read_ping(head.decode("latin-1"))) is None:
                version = json.loads((await _get(path, "/version")).partition(b"\r\n\r\n")[2])
        return read_version(path, version)
    except TimeoutError:
        return f"does not answer within {limit:g} s"
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return "is not a container engine's"


def read_ping(head: str) -> Mapping[str, Any] | None:
    """What /version would answer, if the head of an answer to /_ping tells enough of it. Pure.

    To answer /version and /info, Podman asks its machine's package manager: each takes up to half a second
    of CPU. A Podman whose newest API is the least that is needed speaks that one.
    """
    rows = (line.partition(":") for line in head.splitlines())
    headers = {name.strip().lower(): value.strip() for name, _, value in rows}
    version, newest = headers.get(PODMAN), headers.get("api-version", "0")
    if not version or _number(newest) != _LEAST:
        return None
    return {"Version": version, "ApiVersion": newest, "Components": [{"Name": "Podman Engine"}]}


def read_version(path: str, version: Mapping[str, Any]) -> AnsweringEngine | str:
    """The engine behind an answer to /version. Pure."""
    parts = {str(part["Name"]) for part in version.get("Components") or ()}
    name = "Podman" if any("podman" in part.lower() for part in parts) else "Docker"
    newest, oldest = str(version["ApiVersion"]), str(version.get("MinAPIVersion") or "1.41")
    if _number(newest) < _LEAST:
        return f"is {name} {version['Version']}, whose API {newest} is too old: 1.41 is needed"
    api = oldest if _number(oldest) > _LEAST else "1.41"
    return AnsweringEngine(socket=path, name=name, version=str(version["Version"]), api=api)


def _number(version: str) -> tuple[int, int]:
    major, _, minor = version.partition(".")
    return int(major), int(minor or 0)


async def _get(path: str, target: str) -> bytes:
    # With HTTP/1.0 the answer ends where the connection does, so nothing has to parse it.
    reader, writer = await asyncio.open_unix_connection(path)
    try:
        writer.write(f"GET {target} HTTP/1.0\r\nHost: engine\r\n\r\n".encode())
        await writer.drain()
        return await reader.read(-1)
    finally:
        writer.close()


def _touch(path: str) -> int:
    """0 where something listens, else the errno. Never waits."""
    if len(os.fsencode(path)) > 107:
        return errno.ENOENT
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    line.setblocking(False)
    try:
        line.connect(path)
    except BlockingIOError:
        return 0  # its queue is full, so it listens
    except OSError as error:
        return error.errno or errno.EIO
    finally:
        line.close()
    return 0


def left(home: Path) -> frozenset[str]:
    """The jobs that have files in this home."""
    try:
        return frozenset(item.name for item in os.scandir(home / "jobs"))
    except OSError:
        return frozenset()


class EngineFinder:
    def __init__(
        self,
        home: Path,
        engine: str,
        environ: Mapping[str, str],
        make: Callable[[AnsweringEngine], Awaitable[Backend]],
        *,
        node: LocalNode,
    ) -> None:
        self.capabilities = CAPABILITIES
        self._node = node
        self._home, self._engine, self._environ, self._make = home, engine, environ, make
        self._message, self._remedy = "It runs in a container: an engine is being looked for.", ""

    async def nodes(self) -> tuple[Node, ...]:
        return await self._node.nodes()  # the engine is on this machine

    def left(self) -> frozenset[str]:
        return left(self._home)

    def was_there(self) -> bool:
        return self._engine != NONE and bool(self._kept())

    def refuse(self, image: str, sentence: str) -> str | None:
        there = places(self._engine, self._environ)
        if isinstance(there, NoEngine):
            return _added(sentence, there)
        if fault := refusal(image):
            return fault
        # Where an engine was used before it may come back: the job waits for it.
        if self._home.exists() or is_within_reach(there):
            return None
        return _added(sentence, silence(there, (), self._environ))

    def absence(self) -> Readiness:
        return Readiness(standing=ReadinessState.PREPARING, message=self._message, remedy=self._remedy)

    async def look(self) -> AnsweringEngine | NoEngine:
        """The engine that answers now, or why none does."""
        kept = self._kept() if self._engine != NONE and self.left() else ""
        result = await look(kept or self._engine, self._environ)
        if isinstance(result, NoEngine) and kept:
            remedy = f"start it again, or where it is gone for good remove {self._home / _ENGINE} and restart"
            return NoEngine(f"{result.why}, which has containers of this server", remedy)
        if isinstance(result, AnsweringEngine) and not self._has_init():
            return NoEngine(
                f"{result} answers, but their init cannot be made without a C compiler", "install one"
            )
        return result

    async def find(self) -> Backend:
        engine = await self.look()
        if isinstance(engine, NoEngine):
            raise self._note(f"there is no engine: {engine.why}.", engine.remedy)
        try:
            async with asyncio.timeout(READY):
                made = await self._make(engine)
        except TimeoutError:
            raise self._note(f"{engine} does not get ready within {READY:g} s.") from None
        except (TrainshedError, OSError) as error:
            raise self._note(f"{engine} cannot be used: {error}") from error
        self._keep(engine)
        return made

    def _has_init(self) -> bool:
        return shutil.which("cc") is not None or next(self._home.glob("bin/init-*"), None) is not None

    def _kept(self) -> str:
        try:
            return (self._home / _ENGINE).read_text().strip()
        except OSError:
            return ""

    def _keep(self, engine: AnsweringEngine) -> None:
        if self._kept() != engine.socket:
            self._home.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft = self._home / f".{_ENGINE}"
            draft.write_text(engine.socket)
            draft.replace(self._home / _ENGINE)

    def _note(self, fault: str, remedy: str = "") -> Unavailable:
        """Remember it for jobs that wait, and word it for somebody who asks for images."""
        advice = f"{remedy[:1].upper()}{remedy[1:]}." if remedy else ""
        self._message, self._remedy = f"It runs in a container, and {fault}", f"{advice} {_WAITS}".strip()
        return Unavailable(f"Containers cannot run here: {fault} {advice}".strip())


def _added(sentence: str, silence: NoEngine) -> str:
    return f"{sentence} There is none: {silence.why}; {silence.remedy}."
