"""Which container engine there is: where it may listen, who answers there, and in words why none does.

It may assume Linux or something like it, and an engine on this machine: what containers are given are files
of ours. It imports nothing that a server without containers does not need, starts no engine and keeps no
connection. `is_within_reach` never blocks; `ask` takes LIMIT at most.
"""

import asyncio
import errno
import json
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

AUTO, NONE = "auto", "none"
LIMIT = 3.0  # seconds to answer in: an engine that is started by the question itself takes a while
_LEAST = (1, 41)  # of the API
_GONE = frozenset({errno.ENOENT, errno.ECONNREFUSED, errno.ENOTDIR})


@dataclass(frozen=True, slots=True)
class EngineAddress:
    socket: str
    said_by: str = ""  # the setting that names it; nobody where engines just usually listen there


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
    """Where to look, in order. A setting of ours leaves no choice; those of other tools come first."""
    if engine == NONE:
        return OFF
    if engine != AUTO:
        return (EngineAddress(path_of(engine), "--engine"),)
    found: list[EngineAddress] = []
    for name in ("DOCKER_HOST", "CONTAINER_HOST"):
        said = environ.get(name, "")
        if path := path_of(said):
            found.append(EngineAddress(path, name))
    user = os.getuid()
    own = environ.get("XDG_RUNTIME_DIR") or (f"/run/user/{user}" if user else "")
    usual = [f"{own}/podman/podman.sock"] if own else []
    usual += ["/run/podman/podman.sock", "/var/run/docker.sock"]
    usual += [f"{own}/docker.sock"] if own else []
    if home := environ.get("HOME", ""):
        usual.append(f"{home}/.docker/run/docker.sock")
    known = {place.socket for place in found}
    return (*found, *(EngineAddress(path) for path in usual if path not in known))


def path_of(said: str) -> str:
    """The socket's path in `unix:///run/docker.sock` or `/run/docker.sock`; empty where it is no such."""
    path = said.removeprefix("unix://")
    return path if path.startswith("/") else ""


def is_within_reach(there: Sequence[EngineAddress]) -> bool:
    """Whether somebody listens at one of them. Whether it is an engine is for `look` to say."""
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
    """The reason, in words: what is wrong where somebody listens, else that nobody does."""
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
    """Who answers there; else what is wrong with it, as a part of a sentence, and nothing where nobody is."""
    fault = _touch(path)
    if fault in _GONE:
        return ""
    if fault in (errno.EACCES, errno.EPERM):
        return "may not be used by this user"
    try:
        async with asyncio.timeout(limit):
            text = await _get(path, "/version")
        told: Any = json.loads(text.partition(b"\r\n\r\n")[2])
        return read_version(path, told)
    except TimeoutError:
        return f"does not answer within {limit:g} s"
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return "is not a container engine's"


def read_version(path: str, told: Mapping[str, Any]) -> AnsweringEngine | str:
    """What an engine says of itself. Pure."""
    parts = {str(part["Name"]) for part in told.get("Components") or ()}
    name = "Podman" if any("podman" in part.lower() for part in parts) else "Docker"
    newest, oldest = str(told["ApiVersion"]), str(told.get("MinAPIVersion") or "1.41")
    if _number(newest) < _LEAST:
        return f"is {name} {told['Version']}, whose API {newest} is too old: 1.41 is needed"
    api = oldest if _number(oldest) > _LEAST else "1.41"
    return AnsweringEngine(socket=path, name=name, version=str(told["Version"]), api=api)


def _number(version: str) -> tuple[int, int]:
    major, _, minor = version.partition(".")
    return int(major), int(minor or 0)


async def _get(path: str, target: str) -> bytes:
    # HTTP/1.0: an answer that ends where the connection does needs nobody to take it apart.
    reader, writer = await asyncio.open_unix_connection(path)
    try:
        writer.write(f"GET {target} HTTP/1.0\r\nHost: engine\r\n\r\n".encode())
        await writer.drain()
        return await reader.read(-1)
    finally:
        writer.close()


def _touch(path: str) -> int:
    """0 where somebody listens, else the fault's number. Nothing is waited for."""
    if len(os.fsencode(path)) > 107:
        return errno.ENOENT
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    line.setblocking(False)
    try:
        line.connect(path)
    except BlockingIOError:
        return 0  # more are waiting than it takes at once: it is there
    except OSError as error:
        return error.errno or errno.EIO
    finally:
        line.close()
    return 0


def left(home: Path) -> frozenset[str]:
    """The jobs of which a container backend over this home has kept anything."""
    try:
        return frozenset(item.name for item in os.scandir(home / "jobs"))
    except OSError:
        return frozenset()
