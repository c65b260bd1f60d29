"""Whether a registry that a name of an image begins with may be asked: decided after the name is resolved.

The backend of containers asks before each pull and push, that of clusters before each request it makes to a
registry. Engines look names up themselves, and follow where a registry sends them: a name that means another
address a moment later is not seen here. A name that this machine cannot resolve is left to whoever asks,
which may have a proxy or a mirror for it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from ipaddress import ip_address

from trainshed.core.supplies.image import HUB, LOCAL
from trainshed.core.supplies.inward import never_a_registry

Resolve = Callable[[str], Awaitable[tuple[str, ...]]]  # a host's addresses; none where it has none


async def resolve_host(host: str) -> tuple[str, ...]:
    try:
        entries = await asyncio.get_running_loop().getaddrinfo(host, None)
    except (OSError, UnicodeError):
        return ()
    return tuple(str(entry[4][0]) for entry in entries)


async def inward_registry(domain: str, *, has_credentials: bool, resolve: Resolve = resolve_host) -> str:
    """Why a registry at this address cannot be, the end of a sentence; empty where it may be asked."""
    if domain == HUB:
        return ""
    host = host_of(domain)
    is_own_name = has_credentials or host == LOCAL or _is_address(host)
    if wrong := never_a_registry(await resolve(host), is_own_name=is_own_name):
        return f"{host} leads to {wrong}, which is this machine or beside it"
    return ""


def host_of(domain: str) -> str:
    """The domain of an image without its port."""
    host = domain.rpartition(":")[0] if _has_port(domain) else domain
    return host.strip("[]")


def _has_port(domain: str) -> bool:
    return ":" in domain.rpartition("]")[2]


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
