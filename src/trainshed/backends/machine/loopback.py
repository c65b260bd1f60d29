"""Loopback ports: how programs in containers and pods reach the server. Pure.

A loopback port is a port on a container's own loopback that leads to the same port of this machine: init.c
listens there and passes the socket to `trainshed/serving/loopback_server.py`. In a pod pod_tunnel.h listens
there and passes each connection to `trainshed/serving/tunnel_server.py`. Addresses in a job's variables are
rewritten: a server by any other name is found at 127.0.0.1 inside.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from trainshed.backends.machine.google_redirect import GoogleRedirect
from trainshed.core.google import PORT

INSIDE = "127.0.0.1"
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
# A connection to what a port leads to, for a program of a job; None where nobody is there.
Dial = Callable[[int, str], Awaitable[Streams | None]]


@dataclass(slots=True)
class LoopbackPort:
    """The loopback ports of containers and pods; the server fills it in when it starts."""

    folder: Path | None = None  # where the server waits for sockets; None: containers have none
    address: str = ""  # of the server, as jobs are told
    beyond: frozenset[int] = frozenset()  # further ports of this machine's loopback that jobs are told of
    passed: set[int] = field(default_factory=set[int])  # those, and ports of package indexes
    google: GoogleRedirect = field(default_factory=GoogleRedirect)
    dial: Dial | None = None  # None: pods have none

    @property
    def is_open(self) -> bool:
        return self.folder is not None or self.dial is not None

    @property
    def ports(self) -> tuple[int, ...]:
        own = urlsplit(self.address).port if self.is_open and self.address else None
        named = (PORT,) if self.named else ()
        return () if own is None else (own, *named, *sorted(self.beyond - {own}))

    @property
    def named(self) -> bool:
        """Whether Google's names lead to the server inside, at a loopback port of their own."""
        taken = {urlsplit(self.address).port, *self.beyond}
        return bool(self.is_open and self.google.roots) and PORT not in taken


def with_inside_address(env: Mapping[str, str], loopback: LoopbackPort) -> dict[str, str]:
    """The variables with the server's address as it is inside, with or without its scheme."""
    inside = f"{INSIDE}:{loopback.ports[0]}" if loopback.ports else ""
    outside = loopback.address.removeprefix("http://")
    if not inside or inside == outside:
        return dict(env)
    return {name: value.replace(outside, inside) for name, value in env.items()}


def loopback_ports(addresses: Iterable[str]) -> frozenset[int]:
    """The ports of this machine's own loopback that are among these addresses."""
    ports: set[int] = set()
    for value in addresses:
        if value.startswith("http://"):
            try:
                place = urlsplit(value)
                if place.hostname in (INSIDE, "localhost") and place.port:
                    ports.add(place.port)
            except ValueError:  # not a port number
                continue
    return frozenset(ports)
