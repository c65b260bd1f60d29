"""Whether a registry that a name of an image begins with may be asked: decided after the name is resolved.

`ImageCalls` asks before each pull and push. Engines look names up themselves, and follow where a registry
sends them: a name that means another address a moment later is not seen here. A name that this machine
cannot resolve is left to the engine, which may have a proxy or a mirror for it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from ipaddress import ip_address

from trainshed.backends.container.pull import ImageFailure, inward_registry
from trainshed.core.image import HUB, LOCAL, Reference
from trainshed.core.inward import never_a_registry

Resolve = Callable[[str], Awaitable[tuple[str, ...]]]  # a host's addresses; none where it has none


async def resolve_host(host: str) -> tuple[str, ...]:
    try:
        entries = await asyncio.get_running_loop().getaddrinfo(host, None)
    except (OSError, UnicodeError):
        return ()
    return tuple(str(entry[4][0]) for entry in entries)


async def check_registry(
    reference: Reference, doing: str, *, has_credentials: bool, resolve: Resolve = resolve_host
) -> None:
    """Raise ImageFailure for a registry at an address where none can be."""
    if reference.domain == HUB:
        return
    host = reference.domain.rpartition(":")[0] if _has_port(reference.domain) else reference.domain
    host = host.strip("[]")
    is_own_name = has_credentials or host == LOCAL or _is_address(host)
    if wrong := never_a_registry(await resolve(host), is_own_name=is_own_name):
        raise ImageFailure(inward_registry(doing, host, wrong))


def _has_port(domain: str) -> bool:
    return ":" in domain.rpartition("]")[2]


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
