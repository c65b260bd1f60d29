"""Finds free TCP ports for a gang, below the range that the kernel itself hands out.

The backend calls it. A port is only looked at, not reserved: nobody else draws from this range by chance, and
the caller names the ports it has promised. It never gives a port again soon: the search goes round the range.
"""

import random
import socket
from pathlib import Path

from trainshed.core.errors import Exhausted

_FIRST, _LAST = 10_000, 32_000


def pool(ephemeral: str) -> tuple[int, ...]:
    """The ports to draw from, given the kernel's own range as it writes it: "32768\t60999"."""
    low, high = (int(word) for word in ephemeral.split())
    return tuple(p for p in range(_FIRST, _LAST) if not low <= p <= high) or tuple(range(_FIRST, _LAST))


class GangPorts:
    def __init__(self) -> None:
        try:
            ephemeral = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text()
        except OSError:
            ephemeral = "32768 60999"
        self._pool = pool(ephemeral)
        # A new server must not begin where the last one did: its ports may just have been freed.
        self._next = random.randrange(len(self._pool))

    def draw(self, count: int, avoid: frozenset[int]) -> tuple[int, ...]:
        free: list[int] = []
        for _ in range(len(self._pool)):
            if len(free) == count:
                break
            port = self._pool[self._next]
            self._next = (self._next + 1) % len(self._pool)
            if port not in avoid and _is_free(port):
                free.append(port)
        if len(free) < count:
            raise Exhausted(
                f"{count} free ports are needed and {len(free)} are left between {_FIRST} and {_LAST}."
            )
        return tuple(free)


def _is_free(port: int) -> bool:
    # Bound to all addresses: refused as soon as any one address is taken.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind(("0.0.0.0", port))
        except OSError:
            return False
    return True
