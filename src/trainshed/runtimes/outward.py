"""Outward: the variables that keep pip, and what pip starts, out of the server's own network.

`VenvRuntimes` has one, and asks it before each build. It starts the proxy (outward_proxy.py) when a build
first needs it, one for each set of places that may be anywhere: the operator's indexes and hosts. Where the
operator names a proxy, that one decides what is reached and what a name means, and none is put before it.
"""

import asyncio
import contextlib
import shlex
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from trainshed.runtimes.indexes import PROXIES, config_files, indexes, read_files

_ROOT = str(Path(__file__).parents[2])
_MODULE = "trainshed.runtimes.outward_proxy"
_PROGRAM = f"import sys; sys.path.append(sys.argv.pop(1)); from {_MODULE} import main; main()"
_SSH = Path(__file__).with_name("outward_ssh.py")
_PORTS = {"http": 80, "https": 443}


@dataclass(slots=True)
class Outward:
    environ: Mapping[str, str] = field(repr=False)  # of pip
    hosts: tuple[str, ...] = ()  # HOST or HOST:PORT that the operator lets requirements name
    _proxies: dict[frozenset[str], tuple[asyncio.subprocess.Process, int]] = field(
        default_factory=dict[frozenset[str], tuple[asyncio.subprocess.Process, int]]
    )
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def variables(self, addresses: Iterable[str]) -> dict[str, str]:
        """For a build that takes packages from these addresses too. OSError where no proxy can be started."""
        settings = await asyncio.to_thread(
            lambda: indexes(read_files(config_files(self.environ, sys.prefix)), self.environ, "")
        )
        if "PIP_PROXY" in settings.env or any(settings.env.get(name) for name in _named()):
            return {}
        trusted = settings.env.get("PIP_TRUSTED_HOST", "").split()
        places = (place for address in (*settings.addresses, *addresses) if (place := _place(address)))
        port = await self._port(frozenset((*self.hosts, *trusted, *places)))
        address = f"http://127.0.0.1:{port}"
        own = {name: "" if name.lower() == "no_proxy" else address for name in (*PROXIES, *_lower())}
        relay = shlex.join((sys.executable, "-I", "-S", str(_SSH), str(port)))
        ssh = shlex.join(("ssh", "-o", f"ProxyCommand={relay} %h %p"))
        return own if "GIT_SSH_COMMAND" in self.environ else {**own, "GIT_SSH_COMMAND": ssh}

    async def close(self) -> None:
        for child, _ in self._proxies.values():
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            await child.wait()
        self._proxies.clear()

    async def _port(self, allowed: frozenset[str]) -> int:
        async with self._lock:
            child, port = self._proxies.get(allowed, (None, 0))
            if child is None or child.returncode is not None:
                child, port = await _started(allowed)
                self._proxies[allowed] = child, port
            return port


def _lower() -> tuple[str, ...]:
    return tuple(map(str.lower, PROXIES))


def _named() -> Iterable[str]:
    return (name for name in (*PROXIES, *_lower()) if name.lower() != "no_proxy")


def _place(address: str) -> str:
    """HOST:PORT; empty where it names none."""
    try:
        place = urlsplit(address)
        port = place.port or _PORTS.get(place.scheme)
    except ValueError:
        return ""
    return f"{place.hostname}:{port}" if place.hostname and port else ""


async def _started(allowed: frozenset[str]) -> tuple[asyncio.subprocess.Process, int]:
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-c", _PROGRAM, _ROOT, *sorted(allowed)),
        stdin=asyncio.subprocess.PIPE,  # the proxy ends when this end of it is closed, by whatever
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    assert child.stdout is not None
    line = await child.stdout.readline()
    if not line.strip().isdigit():
        await child.wait()
        raise OSError("the proxy that keeps pip out of the server's own network does not start")
    return child, int(line)
